"""Lossless tree verifiers leave the target's joint law on trees of two levels, and keep what they should."""

import math

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.trees import (
    DRAWINGS,
    branching,
    chain,
    expected_lengths,
    joint_law,
    optimal_acceptance,
    position_law,
    transport_acceptance,
)
from fly_theory.trees.limits import _over_sets


def random_case(seed, vocabulary=3, exact=False):
    """A topology of at most two levels and six nodes, a way to draw, and a pair."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, vocabulary + 1))
    parents = (0,) * width
    for node in range(1, width + 1):
        parents += (node,) * int(rng.integers(0, min(vocabulary, 6 - len(parents)) + 1))
    drawing = DRAWINGS[seed % 3]
    return parents, drawing, ft.ContextTreePair.random(vocabulary, 2, seed, exact=exact)


@pytest.mark.parametrize("seed", range(100))
def test_two_levels(seed):
    parents, drawing, pair = random_case(seed, vocabulary=2 + seed % 2)
    target = ft.target_law(pair, 3)
    kept = {}
    for spec in ("lossless", "traversal", "k-seq"):
        rule = ft.tree_rule(spec)
        if drawing in rule.drawings:
            assert np.abs(joint_law(rule, pair, parents, 3, drawing=drawing) - target).max() < 1e-12
            kept[spec] = float(expected_lengths(rule, pair, parents, drawing=drawing).kept)
    assert kept["traversal"] >= kept["lossless"] - 1e-12


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("spec", ["lossless", "traversal", "threshold-walk", "sample-match:n=1"])
def test_two_levels_in_fractions(spec, seed):
    parents, drawing, pair = random_case(seed, vocabulary=2, exact=True)
    if spec == "threshold-walk" and drawing == "with-replacement":
        drawing = "without-replacement"
    assert joint_law(ft.tree_rule(spec), pair, parents, 3, drawing=drawing).tolist() == ft.target_law(pair, 3).tolist()


@pytest.mark.parametrize("drawing", ["with-replacement", "deterministic"])
@pytest.mark.parametrize("seed", range(6))
def test_adversarial_rows_in_fractions(seed, drawing):
    pair = ft.ContextTreePair.adversarial(2, 2, seed, exact=True)
    for spec in ("lossless", "traversal"):
        law = joint_law(ft.tree_rule(spec), pair, branching([2, 2]), 3, drawing=drawing)
        assert law.tolist() == ft.target_law(pair, 3).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_on_a_chain_a_tree_rule_is_the_block_rule(seed):
    pair = ft.ContextTreePair.random(3, 2, seed, exact=True)
    for tree, block in (("traversal", "block"), ("lossless", "lossless"), ("lenience:l=1/2", "lenience:l=1/2")):
        lengths = ft.expected_lengths(ft.block_rule(block), pair, 3)
        found = expected_lengths(ft.tree_rule(tree), pair, chain(3), drawing="with-replacement")
        assert found.law.tolist() == lengths.law.tolist()
        assert found.kept.item() == lengths.kept.item()
        law = joint_law(ft.tree_rule(tree), pair, chain(3), 3, drawing="with-replacement")
        assert law.tolist() == ft.joint_law(ft.block_rule(block), pair, 3, 3).tolist()


@pytest.mark.parametrize("seed", range(100))
def test_optimum_on_two_routes_and_every_lossless_rule_below_it(seed):
    rng = np.random.default_rng(seed)
    vocabulary, drafts, drawing = int(rng.integers(2, 6)), int(rng.integers(1, 4)), DRAWINGS[seed % 3]
    drafts = min(drafts, vocabulary)
    p, q = rng.dirichlet(np.full(vocabulary, 0.5), 2)
    optimum = float(optimal_acceptance(p, q, drafts, drawing=drawing))
    assert transport_acceptance(p, q, drafts, drawing=drawing) == pytest.approx(optimum, abs=1e-9)
    assert float(_over_sets(p, q, drafts, drawing)) == pytest.approx(optimum, abs=1e-12)
    found = {}
    for spec in ("lossless", "traversal", "k-seq"):
        rule = ft.tree_rule(spec)
        if drawing in rule.drawings:
            law = position_law(rule, p, q, drafts, drawing=drawing)
            found[spec] = float(law.acceptance)
            assert np.abs(law.induced - p).max() < 1e-12
            assert found[spec] <= optimum + 1e-12
    if "k-seq" in found:
        assert found["k-seq"] >= (1 - 1 / math.e) * optimum - 1e-12
    if drawing == "deterministic":
        assert found["lossless"] == pytest.approx(optimum, abs=1e-12)
