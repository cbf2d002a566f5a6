"""FLy as an object of study: what it forgives and why, and what holds of it on every block."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory.blocks.fly import Cause
from tests.blocks.helpers import likely_blocks

THETAS = (0.0, 0.2, 0.5, 0.8, 1.0, 2.0)
PAPER = {"gate": "normalised", "gate_off_at": 0, "following": "W", "tail": "fits"}


def variants(theta=0.3, window=2):
    setting = {"theta": theta, "window": window}
    return [
        ft.Fly(**setting),
        ft.FlyCeiling(**setting, floor=0.1),
        ft.FlyReleased(**setting),
        ft.FlyReleased(**setting, following="W", gate="normalised"),
        ft.FlyReleased(**setting, tail="fits"),
        ft.FlyReleased(**setting, temperature=1),
        ft.FlyReleased(**setting, temperature=0.7, samples=1, no_window=True),
    ]


def tape(block, seed):
    return np.random.default_rng(seed).random(block.tokens.shape)


@given(likely_blocks(), st.integers(0, 9), st.sampled_from(THETAS), st.integers(1, 5))
def test_it_keeps_at_least_what_strict_verification_keeps_on_the_same_tape(block, seed, theta, window):
    for br in variants(theta, window):
        assert br.decide(block, tape(block, seed)) >= dataclasses.replace(br, theta=2).decide(block, tape(block, seed))


@given(likely_blocks(), st.integers(0, 9))
def test_it_keeps_no_more_as_theta_or_the_window_grows(block, seed):
    for first in variants():
        for name, values in (("theta", THETAS), ("window", range(1, 8))):
            family = [dataclasses.replace(first, **{name: value}) for value in values]
            kept = [int(br.decide(block, tape(block, seed))) for br in family]
            assert kept == sorted(kept, reverse=True)


@given(likely_blocks(), st.sampled_from(THETAS))
def test_a_shut_gate_or_a_window_as_long_as_the_block_is_strict(block, theta):
    matches = block.target[:-1].argmax(axis=-1) == block.tokens
    strict = np.append(matches, False).argmin()
    long = block.draft_length
    for br in (
        ft.Fly(theta=1.01, window=0),
        ft.Fly(theta=theta, window=long),
        ft.FlyReleased(theta=theta, window=long),
    ):
        assert br.decide(block, tape(block, 0)) == strict
        assert br.length_law(block)[strict] == 1


@given(likely_blocks(), st.sampled_from(THETAS), st.integers(0, 4))
def test_at_most_one_mismatch_is_forgiven_in_any_window_and_the_rest_is_argmax(block, theta, window):
    trace = ft.Fly(theta=theta, window=window).trace(block)
    forgiven = np.flatnonzero(trace.forgiven)
    assert np.all(np.diff(forgiven) > window)
    n = int(trace.kept.sum())
    best = block.target.argmax(axis=-1)
    emitted = [*block.tokens[:n], best[n]]
    assert [i for i in range(n + 1) if emitted[i] != best[i]] == list(forgiven)


@given(likely_blocks(), st.integers(0, 9), st.integers(1, 4))
def test_a_trace_explains_the_decision(block, seed, window):
    for br in variants(window=window):
        trace = br.trace(block, uniforms=tape(block, seed))
        n = int(br.decide(block, tape(block, seed)))
        assert np.array_equal(trace.cause == Cause.KEPT, np.arange(block.draft_length) < n)
        assert np.array_equal(trace.cause == Cause.EARLIER, np.arange(block.draft_length) > n)
        assert np.array_equal(trace.verdict, trace.match | (trace.gate & trace.boundary & trace.window))
        if n < block.draft_length:
            assert not trace.match[n]
            failed = {Cause.GATE: trace.gate, Cause.BOUNDARY: trace.boundary, Cause.WINDOW: trace.window}
            assert next(cause for cause, passed in failed.items() if not passed[n]) == trace.cause[n]


def block_of(matches, entropies=None):
    """A block with this match pattern over V = 3; a low-entropy row is a point mass but for a rounding."""
    K = len(matches)
    rows = np.array(
        [[0.4, 0.3, 0.3] if high else [0.998, 0.001, 0.001] for high in (entropies or [True] * K)] + [[1, 0, 0]]
    )
    tokens = np.where(matches, 0, 1)
    return ft.Block(rows, np.eye(3)[tokens], tokens)


@pytest.mark.parametrize(
    ("matches", "gate", "causes"),
    [
        ("0111", "1111", "KKKK"),
        ("0111", "0111", "GEEE"),
        ("0110", "1111", "KKKB"),
        ("0101", "1111", "WEEE"),  # the window counts the later mismatch whatever becomes of it
        ("1011", "1111", "KKKK"),
        ("1101", "1111", "KKBE"),
        ("1100", "1101", "KKGE"),  # gate, boundary and window fail; the gate comes first
        ("1100", "1111", "KKBE"),
    ],
)
def test_causes_of_small_blocks_with_a_window_of_two(matches, gate, causes):
    letters = {Cause.KEPT: "K", Cause.GATE: "G", Cause.BOUNDARY: "B", Cause.WINDOW: "W", Cause.EARLIER: "E"}
    block = block_of([c == "1" for c in matches], [c == "1" for c in gate])
    trace = ft.block_rule("fly:theta=0.3,window=2").trace(block)
    assert "".join(letters[cause] for cause in trace.cause.tolist()) == causes


def test_no_ceiling_the_forgiven_token_may_have_any_probability():
    fly = ft.block_rule("fly:theta=3/10,window=1")
    for rare in ("1/1000", "1/1000000000000", "0"):
        half = (1 - Fraction(rare)) / 2
        p = ft.exact([[half, half, rare]] * 3)
        block = ft.Block(p, ft.exact([[0, 0, 1], [1, 0, 0]]), [2, 0])
        assert fly.length_law(block).tolist() == [0, 0, 1]  # emitted for certain, though p(x) = rare


@given(likely_blocks(), st.sampled_from([0.05, 0.2, 0.4]))
def test_a_floor_bounds_every_emitted_token(block, floor):
    br = ft.FlyCeiling(theta=0.1, window=1, floor=floor)
    n = int(br.decide(block, tape(block, 0)))
    emitted = [*block.tokens[:n], block.target[n].argmax()]
    assert all(block.target[i, x] >= min(floor, block.target[i].max()) for i, x in enumerate(emitted))


def test_a_floor_above_one_half_is_strict_and_a_floor_of_zero_is_none():
    block = block_of([False, True, True])
    kept = [ft.FlyCeiling(theta=0.3, window=1, floor=f).decide(block, tape(block, 0)) for f in (0, 0.3, 0.31, 0.51)]
    assert kept == [3, 3, 0, 0]


# -- the released code -------------------------------------------------------------------------------------------------


@given(likely_blocks(), st.sampled_from(THETAS), st.integers(1, 4))
def test_with_every_difference_put_back_the_released_code_is_the_paper(block, theta, window):
    paper, released = ft.Fly(theta=theta, window=window), ft.FlyReleased(theta=theta, window=window, **PAPER)
    assert np.array_equal(paper.length_law(block), released.length_law(block))
    assert np.array_equal(paper.next_token(block), released.next_token(block))


@pytest.mark.parametrize(
    ("change", "block", "kept"),
    [
        # entropies of (0.4, 0.3, 0.3): 0.99 normalised, 1.09 nats
        ({"gate": "top3-nats"}, block_of([False, True, True, True]), (0, 4)),
        ({"gate_off_at": 1}, block_of([False, True, True, True], [False] * 4), (0, 4)),
        ({"following": "W-1", "tail": "restored"}, block_of([False, True, False, True]), (0, 2)),
        ({"following": "W-1", "tail": "fits"}, block_of([True, True, False, True]), (2, 4)),
        ({"no_window": True}, block_of([False, False, False, False]), (0, 4)),
    ],
)
def test_each_difference_alone_keeps_more(change, block, kept):
    theta = 1 if "gate" in change or "gate_off_at" in change else 0.3
    paper = ft.FlyReleased(theta=theta, window=2, **PAPER)
    changed = dataclasses.replace(paper, **change)
    assert tuple(int(br.decide(block, tape(block, 0))) for br in (paper, changed)) == kept


def test_the_tail_is_put_back_although_its_window_fits():
    block = block_of([True, True, False, True])
    kept = [
        ft.FlyReleased(theta=0.3, window=2, tail=tail).decide(block, tape(block, 0)) for tail in ("restored", "fits")
    ]
    assert kept == [2, 4]


def test_sampled_targets_without_gate_and_window_overshoot_by_two_minus_p():
    """A greedy draft d comes out with 1 - (1 - p_d)^2: TV = p_d (1 - p_d), ratio 2 - p_d (theta = 2 shuts the gate)."""
    p = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 16), Fraction(1, 16)]
    br = ft.block_rule("fly-released:theta=2,window=6,temperature=1")
    for d, draft_length in itertools.product(range(4), (1, 2, 3)):
        q = [Fraction(int(v == d)) for v in range(4)]
        pair = ft.MarkovPair(ft.exact([p] * 4), ft.exact([q] * 4), ft.exact([1, 0, 0, 0]))
        out = ft.joint_law(br, pair, draft_length, 1).tolist()
        assert out == [1 - (1 - p[d]) ** 2 if v == d else (1 - p[d]) * p[v] for v in range(4)]
        assert sum(abs(a - b) for a, b in zip(out, p, strict=True)) / 2 == p[d] * (1 - p[d])
        assert max(a / b for a, b in zip(out, p, strict=True)) == 2 - p[d]


def test_it_is_the_token_rule_sample_match_when_the_gate_is_shut():
    for samples in (1, 2):
        released = ft.FlyReleased(theta=2, window=1, temperature=1, samples=samples)
        token = ft.block_rule(f"sample-match:n={samples}")
        for seed in range(5):
            pair = ft.ContextTreePair.random(3, 2, seed)
            assert np.allclose(ft.joint_law(released, pair, 3, 3), ft.joint_law(token, pair, 3, 3), rtol=0, atol=1e-14)


@given(likely_blocks(max_length=5), st.integers(1, 3), st.sampled_from([1, 2]))
def test_the_length_law_sums_the_decision_over_all_outcomes_of_the_samples(block, window, samples):
    br = ft.FlyReleased(theta=0.2, window=window, temperature=1, samples=samples)
    match = 1 - (1 - block.target_at_tokens) ** samples
    law = np.zeros(block.draft_length + 1)
    for outcome in itertools.product([True, False], repeat=block.draft_length):
        probability = np.prod(np.where(outcome, match, 1 - match))
        if probability > 0:
            law[br.decide(block, np.where(outcome, 0.0, np.nextafter(1, 0)))] += probability
    assert np.allclose(law, br.length_law(block), rtol=0, atol=1e-12)


def test_the_gate_reads_the_logits_before_the_temperature():
    logits = np.log([0.55, 0.25, 0.2])
    theta = float(ft.top_k_entropy(ft.softmax(logits), 3)) - 1e-6
    for temperature in (0.5, 1, 2):
        row = ft.softmax(logits, temperature=temperature)
        block = ft.Block(np.stack([row] * 2), np.eye(3)[[1]], [1])
        br = ft.FlyReleased(theta=theta, window=1, temperature=temperature, no_window=True)
        assert br.gate_open(block).all()
        assert not dataclasses.replace(br, theta=theta + 2e-6).gate_open(block).any()


def test_sampled_targets_need_uniforms_for_a_trace():
    block = block_of([True])
    with pytest.raises(ft.errors.InvalidInput, match="trace needs uniforms"):
        ft.FlyReleased(theta=0.3, window=1, temperature=1).trace(block)


@pytest.mark.parametrize(
    "spec",
    [
        "fly:theta=-0.1,window=6",
        "fly:theta=inf,window=6",
        "fly:theta=0.3,window=-1",
        "fly:theta=0.3,window=2.5",
        "fly-released:theta=0.3,window=0",
        "fly-released:theta=0.3,window=6,samples=3",
        "fly-released:theta=0.3,window=6,gate=top5",
        "fly-released:theta=0.3,window=6,temperature=-1",
        "fly-ceiling:theta=0.3,window=6,floor=1.5",
        "hierarchical-uncapped:l=0",
    ],
)
def test_settings_outside_their_domain_are_named(spec):
    name = spec.split(":")[0]
    with pytest.raises(ft.errors.ParameterError, match=name):
        ft.block_rule(spec)


@given(likely_blocks(), st.sampled_from(THETAS), st.integers(1, 4))
def test_the_endings_are_the_causes_of_every_decision(block, theta, window):
    for br in variants(theta, window)[:5]:
        ended, decided = br.endings(block), br.trace(block)
        for field, cause in (("gate", Cause.GATE), ("boundary", Cause.BOUNDARY), ("window", Cause.WINDOW)):
            assert np.array_equal(getattr(ended, field) == 1, decided.cause == cause)
        assert np.array_equal(ended.forgiven == 1, decided.forgiven)
        assert np.array_equal(ended.boundary_only == 1, (decided.cause == Cause.BOUNDARY) & decided.window)
        assert ended.whole == decided.kept.all()


@given(likely_blocks(), st.sampled_from(THETAS), st.integers(1, 4))
def test_a_mismatch_that_is_met_is_forgiven_or_ends_the_round(block, theta, window):
    for br in variants(theta, window):
        ended = br.endings(block)
        assert np.allclose(ended.met, ended.forgiven + ended.rejected, rtol=0, atol=1e-12)
        assert np.isclose(ended.rejected.sum() + ended.whole, 1, rtol=0, atol=1e-12)
        known = br.endings(block, entropy=br.gate_entropy(block))
        assert all(np.array_equal(a, b) for a, b in zip(ended, known, strict=True))
