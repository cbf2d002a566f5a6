"""Statements that are false, with their counterexamples: recorded in proofs/refuted, found anew, and judged apart.

FLY_THEORY_RECORD=1 pytest tests/proofs/test_refuted.py writes the recorded ones anew.
"""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

import fly_theory as ft
import proofs
from fly_theory import invariants
from fly_theory.files import json_text
from proofs import finite
from proofs.theorem import find

RECORDED = Path(proofs.__file__).parent / "refuted"
FALSE = [name for name in proofs.theorems() if find(name).expected == "refuted"]
ABOUT_TOKENS = [name for name in FALSE if name != "fly-ceiling"]


@pytest.mark.parametrize("name", FALSE)
def test_the_recorded_counterexample_is_found_again(name, proof_of):
    found = proof_of(name).witness.as_json()
    file = RECORDED / f"{name}.json"
    if os.environ.get("FLY_THEORY_RECORD"):
        file.write_text(json_text(found))
    assert json.loads(file.read_text()) == found


def test_nothing_else_is_recorded():
    assert {file.stem for file in RECORDED.glob("*.json")} == set(FALSE)


@pytest.mark.parametrize("name", ABOUT_TOKENS)
def test_recorded_counterexamples_break_the_claim_when_judged_by_the_invariants(name):
    recorded = json.loads((RECORDED / f"{name}.json").read_text())
    rule = ft.rule(recorded["rule"])
    (claim,) = find(name).about[0].claims(rule)
    p, q = recorded["inputs"]["p"], recorded["inputs"]["q"]
    assert invariants.of_claim(claim).examine(rule, p, q) is not None
    assert list(map(str, rule.induced(ft.exact(p), ft.exact(q)).tolist())) == recorded["found"]["out"]


def test_the_token_that_fly_emits_has_no_mass():
    recorded = json.loads((RECORDED / "fly-ceiling.json").read_text())
    p, drafted = recorded["inputs"]["p"], [int(x) for x in recorded["inputs"]["drafted"]]
    rows = [[float(Fraction(x)) for x in p]] * 3
    law = ft.block_rule(recorded["rule"]).length_law(ft.Block(rows, rows[:2], drafted))
    assert rows[0][drafted[0]] == 0
    assert law.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", [name for name in ABOUT_TOKENS if name != "lenience-substituted-on-line"])
def test_z3_finds_a_counterexample_over_two_tokens_too(name):
    answer, model = finite.ask(find(name).about[0], 2)
    assert answer == "refuted"
    assert sum(model.p) == sum(model.q) == 1


def test_substituted_lenience_is_on_the_line_over_two_tokens():
    assert finite.ask(find("lenience-substituted-on-line").about[0], 2) == ("proved", None)
