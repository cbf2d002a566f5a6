"""Every claim of every rule holds on random pairs, and what is not claimed is refuted where the mathematics says so.

The checks are written from the definitions, apart from `fly_theory.invariants`.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import fly_theory as ft
from fly_theory import claims
from fly_theory.registry import rules
from tests.strategies import pairs, rule_objects

RULES = rules(level="token")
ATOL = 1e-9


def tv(a, b):
    return np.abs(a - b).sum() / 2


def factor(bound, p, q):
    return float(bound(p, q)) if callable(bound) else float(bound)


def holds(claim, rule, p, q) -> bool:
    """Whether a claim holds at one pair, from its definition."""
    out, acceptance = rule.induced(p, q), float(rule.acceptance(p, q))
    match claim:
        case claims.Lossless():
            return tv(out, p) <= ATOL
        case claims.Induces(law=law):
            return np.allclose(out, law(p, q), rtol=0, atol=ATOL)
        case claims.Ceiling(factor=bound):
            return bool(np.all(out <= factor(bound, p, q) * p * (1 + 1e-9) + 1e-12))
        case claims.AcceptsMost(factor=bound):
            return abs(acceptance - np.minimum(q, factor(bound, p, q) * p).sum()) <= ATOL
        case claims.OnTheLine():
            return abs(tv(out, p) - (tv(p, q) - (1 - acceptance))) <= ATOL
        case claims.SupportWithin(allowed=allowed):
            return bool(np.all(out[~allowed(p, q)] <= 1e-15))
        case claims.DivergenceBound(divergence=name, limit=limit):
            return float(getattr(ft.divergence, name)(p, out)) <= factor(limit, p, q) + 1e-7
        case claims.ReducesTo(rule=spec, at=at):
            strict, reduced = ft.rule(spec), dataclasses.replace(rule, **at)
            same_acceptance = abs(float(reduced.acceptance(p, q)) - float(strict.acceptance(p, q))) <= ATOL
            return same_acceptance and np.allclose(reduced.induced(p, q), strict.induced(p, q), rtol=0, atol=ATOL)
        case claims.MonotoneIn(parameter=name, looser=looser):
            typical = sorted(
                {float(getattr(rule, name)), *map(float, _typical(rule, name))}, reverse=looser == "smaller"
            )
            family = [dataclasses.replace(rule, **{name: value}) for value in typical]
            acceptances = [float(r.acceptance(p, q)) for r in family]
            distances = [tv(r.induced(p, q), p) for r in family]
            return all(b >= a - ATOL for xs in (acceptances, distances) for a, b in itertools.pairwise(xs))
        case claims.FixedPoint():
            return abs(float(rule.acceptance(p, p)) - 1) <= ATOL and np.allclose(
                rule.induced(p, p), p, rtol=0, atol=ATOL
            )
    raise AssertionError(claim)


def _typical(rule, name):
    return next(f.metadata["typical"] for f in dataclasses.fields(rule) if f.name == name)


@given(rule_objects(), pairs())
@settings(max_examples=400)
def test_every_verdict_is_a_verdict(rule, pair):
    p, q = pair
    accepted, residual = rule.verdict(p, q)
    assert np.all(accepted >= 0)
    assert np.all(accepted <= q)
    assert np.all(residual >= 0)
    out = rule.induced(p, q)
    assert np.all(out >= 0)
    assert out.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_claims_hold(name):
    @given(rule_objects((name,)), pairs())
    def every_claim(rule, pair):
        for claim in rule.claims:
            assert holds(claim, rule, *pair), f"{rule.spec} does not satisfy: {claim}"

    every_claim()


@given(rule_objects(), pairs())
@settings(max_examples=300)
def test_no_rule_is_below_the_line(rule, pair):
    assert float(ft.waste(*pair, rule)) >= -1e-9


P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.1, 0.3, 0.4])
# Every (rule, claim) that RULES says must fail, with a pair on which it does.
REFUTED = [
    ("lenience:l=0.5", claims.Lossless(), P, Q),
    ("lenience:l=0.5", claims.Ceiling(1.9), P, Q),
    ("lenience-substituted:l=0.5", claims.OnTheLine(), np.array([0.2, 0.1, 0.7]), np.array([0.3, 0.6, 0.1])),
    ("lenience-resample:l=0.5", claims.Ceiling(2), P, Q),
    ("lenience-resample:l=0.5", claims.OnTheLine(), P, Q),
    ("lenience-resample:l=1", claims.Lossless(), P, Q),
    ("cos:w=0.5", claims.Ceiling(4.4), P, Q),
    ("cos-contrastive:mu=0.5", claims.OnTheLine(), P, Q),
    ("cos-contrastive:mu=0.5", claims.FixedPoint(), P, Q),
    ("min-p:base=0.5", claims.Lossless(), P, Q),
    ("min-p:base=0.5", claims.OnTheLine(), P, Q),
    ("min-p:base=0.5", claims.FixedPoint(), P, Q),
    ("typical:eps=0.09,delta=0.3", claims.OnTheLine(), P, Q),
    ("typical:eps=0.09,delta=0.3", claims.FixedPoint(), P, Q),
    ("typical-argmax:eps=0.09,delta=0.3", claims.SupportWithin("q", lambda p, q: q > p), P, Q),
    ("eta:eps=0.09", claims.OnTheLine(), P, Q),
    ("top-k-match:k=2", claims.OnTheLine(), P, Q),
    ("truncated-min-p:base=0.5", claims.Lossless(), P, Q),
    ("ceiling-on-set:base=0.5,l=0.5", claims.Ceiling(7.9), P, Q),
    ("ceiling-none-off:base=0.5,l=0.5", claims.OnTheLine(), P, Q),
    ("gated-excess:base=0.5,l=0.5", claims.OnTheLine(), P, Q),
    ("gated-cliff:base=0.5,l=0.5", claims.OnTheLine(), P, Q),
    ("cascade-token-v3:alpha=0", claims.Lossless(), np.array([0.6, 0.4]), np.array([0.9, 0.1])),
    ("cascade-token-v3:alpha=0.5", claims.OnTheLine(), P, Q),
    ("sample-match:n=2", claims.Lossless(), P, Q),
    ("sample-match:n=1", claims.FixedPoint(), P, Q),
    ("threshold:single=0.5,acc=0.5", claims.Lossless(), P, Q),
]


@pytest.mark.parametrize(("spec", "claim", "p", "q"), REFUTED, ids=[f"{r[0]} is not {r[1]}" for r in REFUTED])
def test_what_is_not_claimed_fails(spec, claim, p, q):
    rule = ft.rule(spec)
    assert type(claim) not in {type(c) for c in rule.claims} or isinstance(claim, claims.Ceiling)
    assert not holds(claim, rule, p, q)


@given(pairs())
def test_ceiling_everywhere_is_lenience(pair):
    for l in (0.25, 0.5, 0.9):
        ours, theirs = ft.CeilingEverywhere(l=l).verdict(*pair), ft.Lenience(l=l).verdict(*pair)
        np.testing.assert_allclose(ours.accepted, theirs.accepted, rtol=0, atol=1e-15)
        np.testing.assert_allclose(ours.residual, theirs.residual, rtol=0, atol=1e-15)


@given(pairs())
def test_lenience_accepts_most_under_its_ceiling(pair):
    """No rule of the registry that stays below p/l accepts more than lenience at l."""
    p, q = pair
    for rule in (
        ft.CeilingNoneOff(l=0.5),
        ft.LenienceSubstituted(l=0.5),
        ft.Lossless(),
        ft.Threshold(single=0.5, acc=0.5),
    ):
        assert float(rule.acceptance(p, q)) <= float(ft.Lenience(l=0.5).acceptance(p, q)) + 1e-12


@given(pairs())
def test_accept_set_distance_formula(pair):
    """TV(out, p) = q(A) TV(q_A, p) for the accept-set rules."""
    p, q = pair
    for rule in (ft.MinP(base=0.5), ft.Typical(), ft.Eta(eps=0.1), ft.TopKMatch(k=2)):
        kept = np.where(rule.allowed_set(p), q, 0)
        mass = kept.sum()
        expected = mass * tv(kept / mass, p) if mass > 0 else 0.0
        assert tv(rule.induced(p, q), p) == pytest.approx(expected, abs=1e-12)


@given(pairs())
def test_cascade_v3_has_the_law_of_min_p_and_accepts_at_least_as_much(pair):
    cascade, accept_set = ft.CascadeTokenV3(alpha=0.5), ft.MinP(base=0.5)
    np.testing.assert_allclose(cascade.induced(*pair), accept_set.induced(*pair), rtol=0, atol=1e-12)
    assert float(cascade.acceptance(*pair)) >= float(accept_set.acceptance(*pair)) - 1e-12
