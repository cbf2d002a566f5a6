"""`check` on tree rules: what is lossless holds, what is not is refuted with a test that fails."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput
from fly_theory.trees import Siblingwise, TreeLaw, Walk


@pytest.mark.parametrize("spec", ["traversal", "k-seq"])
def test_lossless_rules_are_held(spec):
    report = ft.check(spec)
    assert report.verdict == "lossless"
    assert report.ok
    assert all(result.outcome == "held" for result in report.results)
    assert report["lossless"].cases > 30


def test_token_rules_on_siblings():
    assert ft.check(ft.tree_rule("lossless"), ["lossless"]).ok
    report = ft.check(ft.tree_rule("min-p:base=1/2"), ["lossless"])
    assert report.verdict == "lossy"
    witness = report["lossless"].witness
    assert witness.inputs["parents"] == (0,)
    scope: dict = {}
    exec(witness.test, scope)
    with pytest.raises(AssertionError):
        scope["test_lossless"]()


def test_one_coin_for_repeated_siblings_is_refuted():
    """The two thresholds at 1 are lossless for siblings that differ, and are made for those of all kinds."""
    report = ft.check("threshold-walk:single=1,acc=1", ["lossless"])
    assert report.verdict == "lossy"
    assert report["lossless"].witness.inputs["siblings"] == "with-replacement"


def test_lossy_rules_that_claim_nothing_hold_their_claims():
    report = ft.check("fly-tree:theta=0.3,window=1")
    assert report.verdict == "lossy"
    assert report.ok
    assert not report["lossless"].asked


def test_claims_that_cannot_be_judged_are_refused():
    with pytest.raises(InvalidInput, match="is not a claim of a tree rule that can be judged"):
        ft.check("traversal", ["ceiling:2"])


@dataclass(frozen=True)
class LosesMass(Siblingwise):
    """Stops too rarely."""

    def _law(self, tree):
        stops, next_token = super()._law(tree)
        return TreeLaw(stops / 2, next_token)


@dataclass(frozen=True)
class DecidesOtherwise(Siblingwise):
    """Decides with every uniform turned around, unlike its law says for siblings that depend on one another."""

    def _decide(self, tree, uniforms):
        return super()._decide(tree, uniforms * uniforms)


@dataclass(frozen=True, kw_only=True)
class Throws(Walk):
    """Has no verdict."""

    name: ClassVar[str] = "throws"


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (LosesMass(ft.rule("lossless")), "answers with laws"),
        (Throws(), "answers with laws"),
        (DecidesOtherwise(ft.rule("lossless")), "decisions follow the law"),
    ],
)
def test_what_every_rule_owes_is_judged(rule, name):
    report = ft.check(rule, ["lossless"])
    assert report.verdict == "invalid"
    assert report[name].outcome == "refuted"
