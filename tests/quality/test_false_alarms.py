"""Verifiers that were reported as biased and are lossless."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from tests.quality.verifiers import first_rejection, fractions, point_mass, ratio_rule, residual


def distinct_children(target_probs, draft_probs, draft_tokens, rng):
    """Walks distinct children in order; a child of a deterministic list has q = 1, and is taken out when it fails."""
    prefix: tuple[int, ...] = ()
    paths = [tuple(path) for path in draft_tokens.tolist()]
    while True:
        agreeing = [i for i, path in enumerate(paths) if path[: len(prefix)] == prefix]
        left = list(target_probs[agreeing[0], len(prefix)])
        children = dict.fromkeys(paths[i][len(prefix)] for i in agreeing if len(paths[i]) > len(prefix))
        for child in children:
            if rng.random() * sum(left) < left[child]:
                prefix = (*prefix, child)
                break
            left[child] = 0
        else:
            return [*prefix, rng.choice(left)]


@pytest.mark.parametrize(
    ("target", "candidates"),
    [("6/10 2/10 1/10 1/10", [[0], [1]]), ("51/100 49/100", [[0]]), ("1/4 1/4 1/2", [[2, 0], [2, 1], [0, 2]])],
)
def test_top_k_children_have_q_one(target, candidates):
    target = fractions(target)
    report = ft.conformance(distinct_children, target, target=target, candidates=candidates)
    assert report.verdict == "lossless"
    assert report.tv == 0
    assert report["repeated candidate"].outcome == "held"


def exact_match(target_probs, draft_probs, draft_tokens, rng):
    """Emits target samples, as many as are equal to the draft and one more."""
    for i, x in enumerate(draft_tokens):
        drawn = rng.choice(target_probs[i])
        if drawn != x:
            return [*draft_tokens[:i], drawn]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def test_equality_with_a_target_sample():
    row = ft.softmax(np.array([2, 1.5, 1, 0.5]))
    greedy = ft.conformance(exact_match, point_mass(0, 4), target=row, length=2)
    sampled = ft.conformance(exact_match, row, target=row, length=2)
    assert greedy.verdict == "lossless"
    assert greedy.measures["kept"] == pytest.approx(0.455, abs=5e-4)
    assert sampled.verdict == "lossless but slower"
    assert sampled.measures["kept"] == pytest.approx(0.322, abs=5e-4)


def one_hot(p, q, x, rng):
    return rng.random() < p[x]


def without_the_draft(p, q, x, rng):
    return rng.choice([0 if v == x else mass for v, mass in enumerate(p)])


def argmax(row, rng):
    return max(range(len(row)), key=row.__getitem__)


P, Q = fractions("6/10 2/10 1/10 1/10"), fractions("7/10 2/10 1/20 1/20")


@pytest.mark.parametrize(
    ("verifier", "drafter", "kept", "verdict"),
    [
        (ratio_rule, Q, Fraction(9, 10), "lossless"),
        (first_rejection(one_hot, without_the_draft), point_mass(0, 4), Fraction(3, 5), "lossless"),
        (first_rejection(one_hot, without_the_draft), Q, Fraction(47, 100), "lossless but slower"),
        (exact_match, Q, Fraction(47, 100), "lossless but slower"),
    ],
)
def test_draft_probabilities_unused(verifier, drafter, kept, verdict):
    report = ft.conformance(verifier, drafter, target=P, told=Q)
    assert report.verdict == verdict
    assert report.ok
    if verdict == "lossless but slower":
        assert report.measures == {
            "kept": kept,
            "sum min(p, q)": Fraction(9, 10),
            "sum p q": Fraction(47, 100),
            "p(argmax q^)": Fraction(3, 5),
        }
    assert report.measures["kept"] == kept


def test_the_draft_an_argmax_and_its_softmax_unused():
    report = ft.conformance(first_rejection(one_hot, without_the_draft), argmax, target=P, told=Q)
    assert report.verdict == "lossless"
    assert report["q^ is a point mass if the draft is one"].outcome == "refuted"


def test_the_right_residual_is_no_false_alarm():
    verifier = first_rejection(lambda p, q, x, rng: rng.random() <= min(1, p[x] / q[x]), residual)
    assert ft.conformance(verifier).verdict == "lossless"
