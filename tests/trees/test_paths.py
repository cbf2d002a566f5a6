"""Rules that keep the best path, against naive readings of their definitions and the block rules they extend."""

import itertools

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.trees import branching, chain, expand, merge
from fly_theory.trees.tree import next_sibling
from tests.trees.helpers import arrays


def likely_tree(seed, parents, vocabulary=3):
    """Three tokens in four are the target's argmax."""
    target, _, tokens = arrays(seed, parents, (), vocabulary, "deterministic")
    rng = np.random.default_rng(seed + 1000)
    for node, parent in enumerate(parents, start=1):
        if rng.random() < 0.75:
            tokens[node - 1] = target[parent].argmax()
    return ft.DraftTree(target, None, tokens, parents, drawing="deterministic")


def block_of(tree, path):
    rows = tree.target[[0, *path]]
    return ft.Block(rows, rows[:-1], tree.tokens[[node - 1 for node in path]])


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    ("tree_spec", "block_spec"),
    [
        ("fly-tree:theta=0.5,window=1", "fly:theta=0.5,window=1"),
        ("fly-tree:theta=0.8,window=0", "fly:theta=0.8,window=0"),
        ("fly-tree:theta=0.3,window=2", "fly:theta=0.3,window=2"),
        ("fly-tree-released:window=2", "fly-released:theta=0,window=2"),
        ("fly-tree-released:window=3", "fly-released:theta=0,window=3"),
    ],
)
def test_fly_keeps_what_its_best_path_keeps_as_a_block(tree_spec, block_spec, seed):
    parents = [(0, 1, 2, 2, 3, 4, 4), chain(5), branching([2, 1, 2, 1])][seed % 3]
    tree = likely_tree(seed, parents)
    leaves = sorted(tree.path(node) for node, children in enumerate(tree.children) if not children)
    kept = [int(ft.block_rule(block_spec).length_law(block_of(tree, path)).argmax()) for path in leaves]
    law = ft.tree_rule(tree_spec).law(tree)
    stop = int(law.stops.argmax())
    best = leaves[kept.index(max(kept))]
    assert stop == (0, *best)[max(kept)]
    assert law.next_token[stop].argmax() == tree.target[stop].argmax()


@pytest.mark.parametrize("seed", range(20))
def test_typical_acceptance_keeps_the_longest_then_likeliest_path(seed):
    tree = likely_tree(seed, branching([3, 2, 2]))
    rule = ft.tree_rule("typical-path:eps=0.3,delta=0.6")

    def allowed(node):
        p = tree.target[tree.parents[node - 1]]
        threshold = min(0.3, 0.6 * np.exp((p[p > 0] * np.log(p[p > 0])).sum()))
        return p[tree.tokens[node - 1]] > threshold

    def log_likelihood(node):
        return sum(np.log(tree.target[tree.parents[n - 1]][tree.tokens[n - 1]]) for n in tree.path(node))

    whole = [node for node in range(tree.nodes + 1) if all(map(allowed, tree.path(node)))]
    best = max(whole, key=lambda node: (tree.depths[node], round(log_likelihood(node), 12), -node))
    assert int(rule.law(tree).stops.argmax()) == best


@pytest.mark.parametrize("seed", range(10))
def test_greedy_path_is_the_target_greedy_text(seed):
    tree = likely_tree(seed, branching([2, 2, 2]))
    law = ft.tree_rule("greedy-path").law(tree)
    agreeing = [
        node
        for node in range(tree.nodes + 1)
        if all(tree.tokens[n - 1] == tree.target[tree.parents[n - 1]].argmax() for n in tree.path(node))
    ]
    assert int(law.stops.argmax()) in agreeing
    assert tree.depths[int(law.stops.argmax())] == max(tree.depths[node] for node in agreeing)


def test_expansion_keeps_the_likeliest_paths():
    laws = {
        path: np.random.default_rng([*path, 9]).dirichlet(np.ones(6))
        for n in range(3)
        for path in itertools.product(range(6), repeat=n)
    }
    tree = expand(laws.__getitem__, top_k=6, depth=3, total=20)
    likelihood = {
        path: np.prod([laws[path[:i]][token] for i, token in enumerate(path)])
        for n in (1, 2)
        for path in itertools.product(range(6), repeat=n)
    }
    kept = [path for path in tree.paths()[1:] if len(path) < 3]
    assert len(tree.tokens) == 20
    assert set(kept) == set(sorted(likelihood, key=lambda path: -likelihood[path])[: len(kept)])
    assert all(0 <= parent < node for node, parent in enumerate(tree.parents, start=1))
    judged = tree.judged_by(lambda path: np.full(6, 1 / 6))
    assert judged.depths == tuple(len(path) for path in tree.paths())


def test_merged_branches_share_their_prefixes():
    tree = merge([[5, 7], [5, 8, 1], [5, 7, 2]])
    assert tree.paths() == [(), (5,), (5, 7), (5, 8), (5, 8, 1), (5, 7, 2)]
    assert tree.parents == (0, 1, 1, 3, 2)


@pytest.mark.parametrize("exact", [False, True])
def test_deterministic_siblings_differ_also_where_the_draft_has_no_mass(exact):
    q = ft.exact(["1/4", 0, "3/4", 0]) if exact else np.array([0.25, 0, 0.75, 0])
    drafted = []
    for _ in range(4):
        law = next_sibling(q, tuple(drafted), "deterministic")
        drafted.append(np.asarray(law, dtype=float).argmax())
    assert drafted == [2, 0, 1, 3]
