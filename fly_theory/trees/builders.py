"""Topologies and deterministic drafts.

A topology is the parents of nodes 1..N; node 0 is the root, the text so far. A `Drafted` has tokens as well, and
becomes a `DraftTree` once the target has judged it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fly_theory.arrays import Array, array_namespace
from fly_theory.errors import InvalidInput
from fly_theory.trees.tree import DraftTree, Parents

__all__ = ["Drafted", "Path", "branching", "chain", "merge", "positive", "stack"]

Path = tuple[int, ...]


def chain(length: int) -> Parents:
    """One draft a position: `length` nodes in a row.

    Raises
    ------
    InvalidInput
        For length < 1.
    """
    return branching([1] * positive("length", length))


def branching(children: Sequence[int]) -> Parents:
    """A full tree whose nodes at depth 0, 1, ... have so many children each: [n] is n candidates for one position.

    Raises
    ------
    InvalidInput
        For no level, or a level without children.
    """
    levels = [positive("children", count) for count in children]
    if not levels:
        msg = "children is empty; a tree has at least one level"
        raise InvalidInput(msg)
    parents: list[int] = []
    last = [0]
    for count in levels:
        parents += [node for node in last for _ in range(count)]
        last = list(range(len(parents) - len(last) * count + 1, len(parents) + 1))
    return tuple(parents)


class Drafted(NamedTuple):
    """Drafted tokens (N,) of one tree, and its parents."""

    tokens: np.ndarray[Any, np.dtype[np.int64]]
    parents: Parents

    def judged_by(self, target: Callable[[Path], Array]) -> DraftTree:
        """The tree with the target's row (V,) after each path of tokens; its children are deterministic."""
        rows = [target(path) for path in self.paths()]
        xp = array_namespace(rows[0])
        return DraftTree(xp.stack(rows), None, xp.asarray(self.tokens), self.parents, drawing="deterministic")

    def paths(self) -> list[Path]:
        """The tokens on the path to each node 0..N."""
        found: list[Path] = [()]
        for token, parent in zip(self.tokens.tolist(), self.parents, strict=True):
            found.append((*found[parent], token))
        return found


def merge(branches: Sequence[Sequence[int]]) -> Drafted:
    """Drafted branches, such as several prompt-lookup continuations, merged into the tree of their common prefixes.

    Siblings stand in the order in which they first occur.

    Raises
    ------
    InvalidInput
        When there is no token in any branch.

    Examples
    --------
    >>> merge([[5, 7], [5, 8, 1], [2]]).paths()
    [(), (5,), (5, 7), (5, 8), (5, 8, 1), (2,)]
    """
    prefixes = [tuple(branch[:length]) for branch in branches for length in range(1, len(branch) + 1)]
    if not prefixes:
        msg = "branches hold no token; a tree has at least one"
        raise InvalidInput(msg)
    return _tree(list(dict.fromkeys(prefixes)))


def stack(trees: Sequence[DraftTree]) -> DraftTree:
    """Single trees as one batch: the smallest topology that holds them all, with the missing nodes as padding.

    Nodes are matched by their ranks among siblings. Rows and tokens of padding are those of the root and 0.

    Raises
    ------
    InvalidInput
        For no tree, batches, or trees that differ in how siblings were drawn.
    """
    if not trees or any(tree.tokens.ndim != 1 for tree in trees) or len({tree.drawing for tree in trees}) != 1:
        msg = "trees must be one or more single trees (no batch axes) whose siblings were drawn in the same way"
        raise InvalidInput(msg)
    ranked = [_by_rank(tree) for tree in trees]
    ranks = sorted({ranks for places in ranked for ranks in places}, key=lambda ranks: (len(ranks), ranks))
    number = {rank: node for node, rank in enumerate(ranks)}
    parents = tuple(number[rank[:-1]] for rank in ranks[1:])
    xp = array_namespace(trees[0].target)
    nodes = [[places.get(rank) for rank in ranks] for places in ranked]
    at = [xp.asarray([node or 0 for node in row]) for row in nodes]
    return DraftTree(
        xp.stack([xp.take(tree.target, index, axis=0) for tree, index in zip(trees, at, strict=True)]),
        None
        if any(tree.draft is None for tree in trees)
        else xp.stack([xp.take(tree.draft, index, axis=0) for tree, index in zip(trees, at, strict=True)]),
        xp.stack(
            [
                xp.stack([tree.tokens[0] * 0 if node is None else tree.token(node) for node in row[1:]])
                for tree, row in zip(trees, nodes, strict=True)
            ]
        ),
        parents,
        drawing=trees[0].drawing,
        present=xp.asarray([[node is not None for node in row[1:]] for row in nodes]),
    )


def _by_rank(tree: DraftTree) -> dict[Path, int]:
    """The node at each path of ranks among siblings."""
    found: dict[Path, int] = {(): 0}
    ranks: dict[int, Path] = {0: ()}
    for node, children in enumerate(tree.children):
        for rank, child in enumerate(children):
            ranks[child] = (*ranks[node], rank)
            found[ranks[child]] = child
    return found


def _tree(paths: list[Path]) -> Drafted:
    """The tree of these paths, in this order; all prefixes of a path come before it."""
    number: dict[Path, int] = {(): 0}
    for path in paths:
        number[path] = len(number)
    return Drafted(np.array([path[-1] for path in paths]), tuple(number[path[:-1]] for path in paths))


def positive(name: str, value: Any) -> int:
    """`value`, refused unless it is an integer >= 1."""
    if not isinstance(value, int) or value < 1:
        msg = f"{name}={value!r} is not allowed; expected an integer >= 1"
        raise InvalidInput(msg)
    return value
