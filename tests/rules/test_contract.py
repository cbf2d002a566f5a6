"""What every rule file owes its readers: declared parameters, docstring sections, a registered name, light imports."""

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path

import pytest

import fly_theory as ft
from fly_theory.claims import Claim
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules
from fly_theory.rules import Rule

RULES = rules(level="token")
SECTIONS = ("Statement", "Guarantee", "Reference", "Examples")
FOLDER = Path(inspect.getfile(Rule)).parent


@pytest.mark.parametrize("name", RULES)
def test_rule_is_well_formed(name):
    cls = rule_class(name)
    assert issubclass(cls, Rule)
    assert cls.name == name
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen
    assert getattr(ft, cls.__name__) is cls
    declared = {p.name for p in parameters(cls)}
    assert declared == {f.name for f in dataclasses.fields(cls)}, "every field is a declared parameter"
    for parameter in parameters(cls):
        assert parameter.help
        assert all(parameter.domain.contains(v) for v in parameter.typical)
        assert parameter.required or parameter.domain.contains(parameter.default)
        assert parameter.strict_at is None or parameter.domain.contains(parameter.strict_at)
    assert list(inspect.signature(cls.verdict).parameters) == ["self", "p", "q"]


@pytest.mark.parametrize("name", RULES)
def test_docstring_sections(name):
    doc = inspect.getdoc(rule_class(name))
    assert doc.splitlines()[0].endswith("."), "the first line is one sentence"
    lines = doc.splitlines()
    headings = [line for line, under in itertools.pairwise(lines) if under and set(under) == {"-"}]
    assert tuple(headings) == SECTIONS


@pytest.mark.parametrize("name", RULES)
def test_spec_round_trip_and_claims(name):
    cls = rule_class(name)
    rule = cls(**{p.name: (p.typical or (p.default,))[0] for p in parameters(cls)})
    assert ft.rule(rule.spec) == rule
    assert all(isinstance(claim, Claim) and str(claim) for claim in rule.claims)
    assert all(isinstance(i, Interpreter) and reason for i, reason in rule.unreadable.items())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.name)
def test_rule_files_import_no_backend_and_draw_nothing(path):
    tree = ast.parse(path.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & {"numpy", "torch", "jax", "random", "scipy"}


def test_every_rule_class_is_registered():
    registered = {rule_class(name) for name in RULES}
    written = {
        cls
        for module in {cls.__module__ for cls in registered}
        for _, cls in inspect.getmembers(inspect.importlib.import_module(module), inspect.isclass)
        if issubclass(cls, Rule) and cls.__module__ == module and "name" in vars(cls)
    }
    assert written == registered
