"""Every tree rule says the same under numpy, torch, jax (eager, jit, vmap) and exact arrays, batched, padded or not."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.interpreters import Interpreter
from fly_theory.trees import stack
from tests.trees.helpers import arrays, tree_for, typical_rules

PARENTS = (0, 0, 1, 1, 2, 3, 3)
RULES = typical_rules()
by_spec = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.spec)


def laws(rule, tree):
    """Where the round stops, and the law of (node, next token): rows of impossible nodes are nobody's business."""
    stops, next_token = rule.law(tree)
    return [stops, *(stops[..., node, None] * row for node, row in enumerate(next_token))]


def same(ours, theirs, tolerance=1e-12):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=0, atol=tolerance)


@by_spec
def test_laws_are_laws(rule):
    stops, next_token = rule.law(tree_for(rule, 0, PARENTS, (40,)))
    assert stops.shape == (40, 8)
    assert stops.min() >= 0
    np.testing.assert_allclose(stops.sum(-1), 1, rtol=0, atol=1e-14)
    for node, row in enumerate(next_token):
        np.testing.assert_allclose(row.sum(-1)[stops[:, node] > 1e-12], 1, rtol=0, atol=1e-14)


@by_spec
def test_backends_agree(rule):
    import jax
    import torch

    tree = tree_for(rule, 1, PARENTS, (2, 3))
    given = [np.array(x) for x in (tree.target, tree.draft, tree.tokens)]
    expected = laws(rule, tree)
    uniforms = np.random.default_rng(2).random((2, 3, 7))
    stop = rule.decide(tree, uniforms)

    def of(target, draft, tokens):
        return ft.DraftTree(target, draft, tokens, PARENTS, drawing=tree.drawing)

    torch_tree = of(*map(torch.as_tensor, given))
    same(laws(rule, torch_tree), expected)
    np.testing.assert_array_equal(rule.decide(torch_tree, torch.as_tensor(uniforms)), stop)
    with jax.enable_x64(True):
        both = jax.jit(jax.vmap(jax.vmap(lambda u, *x: (laws(rule, of(*x)), rule.decide(of(*x), u)))))
        found, decided = both(uniforms, *given)
        same(found, expected)
        np.testing.assert_array_equal(decided, stop)


@by_spec
def test_exact_arrays_give_the_same_laws(rule):
    if Interpreter.EXACT in rule.unreadable:
        pytest.skip(rule.unreadable[Interpreter.EXACT])
    rng = np.random.default_rng(3)
    _, _, tokens = arrays(3, PARENTS, (3,), 4, rule.drawings[0])
    rows = [
        [[[Fraction(int(w), int(row.sum())) for w in row] for row in tree] for tree in x]
        for x in rng.integers(1, 9, (2, 3, 8, 4))
    ]
    exact = ft.DraftTree(*map(ft.exact, rows), tokens, PARENTS, drawing=rule.drawings[0])
    rounded = [np.asarray(x, dtype=float) for x in (exact.target, exact.draft)]
    same(laws(rule, exact), laws(rule, ft.DraftTree(*rounded, tokens, PARENTS, drawing=rule.drawings[0])), 1e-14)


@by_spec
def test_padding_changes_nothing(rule):
    small, large = tree_for(rule, 4, (0, 1, 1)), tree_for(rule, 5, PARENTS)
    both = stack([small, large])
    assert both.target.shape == (2, 8, 4)
    together = rule.law(both)
    alone = [rule.law(small), rule.law(large)]
    # The smaller tree's nodes keep their ranks: 1 is the first child, 3 and 4 its children.
    same([together.stops[0, [0, 1, 3, 4]], together.stops[1]], [alone[0].stops, alone[1].stops])
    assert together.stops[0, [2, 5, 6, 7]].tolist() == [0, 0, 0, 0]
    for node, alone_node in ((0, 0), (1, 1), (3, 2), (4, 3)):
        weight = alone[0].stops[alone_node]
        same([weight * together.next_token[node][0]], [weight * alone[0].next_token[alone_node]])
    uniforms = np.random.default_rng(6).random((50, 1, 7))
    of_small = rule.decide(small, uniforms[:, 0, [0, 2, 3]])
    found = rule.decide(both, uniforms)
    np.testing.assert_array_equal(np.array([0, 1, 3, 4])[of_small], found[:, 0])
    np.testing.assert_array_equal(rule.decide(large, uniforms[:, 0]), found[:, 1])


@by_spec
def test_the_decision_integrates_to_the_law(rule):
    """A fine grid of the uniforms of three nodes; every threshold on it is missed by less than a cell."""
    tree = tree_for(rule, 7, (0, 0, 1))
    cells = (np.arange(60) + 0.5) / 60
    grid = np.stack(np.meshgrid(cells, cells, cells), axis=-1).reshape(-1, 3)
    frequency = np.bincount(rule.decide(tree, grid), minlength=4) / len(grid)
    np.testing.assert_allclose(frequency, rule.law(tree).stops, rtol=0, atol=3 / 60)


def test_bad_trees():
    row = [0.5, 0.5]
    for parents, error, message in (
        ([], ShapeError, "at least one drafted token"),
        ([1], InvalidInput, "node 1 the parent 1"),
        ([0, 0], ShapeError, r"do not fit 2 parents"),
    ):
        with pytest.raises(error, match=message):
            ft.DraftTree([row] * 2, [row] * 2, [0], parents)
    with pytest.raises(InvalidInput, match="draft is None"):
        ft.DraftTree([row] * 2, None, [0], [0])
    with pytest.raises(InvalidInput, match="drawing='often' is not one of"):
        ft.DraftTree([row] * 2, None, [0], [0], drawing="often")
    with pytest.raises(InvalidInput, match="tokens contain 2"):
        ft.DraftTree([row] * 2, None, [2], [0], drawing="deterministic")
    with pytest.raises(InvalidInput, match="k-seq verifies siblings drawn with-replacement; those of this tree"):
        ft.tree_rule("k-seq").law(ft.DraftTree([row] * 2, None, [0], [0], drawing="deterministic"))


def test_too_many_trees_are_refused():
    pair = ft.ContextTreePair.random(8, 1, 0)
    for call in (ft.trees.expected_lengths, lambda *a, **k: ft.trees.joint_law(*a, 2, **k)):
        with pytest.raises(InvalidInput, match=r"V=8 and 14 drafted tokens"):
            call(ft.tree_rule("traversal"), pair, ft.trees.branching([2, 2, 2]), drawing="with-replacement")
    with pytest.raises(InvalidInput, match="3 siblings of V=2 tokens cannot all differ"):
        ft.trees.position_law(ft.tree_rule("lossless"), [0.5, 0.5], [0.5, 0.5], 3, drawing="deterministic")
    with pytest.raises(InvalidInput, match="mass on fewer tokens than there are siblings"):
        ft.trees.position_law(ft.tree_rule("lossless"), [0.5, 0.5], [1.0, 0.0], 2, drawing="without-replacement")


def test_a_pair_of_equal_rows_keeps_everything():
    p = [0.5, 0.3, 0.2]
    for rule, drafts in itertools.product(("lossless", "traversal", "k-seq"), (1, 2, 3)):
        law = ft.trees.position_law(ft.tree_rule(rule), p, p, drafts, drawing="with-replacement")
        assert float(law.acceptance) == pytest.approx(1, abs=1e-12)
