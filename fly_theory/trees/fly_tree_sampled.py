"""FLy's tree mode as released, above temperature 0."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, array_namespace, normalise, take
from fly_theory.blocks.base import share
from fly_theory.parameters import Integers, parameter
from fly_theory.trees.base import TreeLaw
from fly_theory.trees.fly_tree import WindowOnPaths
from fly_theory.trees.tree import DraftTree, Drawing, without

__all__ = ["FlyTreeSampled"]

# Probability of each node, as far as it can be one.
_Law = dict[int, Array]


@dataclass(frozen=True, kw_only=True)
class FlyTreeSampled(WindowOnPaths):
    """FLy's tree mode as in its released code, above temperature 0: a match is the target's one sample at a node.

    Statement
    ---------
    The target draws one token y_v from p_v at every node v, all independently. A drafted child of v matches when it is
    y_v; no mismatch meets a gate. On each path x_1..x_K from the root to a leaf a mismatch j is forgiven when j + W <=
    K and drafts j+1..j+W-1 match; else it ends the path. The path that keeps most drafts is kept (of equals, the one
    through earlier children), and y_v is emitted at its end v. There no child can have matched, so y_v has the law p_v
    without the children of v, renormalised.

    Guarantee
    ---------
    Where no mismatch can be forgiven (W at least the depth) it is lossless: the walk that accepts a child with its
    probability p. As p_v tends to a point mass, it becomes `fly-tree-released`.

    Reference
    ---------
    AMD-AGI/FLy, fly/models/FLy.py, tree mode: window, no gate, one sample a node. Assumed here: samples of different
    nodes are independent, siblings share that of their parent, and the token emitted is the sample at the last node
    kept. Siblings differ, as those of its drafter do.

    Examples
    --------
    >>> import fly_theory as ft
    >>> row = [0.5, 0.25, 0.25]
    >>> tree = ft.DraftTree([row] * 4, None, [2, 0, 1], parents=[0, 1, 1], drawing="deterministic")
    >>> FlyTreeSampled(window=1).law(tree).stops.tolist()
    [0.0, 0.25, 0.5, 0.25]
    >>> FlyTreeSampled(window=2).law(tree).stops.tolist()
    [0.75, 0.0625, 0.125, 0.0625]
    """

    name: ClassVar[str] = "fly-tree-sampled"
    drawings: ClassVar[tuple[Drawing, ...]] = ("deterministic", "without-replacement")
    window: int = parameter(Integers(1), "W, the length of the window, the mismatch included", typical=(1, 2, 4, 6))

    @property
    def following(self) -> int:
        return self.window - 1

    def _law(self, tree: DraftTree) -> TreeLaw:
        hits, misses, next_token = self._samples(tree)
        stops = _Paths(tree, self.window, hits, misses).stops()
        xp = array_namespace(tree.target)
        nowhere = xp.zeros_like(tree.target[..., 0, 0])
        return TreeLaw(xp.stack([stops.get(node, nowhere) for node in range(tree.nodes + 1)], axis=-1), next_token)

    def _decide(self, tree: DraftTree, uniforms: Array) -> Array:
        """A child matches when its uniform is below its probability to, given that no earlier sibling does."""
        hits, _, _ = self._samples(tree)
        match: dict[int, Array] = {}
        for children in tree.children:
            left, free = 1 + 0 * uniforms[..., 0], uniforms[..., 0] >= 0
            for child in children:
                match[child] = free & (uniforms[..., child - 1] < share(hits[child], left))
                left, free = left - hits[child], free & ~match[child]
        present = {node: _there(tree, node, match[node]) for node in match}
        return self._longest(tree, match, {node: there | ~there for node, there in present.items()}, present)

    def _samples(self, tree: DraftTree) -> tuple[_Law, list[Array], tuple[Array, ...]]:
        """Probability that each child is the sample, that at each node none is, and the sample's law there."""
        xp = array_namespace(tree.target)
        hits: _Law = {}
        misses, laws = [], []
        for node, children in enumerate(tree.children):
            left = tree.target[..., node, :]
            for child in children:
                at, removed = take(left, tree.token(child)), without(left, tree.token(child))
                if tree.present is not None:
                    there = tree.present[..., child - 1]
                    at, removed = xp.where(there, at, xp.zeros_like(at)), xp.where(there[..., None], removed, left)
                hits[child], left = at, removed
            misses.append(xp.sum(left, axis=-1))
            laws.append(normalise(left) if children else left)
        return hits, misses, tuple(laws)


class _Paths:
    """The law of the end of the best path, level by level from the leaves.

    Given what the sample at a node is, what happens below one child is independent of what happens below another, and
    depends on what came before by one number only: how many drafts must still follow to clear the last mismatch.
    """

    def __init__(self, tree: DraftTree, window: int, hits: _Law, misses: list[Array]) -> None:
        self._tree, self._window, self._hits, self._misses = tree, window, hits, misses
        self._known: dict[tuple[int, int], _Law] = {}
        order = [0]
        for leaf in tree.leaves:
            order += [node for node in tree.path(leaf) if node not in order]
        # Later is better: deeper, and of equals the one through earlier children.
        self._better = {node: (tree.depths[node], -rank) for rank, node in enumerate(order)}

    def stops(self) -> _Law:
        """The law of the node at which the round stops."""
        return self._below(0, 0)

    def _below(self, node: int, pending: int) -> _Law:
        """The end of the best path through `node`, with `pending` drafts still to follow after a mismatch (0: none).

        All but the last of these have to match; the last only has to be there.
        """
        if (node, pending) not in self._known:
            self._known[node, pending] = self._found(node, pending)
        return self._known[node, pending]

    def _found(self, node: int, pending: int) -> _Law:
        children = self._tree.children[node]
        certain = 0 * self._misses[node] + 1
        # Where the path ends if no child goes on: before the mismatch that is not cleared.
        before = self._tree.path(node)[: -(self._window - pending + 1)] if pending else (node,)
        floor = {before[-1] if before else 0: certain}
        found: _Law = {}
        for hit in (None, *children):
            best = floor
            for child in children:
                if child == hit:
                    best = self._best(best, self._below(child, max(pending - 1, 0)))
                elif pending <= 1:
                    best = self._best(best, self._if_there(child, self._below(child, self._window), floor))
            weight = self._misses[node] if hit is None else self._hits[hit]
            for end, probability in best.items():
                found[end] = found.get(end, 0) + weight * probability
        return found

    def _if_there(self, child: int, law: _Law, otherwise: _Law) -> _Law:
        if self._tree.present is None:
            return law
        (floor,) = otherwise
        there = array_namespace(law[next(iter(law))]).astype(self._tree.present[..., child - 1], otherwise[floor].dtype)
        mixed = {end: there * probability for end, probability in law.items()}
        mixed[floor] = mixed.get(floor, 0) + (1 - there)
        return mixed

    def _best(self, one: _Law, other: _Law) -> _Law:
        """The law of the better of two independent ends."""
        found: _Law = {}
        worse_one: Array | int = 0
        worse_other: Array | int = 0
        for end in sorted({*one, *other}, key=self._better.__getitem__):
            here, there = one.get(end, 0), other.get(end, 0)
            found[end] = here * (worse_other + there) + there * worse_one
            worse_one, worse_other = worse_one + here, worse_other + there
        return found


def _there(tree: DraftTree, node: int, like: Array) -> Array:
    return like | ~like if tree.present is None else tree.present[..., node - 1]
