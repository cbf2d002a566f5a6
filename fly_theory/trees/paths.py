"""Rules that decide without chance, look at whole paths of a tree, and keep the best one."""

from typing import ClassVar

import numpy as np

from fly_theory.arrays import Array, array_namespace, one_hot
from fly_theory.trees.base import TreeLaw, TreeRule
from fly_theory.trees.tree import DraftTree, Drawing

__all__ = ["BestPath"]


class BestPath(TreeRule):
    """Rules that stop at one certain node and emit the target's argmax there; uniforms are not read."""

    drawings: ClassVar[tuple[Drawing, ...]] = ("deterministic", "without-replacement", "with-replacement")

    def best(self, tree: DraftTree) -> Array:
        """The node (...,) at which the round stops."""
        raise NotImplementedError

    def _law(self, tree: DraftTree) -> TreeLaw:
        xp = array_namespace(tree.target)
        rows = [tree.target[..., node, :] for node in range(tree.nodes + 1)]
        return TreeLaw(
            one_hot(self.best(tree), tree.target[..., :, 0]),
            tuple(one_hot(xp.argmax(row, axis=-1), row) for row in rows),
        )

    def _decide(self, tree: DraftTree, uniforms: Array) -> Array:
        best = self.best(tree)
        return array_namespace(best).broadcast_to(best, np.broadcast_shapes(best.shape, uniforms.shape[:-1]))
