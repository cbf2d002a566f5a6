"""FLy's tree mode above temperature 0: the law against every outcome spelled out, its limits, and its decisions."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.trees import branching, chain, expected_kept, siblingwise
from fly_theory.trees.fly_tree import FlyTreeReleased
from fly_theory.trees.fly_tree_sampled import FlyTreeSampled
from tests.oracle import trees as oracle
from tests.trees.helpers import arrays

TOPOLOGIES = ((0, 0, 1, 1, 2), chain(5), (0, 1, 0, 2, 4, 3), (0, 0, 1, 2, 3, 4), branching([2, 1, 1]))


def exact_tree(seed, parents, vocabulary=3):
    rng = np.random.default_rng(seed)
    _, _, tokens = arrays(seed, parents, (), vocabulary, "deterministic")
    weights = rng.integers(0, 5, (len(parents) + 1, vocabulary)) + np.eye(vocabulary, dtype=int)[0]
    rows = [[Fraction(int(w), int(row.sum())) for w in row] for row in weights]
    return ft.DraftTree(ft.exact(rows), None, tokens, parents, drawing="deterministic"), rows, tokens.tolist()


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("parents", TOPOLOGIES)
def test_stops_and_tokens_are_those_of_all_samples_spelled_out(parents, window):
    for seed in range(2):
        tree, rows, tokens = exact_tree(seed, parents)
        law = FlyTreeSampled(window=window).law(tree)
        expected = oracle.fly_sampled(rows, tokens, parents, window)
        for stop in range(len(parents) + 1):
            probability = law.stops[stop].item()
            assert probability == sum(share for (node, _), share in expected.items() if node == stop)
            for token in range(3):
                emitted = probability * law.next_token[stop][token].item() if probability else 0
                assert emitted == expected.get((stop, token), 0)


@pytest.mark.parametrize("parents", TOPOLOGIES)
def test_without_room_for_a_window_it_is_the_lossless_walk(parents):
    tree, _, _ = exact_tree(7, parents)
    found, walk = (
        rule.law(tree) for rule in (FlyTreeSampled(window=max(tree.depths)), siblingwise(ft.rule("lossless")))
    )
    assert found.stops.tolist() == walk.stops.tolist()
    for node in range(tree.nodes + 1):
        if found.stops[node].item():
            assert found.next_token[node].tolist() == walk.next_token[node].tolist()


@pytest.mark.parametrize("seed", range(20))
def test_at_point_masses_it_is_the_rule_at_temperature_0(seed):
    parents = TOPOLOGIES[seed % len(TOPOLOGIES)]
    target, _, tokens = arrays(seed, parents, (), 3, "deterministic")
    certain = np.eye(3)[target.argmax(-1)]
    tree = ft.DraftTree(certain, None, tokens, parents, drawing="deterministic")
    for window in (1, 2, 3):
        sampled, released = FlyTreeSampled(window=window).law(tree), FlyTreeReleased(window=window).law(tree)
        assert sampled.stops.tolist() == released.stops.tolist()
        stop = int(sampled.stops.argmax())
        assert sampled.next_token[stop].tolist() == released.next_token[stop].tolist()


def test_decisions_follow_the_law():
    """60000 rounds; each of 6 frequencies is refused with probability 1e-9, beyond 6.2 standard deviations."""
    parents, rng = (0, 0, 1, 1, 2), np.random.default_rng(11)
    target, _, tokens = arrays(3, parents, (), 4, "deterministic")
    tree, rule = ft.DraftTree(target, None, tokens, parents, drawing="deterministic"), FlyTreeSampled(window=1)
    stops = np.bincount(np.asarray(rule.decide(tree, rng.random((60_000, 5)))), minlength=6) / 60_000
    law = rule.law(tree).stops
    assert (np.abs(stops - law) <= 6.2 * np.sqrt(law * (1 - law) / 60_000) + 1e-12).all()


def test_a_large_tree_is_no_enumeration():
    """60 nodes: the law is one, more is kept the shorter the window, and a window beyond all paths is lossless."""
    rng = np.random.default_rng(2)
    parents = tuple(int(rng.integers(max(0, node - 12), node)) for node in range(1, 61))
    target, _, tokens = arrays(5, parents, (), 40, "deterministic")
    tree = ft.DraftTree(target, None, tokens, parents, drawing="deterministic")
    kept = []
    for window in (1, 2, 4, 60):
        law = FlyTreeSampled(window=window).law(tree)
        assert law.stops.sum() == pytest.approx(1, abs=1e-12)
        kept.append(float(expected_kept(law, tree)))
    assert kept == sorted(kept, reverse=True)
    lossless = siblingwise(ft.rule("lossless")).law(tree)
    assert kept[-1] == pytest.approx(float(expected_kept(lossless, tree)), abs=1e-12)
