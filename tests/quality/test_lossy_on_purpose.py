"""Rules that give up the target's law get a bound, not a pass."""

import math
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.claims import Ceiling, Lossless
from tests.quality.verifiers import first_rejection, fractions, point_mass, ratio_rule, ratio_test, refute, residual


def judged(verifier, drafter, target, bound, **settings):
    return ft.conformance(verifier, drafter, target=target, claims=[Ceiling(bound)], length=1, **settings)


def typical(epsilon, delta):
    def accept(p, q, x, rng):
        entropy = -sum(mass * math.log(mass) for mass in p if mass > 0)
        return p[x] > min(epsilon, delta * math.exp(-entropy))

    return first_rejection(accept, lambda p, q, x, rng: rng.choice(p))


def test_typical_acceptance():
    p = fractions("6/10 3/10 1/10")
    report = judged(typical(0.09, 0.3), point_mass(2, 3), p, Fraction(100, 9))
    assert report.ok
    assert (report.verdict, report.max_ratio) == ("lossy", 10)
    assert report["lossless"].witness.got == fractions("0 0 1")
    assert not judged(typical(0.09, 0.3), point_mass(2, 3), p, Fraction(99, 10)).ok
    # With the two constants the other way round the threshold is 0.0367: a token of mass 0.05 is kept, a ratio of 20.
    rare = fractions("6/10 7/20 1/20")
    assert judged(typical(0.3, 0.09), point_mass(2, 3), rare, 20).max_ratio == 20
    assert judged(typical(0.09, 0.3), point_mass(2, 3), rare, 20).verdict != "lossy"


def thresholds(single, acc):
    def accept(p, q, x, rng):
        return p[x] >= single or rng.random() * acc < p[x]

    def redraw(p, q, x, rng):
        return rng.choice([0 if v == x else mass for v, mass in enumerate(p)])

    return first_rejection(accept, redraw)


@pytest.mark.parametrize(
    ("single", "acc", "wrong", "tv", "ratio"),
    [
        (Fraction(1, 2), 1, "1 0 0", "1/2", 2),
        (1, Fraction(3, 4), "2/3 1/6 1/6", "1/6", Fraction(4, 3)),
    ],
)
def test_acceptance_thresholds(single, acc, wrong, tv, ratio):
    p = fractions("1/2 1/4 1/4")
    report = refute(
        thresholds(single, acc), drafter=point_mass(0, 3), target=p, wrong=wrong, right="1/2 1/4 1/4", tv=tv
    )
    assert report.max_ratio == ratio
    bound = max(1 / Fraction(single), 1 / Fraction(acc))
    assert judged(thresholds(single, acc), point_mass(0, 3), p, bound).ok
    assert not judged(thresholds(single, acc), point_mass(0, 3), p, bound - Fraction(1, 100)).ok


def test_acceptance_thresholds_of_one_are_lossless():
    assert ft.conformance(thresholds(1, 1), point_mass(0, 3), target=fractions("1/2 1/4 1/4")).verdict == "lossless"


def lenient(share):
    return first_rejection(lambda p, q, x, rng: rng.random() * (1 - share) * q[x] < p[x], residual)


def test_lenience():
    p, q, share = fractions("1/2 1/2"), fractions("3/4 1/4"), Fraction(1, 4)
    report = refute(lenient(share), drafter=q, target=p, wrong="2/3 1/3", right="1/2 1/2", tv="1/6")
    assert report.max_ratio == Fraction(4, 3)
    # Per token, however many positions: the joint law's own ratio is (4/3)^3.
    several = ft.conformance(lenient(share), q, target=p, claims=[Ceiling(Fraction(4, 3))], length=3)
    assert several.ok
    assert several.max_ratio == Fraction(4, 3)


def test_cascade_token_rule_is_lossless_for_its_own_law():
    def goal(p, q):
        kept = [mass >= Fraction(3, 4) * max(p) for mass in p]
        left = 1 - sum(mass for mass, keep in zip(q, kept, strict=True) if keep)
        return [(b if keep else 0) + left * a for a, b, keep in zip(p, q, kept, strict=True)]

    def verifier(target_probs, draft_probs, draft_tokens, rng):
        rows = [goal(p, q) for p, q in zip(target_probs, draft_probs, strict=False)]
        return ratio_rule([*rows, target_probs[-1]], draft_probs, draft_tokens, rng)

    p, q = fractions("5/10 4/10 1/10"), fractions("6/10 3/10 1/10")
    against_p = refute(verifier, drafter=q, target=p, wrong="13/20 17/50 1/100", right="1/2 2/5 1/10", tv="3/20")
    assert against_p.verdict == "lossy"
    against_goal = ft.conformance(verifier, q, target=p, goal=goal, length=1)
    assert against_goal.verdict == "lossless"
    assert against_goal["K = 0 agrees with K > 0"].detail == "the goal depends on the draft"


def test_deferred_window_forgives_tokens_without_target_mass():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        best = [max(range(len(row)), key=row.__getitem__) for row in target_probs]
        hits = [a == b for a, b in zip(best, draft_tokens, strict=False)]
        kept = 0
        while kept < len(hits) and (hits[kept] or (kept + 1 < len(hits) and hits[kept + 1])):
            kept += 1
        return [*draft_tokens[:kept], best[kept]]

    # At temperature zero the target is a point mass: 0 after anything. The draft starts with 1, then agrees.
    report = ft.conformance(verifier, [[0, 1], [1, 0]], target=[[1, 0], [1, 0]], length=2, claims=[Ceiling(1000)])
    assert report.max_ratio == math.inf
    assert not report.ok


def test_entropy_scaled_uniform():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        for i, x in enumerate(draft_tokens):
            p, q = target_probs[i], draft_probs[i]
            entropy = -sum(mass * math.log(mass) for mass in p if mass > 0)
            if rng.random() * min(math.exp(-entropy / 2), 0.95) * q[x] >= p[x]:
                return [*draft_tokens[:i], residual(p, q, x, rng)]
        return [*draft_tokens, rng.choice(target_probs[-1])]

    p, q = fractions("1/2 1/2"), fractions("3/4 1/4")
    bound = 1 / min(math.exp(-math.log(2) / 2), 0.95)
    assert judged(verifier, q, p, bound).ok
    assert not judged(verifier, q, p, 1.2).ok
    assert ft.conformance(verifier, q, target=p, length=1).max_ratio == pytest.approx(np.sqrt(2), rel=1e-6)


def test_claims_that_cannot_be_judged_from_outside():
    with pytest.raises(ft.errors.InvalidInput, match="another law is goal="):
        ft.conformance(ratio_rule, claims=[ft.claims.OnTheLine()])
    both = ft.conformance(lenient(Fraction(1, 4)), length=1, claims=[Lossless(), Ceiling(2)])
    assert [result.outcome for result in both.results[:2]] == ["refuted", "held"]


def test_ratio_test_is_what_lenience_leaves_out():
    assert ft.conformance(first_rejection(ratio_test, residual), length=1).verdict == "lossless"
