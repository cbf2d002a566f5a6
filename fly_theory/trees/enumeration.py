"""Every tree that could have been drafted on one topology, and how likely each is."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import Array, array_namespace, constant, device, take
from fly_theory.errors import InvalidInput
from fly_theory.trees.tree import DraftTree, Drawing, Parents, check_drawing, next_sibling

__all__ = ["all_trees", "assignments", "check_enumerable", "drafted_weights", "table_size"]

# Largest table held at once: a gigabyte or two in float64.
_AT_ONCE = 2**24


def assignments(nodes: int, vocabulary: int) -> npt.NDArray[np.int64]:
    """All V^N ways (V^N, N) to give N nodes a token, in lexicographic order."""
    return np.indices((vocabulary,) * nodes).reshape(nodes, -1).T


def all_trees(target: Array, draft: Array, parents: Parents, drawing: Drawing) -> DraftTree:
    """The trees with all assignments of tokens, along the last batch axis; rows (..., V^N or 1, N+1, V)."""
    tokens = assignments(len(parents), target.shape[-1])
    ids = array_namespace(target).asarray(tokens, device=device(target))
    return DraftTree(target, draft, ids, parents, drawing=drawing)


def drafted_weights(tree: DraftTree) -> Array:
    """Probability (..., V^N) that the drafter drafts each of `all_trees`.

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
            law = next_sibling(tree.draft[..., node, :], earlier, tree.drawing)  # type: ignore[index]
            weights = weights * take(law, tree.token(child))
            earlier = (*earlier, tree.token(child))
    if bool(xp.any(xp.sum(weights, axis=-1) < 1 - constant(1e-4, weights))):
        msg = f"siblings drawn {tree.drawing}: a draft row has mass on fewer tokens than there are siblings"
        raise InvalidInput(msg)
    return weights


def table_size(parents: Parents, vocabulary: int) -> int:
    """Numbers held for all trees of one context: a row a node and tree."""
    return int(vocabulary ** (len(parents) + 1)) * (len(parents) + 1)


def check_enumerable(parents: Parents, vocabulary: int, drawing: Any) -> None:
    """Refuse topologies without a drafted token, with more siblings than can differ, or too many trees."""
    check_drawing(drawing)
    if not parents:
        msg = "there is no drafted token; give at least one candidate"
        raise InvalidInput(msg)
    most = max(parents.count(parent) for parent in parents)
    if drawing != "with-replacement" and most > vocabulary:
        msg = f"{most} siblings of V={vocabulary} tokens cannot all differ; draw them with replacement, or fewer"
        raise InvalidInput(msg)
    if table_size(parents, vocabulary) > _AT_ONCE:
        msg = (
            f"V={vocabulary} and {len(parents)} drafted tokens: all trees together have about "
            f"10^{math.log10(table_size(parents, vocabulary)):.0f} probabilities, more than the {_AT_ONCE:.1e} that "
            "are enumerated"
        )
        raise InvalidInput(msg)
