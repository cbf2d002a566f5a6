"""Draft trees of the most probable paths, grown a level at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fly_theory.trees.builders import Drafted, Path, positive

__all__ = ["Expansion", "expand"]


class Expansion:
    """The tree of `expand` while it grows, for drafters that answer for all nodes of a level at once.

    Attributes
    ----------
    frontier :
        The nodes whose next-token laws `grow` takes next; empty when the tree is grown. Node 0 is the root.
    tokens, parents :
        Of nodes 1, 2, ..., all that were made so far; those that stay are `kept`.

    Raises
    ------
    InvalidInput
        For top_k, depth or total below 1.
    """

    def __init__(self, *, top_k: int, depth: int, total: int) -> None:
        for name, value in (("top_k", top_k), ("depth", depth), ("total", total)):
            positive(name, value)
        self.top_k, self.total = top_k, total
        self.frontier: list[int] = [0]
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._levels_left = depth
        self._probabilities = [1.0]

    def grow(self, laws: Sequence[Any]) -> None:
        """Draft one level more, given the draft's next-token law (V,) at each node of the frontier."""
        first = len(self.tokens) + 1
        for node, law in zip(self.frontier, laws, strict=True):
            law = np.asarray(law, dtype=np.float64)
            for token in _most_probable(law, self.top_k):
                self.tokens.append(token)
                self.parents.append(node)
                self._probabilities.append(self._probabilities[node] * float(law[token]))
        self._levels_left -= 1
        self.frontier = self._likeliest(range(first, len(self.tokens) + 1), self.top_k) if self._levels_left else []

    @property
    def kept(self) -> list[int]:
        """The drafted nodes of the finished tree among all that were made, in the order of the tree."""
        return self._likeliest(range(1, len(self.tokens) + 1), self.total)

    def drafted(self) -> Drafted:
        """The finished tree."""
        number = {0: 0} | {node: place for place, node in enumerate(self.kept, start=1)}
        tokens = np.array([self.tokens[node - 1] for node in self.kept])
        return Drafted(tokens, tuple(number[self.parents[node - 1]] for node in self.kept))

    def path(self, node: int) -> Path:
        """The tokens on the path to a node."""
        return (*self.path(self.parents[node - 1]), self.tokens[node - 1]) if node else ()

    def _likeliest(self, nodes: Sequence[int], count: int) -> list[int]:
        return sorted(nodes, key=lambda node: -self._probabilities[node])[:count]


def expand(draft: Callable[[Path], Any], *, top_k: int, depth: int, total: int) -> Drafted:
    """A tree of the most probable paths of a draft, as EAGLE-2 and EAGLE-3 grow it.

    Level by level, the `top_k` nodes of the last level with the largest path probability get their `top_k` most
    probable tokens as children; of all nodes made in `depth` levels the `total` with the largest path probability stay,
    among equals those made first. Siblings stand by falling probability, ties by id.

    Parameters
    ----------
    draft :
        The draft's next-token law (V,) after a path of tokens, as anything numpy reads.

    Raises
    ------
    InvalidInput
        For top_k, depth or total below 1.

    Examples
    --------
    >>> tree = expand(lambda path: [0.6, 0.3, 0.1], top_k=2, depth=2, total=4)
    >>> tree.paths()
    [(), (0,), (0, 0), (1,), (0, 1)]
    >>> tree.parents
    (0, 1, 0, 1)
    """
    tree = Expansion(top_k=top_k, depth=depth, total=total)
    while tree.frontier:
        tree.grow([draft(tree.path(node)) for node in tree.frontier])
    return tree.drafted()


def _most_probable(law: npt.NDArray[np.float64], count: int) -> list[int]:
    """The `count` most probable tokens, most probable first, ties by id."""
    candidates = np.arange(len(law))
    if count < len(law):
        candidates = np.flatnonzero(law >= np.partition(law, -count)[-count])
    found: list[int] = candidates[np.argsort(-law[candidates], kind="stable")[:count]].tolist()
    return found
