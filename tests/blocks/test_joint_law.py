"""Exact laws of text and lengths: closed forms, consistency between lengths, and what is refused."""

import dataclasses
import importlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.blocks.base import LongestPass
from fly_theory.errors import InvalidInput, ZeroResidualError
from fly_theory.rules import Rule, Verdict

PAIR = ft.MarkovPair([[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.3, 0.7]], [0.25, 0.75])
BLOCK = ft.block_rule("block")


def test_the_law_of_one_token_is_the_induced_distribution():
    for spec in ("lenience:l=0.5", "cos:w=0.5", "sample-match:n=2", "cactus:delta=0.1", "min-p:base=0.5"):
        induced = ft.rule(spec).induced(PAIR.target, PAIR.draft)
        law = ft.joint_law(ft.block_rule(spec), PAIR, 1, 1)
        np.testing.assert_allclose(law, PAIR.start @ induced, rtol=0, atol=1e-15, err_msg=spec)


def test_the_second_token_is_a_bonus_or_starts_a_round():
    """K = 1: after a kept draft the next token comes from the target, after a redraw from a new round."""
    rule = ft.rule("lenience:l=0.5")
    accepted, _ = rule.verdict(PAIR.target, PAIR.draft)
    out = rule.induced(PAIR.target, PAIR.draft)
    pairs_of_tokens = accepted[:, :, None] * PAIR.target + (out - accepted)[:, :, None] * out
    law = ft.joint_law(ft.tokenwise(rule), PAIR, 1, 2)
    np.testing.assert_allclose(law, np.einsum("c,cxy->xy", PAIR.start, pairs_of_tokens), rtol=0, atol=1e-15)


@pytest.mark.parametrize("spec", ["block", "hierarchical-naive", "hierarchical-uncapped", "fly:theta=0.3,window=1"])
def test_shorter_texts_are_marginals_of_longer_ones(spec):
    pair = ft.ContextTreePair.random(3, 2, 5)
    laws = [ft.joint_law(ft.block_rule(spec), pair, 3, length) for length in range(1, 6)]
    for shorter, longer in itertools.pairwise(laws):
        np.testing.assert_allclose(longer.sum(-1), shorter, rtol=0, atol=1e-14)
    assert laws[-1].shape == (3,) * 5
    assert laws[-1].sum() == pytest.approx(1, abs=1e-14)


def test_lengths_follow_the_acceptance_of_independent_positions():
    row, draft, K = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 4
    pair = ft.MarkovPair([row] * 3, [draft] * 3, [1.0, 0.0, 0.0])
    lengths = ft.expected_lengths(ft.block_rule("lossless"), pair, K)
    keep = 0.7
    np.testing.assert_allclose(lengths.law, [*(keep**n * 0.3 for n in range(K)), keep**K], rtol=0, atol=1e-15)
    assert lengths.kept == pytest.approx(sum(keep**i for i in range(1, K + 1)), abs=1e-14)
    assert lengths.tokens_per_call == pytest.approx(float(ft.block_efficiency([keep] * K).tokens_per_call), abs=1e-14)


def test_completing_rules_pay_for_their_redraws():
    """K = 2, two tokens emitted unless both are kept; stopping at the first position costs a second call."""
    p, q = ["1/3", "2/3"], ["2/3", "1/3"]
    pair = ft.MarkovPair(ft.exact([p, p]), ft.exact([q, q]), ft.exact([1, 0]))
    lengths = ft.expected_lengths(ft.block_rule("hierarchical-naive"), pair, 2)
    assert lengths.law.tolist() == [Fraction(1, 3), 0, Fraction(2, 3)]
    assert lengths.tokens_per_call.item() == (2 + Fraction(2, 3)) / (1 + Fraction(1, 3))


def test_the_law_does_not_depend_on_how_contexts_are_batched(monkeypatch):
    pair = ft.ContextTreePair.adversarial(3, 3, 1)
    whole = ft.joint_law(BLOCK, pair, 3, 4)
    monkeypatch.setattr(importlib.import_module("fly_theory.joint_law"), "_BATCH", 1)
    np.testing.assert_array_equal(ft.joint_law(BLOCK, pair, 3, 4), whole)


def test_torch_tables_give_the_same_law():
    import torch

    pair = ft.MarkovPair(*map(torch.as_tensor, (PAIR.target, PAIR.draft, PAIR.start)))
    law = ft.joint_law(BLOCK, pair, 2, 3)
    np.testing.assert_allclose(law.numpy(), ft.joint_law(BLOCK, PAIR, 2, 3), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BLOCK, PAIR, 0, 3), "draft_length=0 is not allowed; .* K >= 1"),
        ((BLOCK, PAIR, 2.0, 3), "draft_length=2.0 is not allowed"),
        ((BLOCK, PAIR, 2, 0), "length=0 is not allowed"),
        ((ft.rule("lossless"), PAIR, 2, 3), r"no block rule; write ft.block_rule\(SPEC\)"),
        ((BLOCK, PAIR, 24, 3), r"the drafts from one context have 8.4e\+08 probabilities.* simulators.simulate"),
        ((BLOCK, PAIR, 2, 30), r"texts have 1.1e\+09 probabilities.* simulators.simulate"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        ft.joint_law(*arguments)


def test_many_contexts_can_be_too_many():
    pair = ft.ContextTreePair.random(4, 6, 0)
    with pytest.raises(InvalidInput, match=r"the drafts from 5461 contexts have .* simulators.simulate"):
        ft.joint_law(BLOCK, pair, 8, 7)
    assert ft.expected_lengths(BLOCK, pair, 6).law.shape == (7,)  # one context


def test_a_rule_that_stops_where_it_has_nothing_to_emit_is_named():
    @dataclasses.dataclass(frozen=True)
    class Half(Rule):
        def verdict(self, p, q):
            return Verdict(accepted=q / 2, residual=p * 0)

    with pytest.raises(ZeroResidualError, match=r"Half stops with probability 0\.\d+ where its residual is all zero"):
        ft.joint_law(ft.tokenwise(Half()), PAIR, 2, 2)


def test_a_rule_of_ones_own_is_judged_like_any_other():
    """Block verification that forgets to test the whole draft: never more than K - 1 are kept, and it is lossy."""

    @dataclasses.dataclass(frozen=True)
    class Forgetful(LongestPass):
        def passes(self, block):
            passes = BLOCK.passes(block).copy()
            passes[..., -1] = 0
            return passes

        def next_token(self, block):
            return BLOCK.next_token(block)

    assert not np.allclose(ft.joint_law(Forgetful(), PAIR, 2, 2), ft.target_law(PAIR, 2), rtol=0, atol=1e-3)
    assert ft.expected_lengths(Forgetful(), PAIR, 2).law[-1] == 0
