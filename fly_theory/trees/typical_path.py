"""Typical acceptance on a tree."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number, array_namespace, take
from fly_theory.parameters import Flag, Interval, parameter
from fly_theory.trees.paths import BestPath
from fly_theory.trees.tree import DraftTree

__all__ = ["TypicalPath"]


@dataclass(frozen=True, kw_only=True)
class TypicalPath(BestPath):
    """Keep the longest path of allowed tokens, the more likely one of equals, and emit the target's argmax after it.

    Statement
    ---------
    A child x is allowed when p(x) > min(eps, delta e^-H). Of all paths of allowed tokens the longest is kept, of
    equally long ones the one with the larger product of p (then the first); the next token is argmax p after it.

    Guarantee
    ---------
    None: nothing is drawn. The text is fixed by the drafts, so more drafts a position mean less of the target.

    Reference
    ---------
    Medusa, Cai et al. 2024 (arXiv 2401.10774), released code, fast mode. There the token before the tree is emitted
    whatever it is, and 1e-5 is added inside the logarithm of the entropy.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> law = ft.trees.position_law(ft.tree_rule("typical-path"), p, q, drafts=2, drawing="deterministic")
    >>> law.accepted.tolist(), law.redrawn.tolist()
    ([0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    """

    name: ClassVar[str] = "typical-path"
    eps: Number = parameter(Interval(0, 1, low_open=True), "absolute threshold", default=0.09, typical=(0.09, 0.3))
    delta: Number = parameter(
        Interval(0, None, low_open=True), "factor of exp(-H) in the threshold", default=0.3, typical=(0.3, 0.6)
    )
    keep_ties: bool = parameter(Flag(), "whether a token exactly at the threshold is allowed", default=False)

    def best(self, tree: DraftTree) -> Array:
        xp = array_namespace(tree.target)
        likelihood = {0: xp.ones_like(tree.target[..., 0, 0])}
        kept = {0: likelihood[0] > 0}
        best, best_likelihood = xp.zeros_like(tree.tokens[..., 0]), likelihood[0]
        best_depth = xp.zeros_like(best)
        for node, children in enumerate(tree.children):
            p = tree.target[..., node, :]
            allowed = (
                allowed_sets.relative_to_entropy(p, self.eps, self.delta, keep_ties=self.keep_ties)
                if children
                else None
            )
            for child in children:
                token, depth = tree.token(child), tree.depths[child]
                kept[child] = kept[node] & take(allowed, token)
                if tree.present is not None:
                    kept[child] = kept[child] & tree.present[..., child - 1]
                likelihood[child] = likelihood[node] * take(p, token)
                more_likely = (depth == best_depth) & (likelihood[child] > best_likelihood)
                better = kept[child] & ((depth > best_depth) | more_likely)
                best = xp.where(better, xp.full_like(best, child), best)
                best_depth = xp.where(better, xp.full_like(best, depth), best_depth)
                best_likelihood = xp.where(better, likelihood[child], best_likelihood)
        return best
