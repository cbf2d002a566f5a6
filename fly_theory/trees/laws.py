"""Exact laws of what a tree rule does, by enumerating every tree that could have been drafted.

Float rows give float laws, exact rows exact ones.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import Array, array_namespace, constant, device, take
from fly_theory.distributions import as_pair, trusted_inputs
from fly_theory.errors import InvalidInput, ShapeError, ZeroResidualError
from fly_theory.joint_law import chained, cut
from fly_theory.pairs import Contexts, Pair
from fly_theory.trees.base import TreeLaw, TreeRule
from fly_theory.trees.tree import DraftTree, Drawing, Parents, check_drawing, next_sibling

__all__ = ["PositionLaw", "TreeLengths", "expected_lengths", "joint_law", "position_law"]

# Largest table held at once (a gigabyte or two in float64); contexts are taken in batches of about the smaller number.
_AT_ONCE, _BATCH = 2**24, 2**20
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
        For drafts < 1, a drawing that the rule or q does not allow, or more than 2^24 probabilities to enumerate.
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
        tree = _trees(rows, laws, parents, drawing)
        law, weights = rule.law(tree), _weights(tree)
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
        xp, size = array_namespace(pair.target), max(1, _BATCH // _table(parents, pair.vocabulary))
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
    tree, law, mass = _round(rule, pair, start, parents, drawing)
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
    tokens, at = _assignments(len(parents), pair.vocabulary), [np.broadcast_to(contexts[:, None], (len(contexts), 1))]
    for node, parent in enumerate(parents, start=1):
        at.append(pair.successor[at[parent], tokens[:, node - 1]])
    along = np.stack(np.broadcast_arrays(*at), axis=-1)
    with trusted_inputs():
        tree = _trees(_rows(pair.target, along), _rows(pair.draft, along), parents, drawing)
        law, weights = rule.law(tree), _weights(tree)
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


def _assignments(nodes: int, vocabulary: int) -> npt.NDArray[np.int64]:
    """All V^N ways to give N nodes a token, in lexicographic order."""
    return np.indices((vocabulary,) * nodes).reshape(nodes, -1).T


def _trees(target: Array, draft: Array, parents: Parents, drawing: Drawing) -> DraftTree:
    """The trees with all assignments of tokens, one of the last batch axis each."""
    tokens = _assignments(len(parents), target.shape[-1])
    return DraftTree(
        target, draft, array_namespace(target).asarray(tokens, device=device(target)), parents, drawing=drawing
    )


def _weights(tree: DraftTree) -> Array:
    """Probability (...,) that the drafter drafts these tokens.

    Raises
    ------
    InvalidInput
        When more siblings are to be drawn without replacement than tokens have mass.
    """
    xp = array_namespace(tree.target)
    weights = xp.ones_like(tree.target[..., 0, 0])
    for node, children in enumerate(tree.children):
        earlier: tuple[Array, ...] = ()
        for child in children:
            weights = weights * take(next_sibling(tree.draft[..., node, :], earlier, tree.drawing), tree.token(child))
            earlier = (*earlier, tree.token(child))
    if bool(xp.any(xp.sum(weights, axis=-1) < constant(0.5, weights))):
        msg = f"siblings drawn {tree.drawing}: a draft row has mass on fewer tokens than there are siblings"
        raise InvalidInput(msg)
    return weights


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


def _table(parents: Parents, vocabulary: int) -> int:
    """Numbers held for all trees of one context: a few rows a node."""
    return int(vocabulary ** (len(parents) + 1)) * (len(parents) + 1)


def _check(rule: Any, parents: Parents, vocabulary: int, drawing: Any) -> None:
    if not isinstance(rule, TreeRule):
        msg = f"rule={rule!r} is no tree rule; write ft.tree_rule(SPEC)"
        raise InvalidInput(msg)
    check_drawing(drawing)
    if not parents:
        msg = "no drafted token: give at least one candidate"
        raise InvalidInput(msg)
    if drawing != "with-replacement":
        most = max(parents.count(parent) for parent in parents)
        if most > vocabulary:
            msg = f"{most} siblings of V={vocabulary} tokens cannot all differ; draw them with replacement, or fewer"
            raise InvalidInput(msg)
    if _table(parents, vocabulary) > _AT_ONCE:
        msg = (
            f"V={vocabulary} and {len(parents)} drafted tokens: the drafted trees have about "
            f"10^{math.log10(_table(parents, vocabulary)):.0f} probabilities, more than the {_AT_ONCE:.1e} that are "
            "enumerated; use simulators.simulate for this size"
        )
        raise InvalidInput(msg)


def _check_residuals(rule: TreeRule, mass: Array, law: TreeLaw) -> None:
    xp = array_namespace(mass)
    rounding = _ROUNDING[str(mass.dtype).split(".")[-1]]
    for node, next_token in enumerate(law.next_token):
        empty = (mass[..., node] > rounding) & ~(xp.sum(next_token, axis=-1) > 0)
        if bool(xp.any(empty)):
            probability = xp.max(xp.where(empty, mass[..., node], xp.zeros_like(mass[..., node])))
            msg = f"{rule.spec} stops with probability {probability} at node {node}, with no token to emit there"
            raise ZeroResidualError(msg)
