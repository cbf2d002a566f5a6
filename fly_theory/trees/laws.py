"""Exact laws of what a tree rule does, by enumerating every tree that could have been drafted.

Float rows give float laws, exact rows exact ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fly_theory.arrays import Array, array_namespace, device
from fly_theory.distributions import as_pair, trusted_inputs
from fly_theory.errors import InvalidInput, ShapeError, ZeroResidualError
from fly_theory.joint_law import chained, cut
from fly_theory.pairs import Contexts, Pair
from fly_theory.trees.base import TreeLaw, TreeRule
from fly_theory.trees.enumeration import all_trees, assignments, check_enumerable, drafted_weights, table_size
from fly_theory.trees.tree import DraftTree, Drawing, Parents

__all__ = ["PositionLaw", "TreeLengths", "expected_lengths", "joint_law", "position_law"]

# Contexts are enumerated in batches of about this many probabilities.
_BATCH = 2**20
# Probabilities below this are rounding.
_ROUNDING = {"float64": 1e-12, "float32": 1e-5, "rational": 0}


class PositionLaw(NamedTuple):
    """Law of one emitted token when n candidates are drafted for its position.

    accepted : (V,)
        Probability that a candidate is kept, and is this token.
    redrawn : (V,)
        Probability that none is kept, and this token is emitted in their place.
    """

    accepted: Array
    redrawn: Array

    @property
    def acceptance(self) -> Array:
        """Probability () that a candidate is kept."""
        return array_namespace(self.accepted).sum(self.accepted, axis=-1)

    @property
    def induced(self) -> Array:
        """Law (V,) of the emitted token."""
        return self.accepted + self.redrawn


class TreeLengths(NamedTuple):
    """How long the first round of a tree rule is.

    law : (depth+1,)
        Probability that a path of 0, 1, ... drafted tokens is kept.
    kept : ()
        Expected number of drafted tokens kept; `kept + 1` tokens are emitted.
    """

    law: Array
    kept: Any


def position_law(rule: TreeRule, p: Array, q: Array, drafts: int, *, drawing: Drawing) -> PositionLaw:
    """Exact law of the token at one position with `drafts` candidates from the draft q (V,), under the target p (V,).

    Raises
    ------
    InvalidInput
        For drafts < 1, a drawing that the rule or q does not allow, or too many trees to enumerate.
    ZeroResidualError
        When the rule rejects all candidates with positive probability where it has no token to emit.
    """
    p, q = as_pair(p, q)
    if p.ndim != 1 or q.ndim != 1:
        msg = (
            f"p has shape {tuple(p.shape)} and q {tuple(q.shape)}; the law of a position is that of one pair, (V,) each"
        )
        raise ShapeError(msg)
    xp, vocabulary, parents = array_namespace(p, q), p.shape[-1], (0,) * drafts
    _check(rule, parents, vocabulary, drawing)
    rows = xp.broadcast_to(p[None, :], (drafts + 1, vocabulary))
    laws = xp.broadcast_to(q[None, :], (drafts + 1, vocabulary))
    with trusted_inputs():
        tree = all_trees(rows, laws, parents, drawing)
        law, weights = rule.law(tree), drafted_weights(tree)
    mass = weights[:, None] * law.stops
    _check_residuals(rule, mass, law)
    redrawn = xp.sum(mass[:, 0, None] * law.next_token[0], axis=0)
    return PositionLaw(sum(_along(mass[:, k, None], (k,), drafts, vocabulary) for k in range(1, drafts + 1)), redrawn)


def joint_law(rule: TreeRule, pair: Pair, parents: Sequence[int], length: int, *, drawing: Drawing) -> Array:
    """Exact joint law (V,) * length of the first `length` tokens that a tree rule emits over repeated rounds.

    Each round drafts a tree of this topology from the pair's draft. The rule is lossless on this pair, topology and
    length exactly when the result equals `ft.target_law(pair, length)`.

    Raises
    ------
    InvalidInput, ZeroResidualError
        As `position_law`, and for length < 1.
    """
    parents = tuple(parents)
    _check(rule, parents, pair.vocabulary, drawing)

    def one_round(contexts: Contexts) -> dict[int, Array]:
        xp, size = array_namespace(pair.target), max(1, _BATCH // table_size(parents, pair.vocabulary))
        batches = [contexts[i : i + size] for i in range(0, len(contexts), size)]
        parts = [_emitted(rule, pair, batch, parents, drawing, length) for batch in batches]
        return {count: xp.concat([part[count] for part in parts], axis=0) for count in parts[0]}

    return chained(pair, length, one_round)


def expected_lengths(rule: TreeRule, pair: Pair, parents: Sequence[int], *, drawing: Drawing) -> TreeLengths:
    """Law and mean of the number of drafted tokens kept in the first round on this pair.

    Raises
    ------
    InvalidInput, ZeroResidualError
        As `position_law`.
    """
    parents = tuple(parents)
    _check(rule, parents, pair.vocabulary, drawing)
    xp, start = array_namespace(pair.target), np.flatnonzero(np.asarray(pair.initial > 0))
    tree, _, mass = _round(rule, pair, start, parents, drawing)
    initial = xp.take(pair.initial, xp.asarray(start, device=device(pair.target)), axis=0)
    stops = xp.sum(initial[:, None] * xp.sum(mass, axis=1), axis=0)
    by_depth = [
        sum(stops[node] for node in range(tree.nodes + 1) if tree.depths[node] == depth)
        for depth in range(max(tree.depths) + 1)
    ]
    return TreeLengths(xp.stack(by_depth), sum(depth * by_depth[depth] for depth in range(1, len(by_depth))))


# -- one round ---------------------------------------------------------------------------------------------------------


def _round(
    rule: TreeRule, pair: Pair, contexts: Contexts, parents: Parents, drawing: Drawing
) -> tuple[DraftTree, TreeLaw, Array]:
    """All trees from each of B contexts (batch axes (B, V^N)), what the rule does, and the mass of tree and node."""
    tokens, at = assignments(len(parents), pair.vocabulary), [np.broadcast_to(contexts[:, None], (len(contexts), 1))]
    for node, parent in enumerate(parents, start=1):
        at.append(pair.successor[at[parent], tokens[:, node - 1]])
    along = np.stack(np.broadcast_arrays(*at), axis=-1)
    with trusted_inputs():
        tree = all_trees(_rows(pair.target, along), _rows(pair.draft, along), parents, drawing)
        law, weights = rule.law(tree), drafted_weights(tree)
    mass = weights[..., None] * law.stops
    _check_residuals(rule, mass, law)
    return tree, law, mass


def _emitted(
    rule: TreeRule, pair: Pair, contexts: Contexts, parents: Parents, drawing: Drawing, length: int
) -> dict[int, Array]:
    """{count: (B, V^count)}: probability that the round emits just these tokens, or starts with them."""
    tree, law, mass = _round(rule, pair, contexts, parents, drawing)
    laws: dict[int, Array] = {}
    for node, depth in enumerate(tree.depths):
        texts = _along(mass[..., node, None] * law.next_token[node], tree.path(node), tree.nodes, pair.vocabulary)
        laws[depth + 1] = laws.get(depth + 1, 0) + texts
    return cut(laws, length, pair.vocabulary)


def _along(mass: Array, path: tuple[int, ...], nodes: int, vocabulary: int) -> Array:
    """Masses (..., V^N, W) by assignment of tokens, summed over the tokens off the path: (..., V^len(path) W)."""
    xp, batch = array_namespace(mass), tuple(mass.shape[:-2])
    by_node = xp.reshape(mass, (*batch, *(vocabulary,) * nodes, mass.shape[-1]))
    off = tuple(len(batch) + node - 1 for node in range(1, nodes + 1) if node not in path)
    return xp.reshape(xp.sum(by_node, axis=off) if off else by_node, (*batch, -1))


def _rows(table: Array, index: Contexts) -> Array:
    xp = array_namespace(table)
    flat = xp.asarray(index.reshape(-1), device=device(table))
    return xp.reshape(xp.take(table, flat, axis=0), (*index.shape, table.shape[-1]))


# -- checks ------------------------------------------------------------------------------------------------------------


def _check(rule: Any, parents: Parents, vocabulary: int, drawing: Any) -> None:
    if not isinstance(rule, TreeRule):
        msg = f"rule={rule!r} is no tree rule; write ft.tree_rule(SPEC)"
        raise InvalidInput(msg)
    check_enumerable(parents, vocabulary, drawing)


def _check_residuals(rule: TreeRule, mass: Array, law: TreeLaw) -> None:
    xp = array_namespace(mass)
    rounding = _ROUNDING[str(mass.dtype).split(".")[-1]]
    for node, next_token in enumerate(law.next_token):
        empty = (mass[..., node] > rounding) & ~(xp.sum(next_token, axis=-1) > 0)
        if bool(xp.any(empty)):
            probability = xp.max(xp.where(empty, mass[..., node], xp.zeros_like(mass[..., node])))
            msg = f"{rule.spec} stops with probability {probability} at node {node}, with no token to emit there"
            raise ZeroResidualError(msg)
