"""Which block rules are lossless, decided on exact joint laws; how long their blocks are."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft

LOSSLESS = ("lossless", "block", "hierarchical", "hierarchical-naive")
LOSSY = ("hierarchical-mincap", "hierarchical-uncapped", "hierarchical-uncapped:l=0.5")
# V, depth of the context tree, K, tokens of text: rounds end inside the text and texts inside rounds.
SHAPES = [
    (2, 3, 1, 3),
    (2, 4, 4, 5),
    (3, 2, 2, 4),
    (3, 3, 3, 4),
    (3, 2, 4, 2),
    (4, 2, 1, 3),
    (4, 2, 3, 4),
    (4, 3, 4, 3),
]
SMALL = [(2, 3, 2, 4), (2, 2, 4, 3), (3, 2, 2, 3), (3, 1, 3, 4)]


def pairs(shapes, count, **options):
    """`count` pairs, every fourth adversarial, as (pair, K, length)."""
    for seed in range(count):
        vocabulary, depth, draft_length, length = shapes[seed % len(shapes)]
        make = ft.ContextTreePair.adversarial if seed % 4 == 3 else ft.ContextTreePair.random
        yield make(vocabulary, depth, seed, **options), draft_length, length


def total_variation(a, b):
    return abs(a - b).sum() / 2


def test_lossless_rules_give_the_law_of_the_target_on_200_pairs():
    for pair, draft_length, length in pairs(SHAPES, 200):
        target = ft.target_law(pair, length)
        for spec in LOSSLESS:
            assert total_variation(ft.joint_law(ft.block_rule(spec), pair, draft_length, length), target) < 1e-12


def test_they_do_so_exactly_on_20_pairs():
    for pair, draft_length, length in pairs(SMALL, 20, exact=True):
        target = ft.target_law(pair, length).tolist()
        for spec in LOSSLESS:
            assert ft.joint_law(ft.block_rule(spec), pair, draft_length, length).tolist() == target


def test_hierarchical_and_block_verification_are_one_rule():
    hierarchical, block = ft.block_rule("hierarchical"), ft.block_rule("block")
    for pair, draft_length, _ in pairs(SHAPES, 200):
        ours, theirs = (ft.expected_lengths(br, pair, draft_length) for br in (hierarchical, block))
        assert np.allclose(ours.law, theirs.law, rtol=0, atol=1e-14)
        assert ours.kept == pytest.approx(theirs.kept, abs=1e-13)
    for pair, draft_length, length in pairs(SMALL, 20, exact=True):
        ours, theirs = (ft.expected_lengths(br, pair, draft_length) for br in (hierarchical, block))
        assert ours.law.tolist() == theirs.law.tolist()
        laws = [ft.joint_law(br, pair, draft_length, length).tolist() for br in (hierarchical, block)]
        assert laws[0] == laws[1]


def test_block_verification_keeps_at_least_what_the_token_rule_keeps():
    token, block = ft.block_rule("lossless"), ft.block_rule("block")
    gains = [
        ft.expected_lengths(block, pair, draft_length).kept - ft.expected_lengths(token, pair, draft_length).kept
        for pair, draft_length, _ in pairs(SHAPES, 200)
    ]
    assert min(gains) > -1e-12
    assert max(gains) > 0.1


def test_kept_drafts_of_the_published_example_as_fractions():
    p, q = ["1/3", "2/3"], ["2/3", "1/3"]
    pair = ft.MarkovPair(ft.exact([p, p]), ft.exact([q, q]), ft.exact([1, 0]))
    kept = {spec: ft.expected_lengths(ft.block_rule(spec), pair, 2).kept.item() for spec in ("lossless", "block")}
    assert kept == {"lossless": Fraction(10, 9), "block": Fraction(11, 9)}


@pytest.mark.parametrize("spec", LOSSY)
def test_a_single_redraw_without_a_running_maximum_is_lossy(spec):
    distances = [
        total_variation(ft.joint_law(ft.block_rule(spec), *rest), ft.target_law(rest[0], rest[2]))
        for rest in pairs(SHAPES, 40)
        if rest[1] > 1
    ]
    assert max(distances) > 0.05


@pytest.mark.parametrize(("spec", "first_row"), [(LOSSY[0], (3, 6)), (LOSSY[1], (3, 6)), (LOSSY[2], (12, 6))])
def test_the_published_example_is_a_witness_against_it(spec, first_row):
    """Two tokens of text at p = (1/3, 2/3), q = (2/3, 1/3), K = 2, in 27ths; the target's law is 3 6 6 12."""
    p, q = ["1/3", "2/3"], ["2/3", "1/3"]
    pair = ft.MarkovPair(ft.exact([p, p]), ft.exact([q, q]), ft.exact([1, 0]))
    law = ft.joint_law(ft.block_rule(spec), pair, 2, 2)
    second_row = (9, 9) if spec != LOSSY[2] else (6, 3)
    assert (law * 27).tolist() == [list(first_row), list(second_row)]
    assert (ft.target_law(pair, 2) * 27).tolist() == [[3, 6], [6, 12]]


def test_capping_prefixes_at_one_keeps_as_many_drafts_as_not_capping_them():
    mincap, uncapped = ft.block_rule("hierarchical-mincap"), ft.block_rule("hierarchical-uncapped")
    for pair, draft_length, _ in pairs(SMALL, 20, exact=True):
        laws = [ft.expected_lengths(br, pair, draft_length).law.tolist() for br in (mincap, uncapped)]
        assert laws[0] == laws[1]


def test_completing_the_block_keeps_more_drafts_but_yields_fewer_tokens_a_call():
    pair = ft.ContextTreePair.random(4, 3, 7)
    naive, block = (ft.expected_lengths(ft.block_rule(spec), pair, 4) for spec in ("hierarchical-naive", "block"))
    assert naive.kept > block.kept
    assert naive.tokens_per_call < block.tokens_per_call
