"""The second route: rules read over two and three tokens, spelled out, with no lemma."""

import functools

import pytest
import z3

import proofs
from fly_theory.arrays import array_namespace
from fly_theory.claims import Lossless, OnTheLine
from fly_theory.registry import rule_class
from proofs import finite
from proofs.derivation import Derivation
from proofs.search import judged
from proofs.theorem import Subject, find

SUBJECTS = [(name, subject) for name in proofs.theorems() for subject in find(name).about if find(name).proof]


@functools.cache
def over_two_tokens(number):
    return finite.ask(SUBJECTS[number][1], 2, seconds=0.5)


@pytest.mark.parametrize("number", range(len(SUBJECTS)), ids=[f"{name}: {s.rule}" for name, s in SUBJECTS])
def test_nothing_that_is_proved_fails_over_two_tokens(number):
    answer, model = over_two_tokens(number)
    # Powers and infinite divergences are unknown numbers here, which z3 may choose badly: exact figures decide.
    assert answer != "refuted" or judged(rule_class(SUBJECTS[number][1].rule), model) is None


def test_most_of_it_is_proved_over_two_tokens_again():
    answers = [over_two_tokens(number)[0] for number in range(len(SUBJECTS))]
    assert answers.count("proved") > 0.8 * len(SUBJECTS)


@pytest.mark.parametrize("size", [2, 3])
def test_lossless_verification_over_a_few_tokens(size):
    assert finite.ask(Subject("lossless", Lossless), size, seconds=20) == ("proved", None)


@pytest.mark.parametrize("size", [4, 16, 64])
def test_lossless_verification_multiplied_out_over_many_tokens(size):
    """Without the division by the residual's mass, and with its mass known, no vocabulary is too large."""
    d = Derivation()
    p, q = (finite.row(d.world, [d.number(f"{name}{i}") for i in range(size)]) for name in "pq")
    d.suppose("p and q are distributions", *finite.is_distribution(p), *finite.is_distribution(q))
    accepted, residual = d.rule("lossless").verdict(p, q)
    xp = array_namespace(p)
    rejected = 1 - xp.sum(accepted, axis=-1)
    holds = [*(accepted + residual == p).cells, (xp.sum(residual, axis=-1) == rejected).term]
    assert d.ask(z3.And(holds), seconds=20)[0] == "proved"


def test_a_rule_that_symbols_cannot_read_is_unknown():
    assert finite.ask(Subject("mentored", OnTheLine), 2) == ("unknown", None)
