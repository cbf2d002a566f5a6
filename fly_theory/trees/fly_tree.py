"""FLy on a tree: as its paper's rule reads when every path is judged, and as its released code runs it."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, scalar
from fly_theory.blocks.base import count_until_false
from fly_theory.entropies import normalised_entropy
from fly_theory.parameters import Integers, Interval, parameter
from fly_theory.trees.paths import BestPath
from fly_theory.trees.tree import DraftTree

__all__ = ["FlyTree", "FlyTreeReleased", "WindowOnPaths"]


class WindowOnPaths(BestPath):
    """Judge every path to a leaf by a deferred window, and keep the longest."""

    window: int

    @property
    def following(self) -> int:
        """How many drafts after a mismatch must match."""
        raise NotImplementedError

    def gate_open(self, p: Array) -> Array:
        """Whether a mismatch is deferred (...,) where the target is p (..., V)."""
        return p[..., 0] >= 0

    def best(self, tree: DraftTree) -> Array:
        return self._longest(tree, *self._at_nodes(tree))

    def _longest(
        self, tree: DraftTree, match: dict[int, Array], gate: dict[int, Array], present: dict[int, Array]
    ) -> Array:
        """The end (...,) of the path that keeps most drafts, given what is known of each drafted node."""
        xp = array_namespace(tree.target)
        stop = xp.zeros_like(tree.tokens[..., 0])
        longest = xp.zeros_like(stop)
        for leaf in tree.leaves:
            path = tree.path(leaf)
            kept = self._kept(*(xp.stack([known[node] for node in path], axis=-1) for known in (match, gate, present)))
            for length, node in enumerate(path, start=1):
                better = (kept == length) & (kept > longest)
                stop = xp.where(better, xp.full_like(stop, node), stop)
                longest = xp.where(better, xp.full_like(longest, length), longest)
        return stop

    def _at_nodes(self, tree: DraftTree) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array]]:
        """Whether each drafted node is the target's argmax, has an open gate, and is there."""
        xp = array_namespace(tree.target)
        match, gate, present = {}, {}, {}
        for node, children in enumerate(tree.children):
            if children:
                p = tree.target[..., node, :]
                greedy, opened = xp.argmax(p, axis=-1), self.gate_open(p)
            for child in children:
                there = opened | ~opened if tree.present is None else tree.present[..., child - 1]
                match[child], gate[child], present[child] = there & (tree.token(child) == greedy), opened, there
        return match, gate, present

    def _kept(self, match: Array, gate: Array, present: Array) -> Array:
        """Number (...,) of drafts kept on one path of K: a mismatch is forgiven when the drafts after it all match."""
        xp, length = array_namespace(match), match.shape[-1]
        passes = []
        for j in range(length):
            passed = match[..., j]
            if j + self.window < length:
                cleared = xp.all(match[..., j + 1 : j + 1 + self.following], axis=-1)
                fits = present[..., j] & present[..., j + self.window]
                passed = passed | (gate[..., j] & fits & cleared)
            passes.append(passed)
        return count_until_false(xp.stack(passes, axis=-1))


@dataclass(frozen=True, kw_only=True)
class FlyTree(WindowOnPaths):
    """Judge every path to a leaf as `fly` judges a block, at temperature 0, and keep the longest.

    Statement
    ---------
    On each path x_1..x_K from the root to a leaf, y_i = argmax p_i: a mismatch j is forgiven when
    H(p_j) / log V >= theta, j + W <= K and drafts j+1..j+W all match; else it ends the path. The path that keeps most
    drafts is kept (of equals, the one through earlier children), and the argmax after it is emitted.

    Guarantee
    ---------
    On a chain it is `fly`. The window of a mismatch is that of the most fortunate path through it, so the more leaves a
    tree has, the more mismatches are forgiven.

    Reference
    ---------
    FLy (arXiv 2511.22972) states its rule for one path; this is that rule, read for each path of a tree.

    Examples
    --------
    >>> import fly_theory as ft
    >>> row = [0.5, 0.499, 0.001]
    >>> tree = ft.DraftTree([row] * 4, None, [2, 0, 1], parents=[0, 1, 1], drawing="deterministic")
    >>> ft.tree_rule("fly-tree:theta=0.3,window=1").law(tree).stops.tolist()
    [0.0, 0.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "fly-tree"
    theta: Number = parameter(
        Interval(0, None),
        "a mismatch is deferred where the entropy over log V is at least theta",
        typical=(0, 0.3, 0.6, 1),
    )
    window: int = parameter(Integers(0), "how many drafts after a deferred mismatch must match", typical=(0, 1, 4, 6))

    @property
    def following(self) -> int:
        return self.window

    def gate_open(self, p: Array) -> Array:
        return normalised_entropy(p) >= scalar(self.theta, p)


@dataclass(frozen=True, kw_only=True)
class FlyTreeReleased(WindowOnPaths):
    """FLy's tree mode as in its released code, at temperature 0: the window alone, and no gate.

    Statement
    ---------
    As `fly-tree`, but every mismatch is deferred whatever the entropy; only W - 1 following drafts must match, although
    a mismatch is still forgiven at j <= K - W only.

    Guarantee
    ---------
    On a chain it is `fly-released` with its gate off.

    Reference
    ---------
    AMD-AGI/FLy, fly/models/FLy.py, tree mode.

    Examples
    --------
    >>> import fly_theory as ft
    >>> row = [0.998, 0.001, 0.001]
    >>> tree = ft.DraftTree([row] * 4, None, [2, 0, 0], parents=[0, 1, 2], drawing="deterministic")
    >>> ft.tree_rule("fly-tree-released:window=2").law(tree).stops.tolist()
    [0.0, 0.0, 0.0, 1.0]
    """

    name: ClassVar[str] = "fly-tree-released"
    window: int = parameter(Integers(1), "W, the length of the window, the mismatch included", typical=(1, 2, 4, 6))

    @property
    def following(self) -> int:
        return self.window - 1
