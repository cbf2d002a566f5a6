"""The draft tree: several candidates a position, with the rows they are judged by.

Node 0 is the root, the text so far; nodes 1..N are drafted tokens, and every parent comes before its children. Siblings
stand in the order in which they were drawn, which is the order in which they are tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fly_theory.arrays import Array, array_namespace, device, normalise, one_hot
from fly_theory.distributions import as_distribution
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.rules.base import check_tokens

__all__ = ["DRAWINGS", "DraftTree", "Drawing", "Parents", "Siblings", "check_drawing", "next_sibling", "without"]

Parents = tuple[int, ...]

Drawing = Literal["with-replacement", "without-replacement", "deterministic"]
DRAWINGS: tuple[Drawing, ...] = get_args(Drawing)


class Siblings(NamedTuple):
    """The children of one node.

    tokens : n arrays (...,)
        Their token ids, in the order in which they are tried.
    present : n boolean arrays (...,), or None
        Which of them are there; None when all are.
    draft : (..., V) or None
        The law q that they were drawn from.
    drawing :
        How they were drawn.
    """

    tokens: tuple[Array, ...]
    present: tuple[Array, ...] | None
    draft: Array | None
    drawing: Drawing

    def laws(self, like: Array) -> Iterator[Array]:
        """The law (..., V) that each sibling was drawn from, given those before it; point masses look like `like`."""
        q = self.draft
        for rank, token in enumerate(self.tokens):
            if self.drawing == "deterministic":
                yield one_hot(token, like)
                continue
            if self.drawing == "without-replacement" and rank:
                q = normalise(without(q, self.tokens[rank - 1]))
            yield q


@dataclass(frozen=True, eq=False)
class DraftTree:
    """N drafted tokens in a tree, with the rows they are judged by; batch axes broadcast, lists become numpy arrays.

    target : (..., N+1, V)
        Next-token laws of the target p after the path to each node.
    draft : (..., N+1, V), or None for deterministic children
        Row v is the law q that the children of node v were drawn from; rows of leaves are not read.
    tokens : (..., N)
        Token ids of nodes 1..N.
    parents : N integers
        The parent of nodes 1..N, the same for the whole batch: parents[j - 1] < j is the parent of node j.
    drawing :
        How siblings were drawn: "with-replacement", independently from q; "without-replacement", each from q without
        the tokens before it, renormalised; "deterministic", chosen without chance, such as the k most probable.
    present : (..., N) booleans, or None
        Where False, the node and all below it are padding; their tokens are any valid ids. None: nothing is padding.

    The topology is no array: inside `jax.jit`, make the tree from its arrays there.

    Raises
    ------
    DistributionError
        For rows that are no distributions, naming the argument, the row and the entry.
    ShapeError
        For no drafted token, or shapes that do not fit together.
    InvalidInput
        For token ids that are no integers or outside the vocabulary, parents that do not come first, an unknown
        drawing, or no draft where siblings are drawn.
    """

    target: Array
    draft: Array | None
    tokens: Array
    parents: Parents
    drawing: Drawing = "with-replacement"
    present: Array | None = None

    def __post_init__(self) -> None:
        check_drawing(self.drawing)
        target = as_distribution(self.target, "target")
        draft = None if self.draft is None else as_distribution(self.draft, "draft")
        if draft is None and self.drawing != "deterministic":
            msg = f"draft is None, but siblings drawn {self.drawing} are judged by the law they were drawn from"
            raise InvalidInput(msg)
        tokens = _array(self.tokens, target)
        present = None if self.present is None else _array(self.present, target)
        parents = tuple(int(parent) for parent in self.parents)
        _check_parents(parents)
        batch = _batch(target, draft, tokens, present, len(parents))
        check_tokens(tokens, target)
        xp = array_namespace(target)
        for name, value, own in (("target", target, 2), ("draft", draft, 2), ("tokens", tokens, 1)):
            stretched = None if value is None else xp.broadcast_to(value, (*batch, *value.shape[-own:]))
            object.__setattr__(self, name, stretched)
        object.__setattr__(
            self, "present", present if present is None else xp.broadcast_to(present, (*batch, len(parents)))
        )
        object.__setattr__(self, "parents", parents)

    @property
    def nodes(self) -> int:
        """N, the number of drafted tokens, padding included."""
        return len(self.parents)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each node 0..N, in the order in which they are tried."""
        found: list[list[int]] = [[] for _ in range(self.nodes + 1)]
        for node, parent in enumerate(self.parents, start=1):
            found[parent].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of drafted tokens on the path to each node 0..N."""
        found = [0]
        for parent in self.parents:
            found.append(found[parent] + 1)
        return tuple(found)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The nodes without children, depth first: paths of first children come first."""
        open_nodes, found = [0], []
        while open_nodes:
            node = open_nodes.pop()
            open_nodes += reversed(self.children[node])
            if not self.children[node]:
                found.append(node)
        return tuple(found)

    def path(self, node: int) -> tuple[int, ...]:
        """The drafted nodes from below the root to `node`."""
        return (*self.path(self.parents[node - 1]), node) if node else ()

    def token(self, node: int) -> Array:
        """The token id (...,) of a drafted node."""
        return self.tokens[..., node - 1]

    def siblings(self, node: int) -> Siblings:
        """The children of a node."""
        children = self.children[node]
        return Siblings(
            tuple(self.token(child) for child in children),
            None if self.present is None else tuple(self.present[..., child - 1] for child in children),
            None if self.draft is None else self.draft[..., node, :],
            self.drawing,
        )


def without(law: Array, token: Array) -> Array:
    """A law (..., V) with no mass at `token` (...,), not renormalised."""
    xp = array_namespace(law)
    ids = xp.arange(law.shape[-1], device=device(law))
    return xp.where(ids == token[..., None], xp.zeros_like(law), law)


def next_sibling(q: Array, earlier: tuple[Array, ...], drawing: Drawing) -> Array:
    """The law (..., V) that a drafter draws the next sibling from, given the tokens (...,) of the earlier ones.

    Deterministic children are the most probable tokens of q in order, ties to the lowest id.
    """
    if drawing == "with-replacement":
        return q
    if drawing == "without-replacement":
        for token in earlier:
            q = without(q, token)
        return normalise(q)
    # Tokens without mass are candidates too, behind all that have some.
    for token in earlier:
        q = q - 2 * one_hot(token, q)
    return one_hot(array_namespace(q).argmax(q, axis=-1), q)


def check_drawing(drawing: Any) -> None:
    """Refuse anything that is no `Drawing`."""
    if drawing not in DRAWINGS:
        msg = f"drawing={drawing!r} is not one of {', '.join(map(repr, DRAWINGS))}"
        raise InvalidInput(msg)


def _array(values: Any, target: Array) -> Array:
    if isinstance(values, list | tuple | np.ndarray):
        return array_namespace(target).asarray(np.asarray(values), device=device(target))
    return values


def _check_parents(parents: Parents) -> None:
    if not parents:
        msg = "parents is empty; a draft tree has at least one drafted token"
        raise ShapeError(msg)
    for node, parent in enumerate(parents, start=1):
        if not 0 <= parent < node:
            msg = f"parents give node {node} the parent {parent}; parents come first, so allowed are 0..{node - 1}"
            raise InvalidInput(msg)


def _batch(target: Array, draft: Array | None, tokens: Array, present: Array | None, nodes: int) -> tuple[int, ...]:
    given = {"target": target, "draft": draft, "tokens": tokens, "present": present}
    shapes = {name: tuple(value.shape) for name, value in given.items() if value is not None}
    text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    rows = (nodes + 1, target.shape[-1])
    expected = {"target": rows, "draft": rows, "tokens": (nodes,), "present": (nodes,)}
    for name, shape in shapes.items():
        if shape[-len(expected[name]) :] != expected[name]:
            msg = (
                f"{text} do not fit {nodes} parents; "
                "expected target and draft (..., N+1, V), tokens and present (..., N)"
            )
            raise ShapeError(msg)
    try:
        return np.broadcast_shapes(*(shape[: -len(expected[name])] for name, shape in shapes.items()))
    except ValueError as error:
        msg = f"{text}: the batch axes do not broadcast"
        raise ShapeError(msg) from error
