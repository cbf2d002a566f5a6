"""Toy pairs: contexts follow each other as texts do, generators are what they say, bad tables are refused."""

import itertools

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import DistributionError, ShapeError

ROWS = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(("vocabulary", "depth"), [(1, 2), (2, 0), (2, 3), (3, 2)])
def test_contexts_of_a_tree_are_the_last_tokens(vocabulary, depth):
    pair = ft.ContextTreePair.random(vocabulary, depth, 0)
    contexts = [text for n in range(depth + 1) for text in itertools.product(range(vocabulary), repeat=n)]
    assert pair.contexts == len(contexts)
    assert pair.initial.tolist() == [1, *[0] * (len(contexts) - 1)]
    for i, text in enumerate(contexts):
        for token in range(vocabulary):
            longer = (*text, token)
            assert contexts[pair.successor[i, token]] == longer[max(0, len(longer) - depth) :]


def test_the_last_token_is_the_context_of_a_markov_pair():
    pair = ft.MarkovPair(ROWS, ROWS, [0.3, 0.7])
    assert pair.successor.tolist() == [[0, 1], [0, 1]]
    assert pair.initial.tolist() == [0.3, 0.7]


def test_a_markov_pair_is_a_tree_of_depth_one_after_its_first_context():
    tree = ft.ContextTreePair.random(3, 1, 4)
    markov = ft.MarkovPair(tree.target[1:], tree.draft[1:], tree.target[0])
    after_one = ft.joint_law(ft.block_rule("lenience:l=0.5"), markov, 2, 2)
    expected = sum(
        tree.target[0, v] * ft.joint_law(ft.block_rule("lenience:l=0.5"), started(tree, v), 2, 2) for v in range(3)
    )
    np.testing.assert_allclose(after_one, expected, rtol=0, atol=1e-15)


def started(tree, token):
    return ft.MarkovPair(tree.target[1:], tree.draft[1:], np.eye(3)[token])


@pytest.mark.parametrize("make", [ft.ContextTreePair.random, ft.ContextTreePair.adversarial])
def test_the_exact_pair_is_the_same_pair(make):
    pair, exact = make(3, 2, 8), make(3, 2, 8, exact=True)
    for name in ("target", "draft"):
        np.testing.assert_array_equal(np.asarray(getattr(exact, name), dtype=float), getattr(pair, name))


def test_adversarial_rows_have_what_breaks_verifiers():
    pair = ft.ContextTreePair.adversarial(4, 4, 0)
    p, q = pair.target, pair.draft
    assert (p == q).all(-1).any()
    assert (np.minimum(p, q).sum(-1) == 0).any()
    assert (q == 1).any()
    assert (p == 1).any()
    assert ((p == q) & (p > 0) & ~(p == q).all(-1, keepdims=True)).any()
    assert (p == q[:, ::-1]).all(-1).any()


def test_a_tempered_draft_is_its_target_at_a_temperature():
    pair = ft.ContextTreePair.tempered(4, 2, 1, temperature=2)
    np.testing.assert_allclose(pair.draft, (root := np.sqrt(pair.target)) / root.sum(-1, keepdims=True), atol=1e-15)
    greedy = ft.ContextTreePair.tempered(4, 2, 1, temperature=0)
    np.testing.assert_array_equal(greedy.draft, np.eye(4)[greedy.target.argmax(-1)])
    assert ft.expected_lengths(ft.block_rule("fly:theta=2,window=0"), greedy, 3).kept == 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ft.MarkovPair([[0.5, 0.6], [0.5, 0.5]], ROWS, [1.0, 0.0]),
            DistributionError,
            "target row 0 sums to 1.1",
        ),
        (
            lambda: ft.MarkovPair(ROWS, [[0.5, 0.4], [0.5, 0.5]], [1.0, 0.0]),
            DistributionError,
            "draft row 0 sums to 0.9",
        ),
        (lambda: ft.MarkovPair(ROWS, ROWS, [0.5, 0.4]), DistributionError, "start sums to 0.9"),
        (lambda: ft.MarkovPair(ROWS, ROWS, [1.0]), ShapeError, r"start has shape \(1,\); expected \(2,\)"),
        (lambda: ft.MarkovPair([*ROWS, [0.5, 0.5]], [*ROWS, [0.5, 0.5]], [1.0, 0.0]), ShapeError, r"has \(V, V\)"),
        (lambda: ft.MarkovPair(ROWS, [[1.0]], [1.0, 0.0]), ShapeError, "differ in shape"),
        (lambda: ft.MarkovPair([0.5, 0.5], [0.5, 0.5], [1.0, 0.0]), ShapeError, "one row a context"),
        (lambda: ft.ContextTreePair(ROWS, ROWS, 1), ShapeError, "target has 2 rows; .* has 3"),
    ],
)
def test_bad_tables_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
