"""What every tree-rule file owes its readers, as token rules do."""

import dataclasses
import inspect
import itertools

import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput, UnknownName
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules
from fly_theory.trees import DRAWINGS, TreeRule, siblingwise
from tests.trees.helpers import typical_rules

RULES = rules(level="tree")


@pytest.mark.parametrize("name", RULES)
def test_rule_is_well_formed(name):
    cls = rule_class(name, level="tree")
    assert issubclass(cls, TreeRule)
    assert cls.name == name
    assert cls.__dataclass_params__.frozen
    assert getattr(ft, cls.__name__) is cls
    assert {p.name for p in parameters(cls)} == {f.name for f in dataclasses.fields(cls)}
    assert set(cls.drawings) <= set(DRAWINGS)
    lines = inspect.getdoc(cls).splitlines()
    headings = [line for line, under in itertools.pairwise(lines) if under and set(under) == {"-"}]
    assert headings == ["Statement", "Guarantee", "Reference", "Examples"]


@pytest.mark.parametrize("rule", typical_rules(), ids=lambda rule: rule.spec)
def test_spec_round_trip(rule):
    assert ft.tree_rule(rule.spec) == rule


def test_wrong_names():
    with pytest.raises(UnknownName, match=r"use ft\.tree_rule\('traversal'\)"):
        ft.rule("traversal")
    with pytest.raises(UnknownName, match=r"use ft\.block_rule\('block'\)"):
        ft.tree_rule("block")
    with pytest.raises(InvalidInput, match="is no token-level rule"):
        siblingwise("lossless")
    with pytest.raises(InvalidInput, match="is no tree rule"):
        ft.trees.position_law(ft.rule("lossless"), [1.0], [1.0], 1, drawing="with-replacement")
