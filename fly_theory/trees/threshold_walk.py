"""The two thresholds of SGLang, on a tree."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, normalise, scalar, take
from fly_theory.blocks.base import share
from fly_theory.parameters import Interval, parameter
from fly_theory.trees.base import Verdicts, Walk
from fly_theory.trees.tree import Drawing, Siblings, without

__all__ = ["ThresholdWalk"]


@dataclass(frozen=True, kw_only=True)
class ThresholdWalk(Walk):
    """One coin for all children of a node: accept the first at which their summed p reaches it, or whose p is large.

    Statement
    ---------
    S_k = p(x_1) + ... + p(x_k). Child x_k is accepted when u < S_k / acc or p(x_k) >= single, for one uniform u a node:
    given that those before it were not, with probability 1 if p(x_k) >= single, else
    (c_k - c_{k-1}) / (1 - c_{k-1}) where c_k = min(1, S_k / acc). When all fail, p without them is redrawn from.

    Guarantee
    ---------
    Lossless at single = acc = 1 when siblings differ; a repeated sibling is counted twice. For one candidate out/p <=
    max(1/single, 1/acc), as `threshold`.

    Reference
    ---------
    SGLang, released code of the target-only tree sampling kernel (threshold_single, threshold_acc).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.25, 0.25], [0.5, 0.3, 0.2]
    >>> rule = ft.tree_rule("threshold-walk:single=1,acc=0.75")
    >>> ft.trees.position_law(rule, p, q, drafts=1, drawing="deterministic").induced.round(6).tolist()
    [0.666667, 0.166667, 0.166667]
    >>> ft.trees.position_law(rule, p, q, drafts=2, drawing="deterministic").induced.round(6).tolist()
    [0.666667, 0.333333, 0.0]
    """

    name: ClassVar[str] = "threshold-walk"
    drawings: ClassVar[tuple[Drawing, ...]] = ("deterministic", "without-replacement", "with-replacement")
    single: Number = parameter(
        Interval(0, 1, low_open=True),
        "p at and above which a child is accepted",
        default=1,
        strict_at=1,
        typical=(0.5, 1),
    )
    acc: Number = parameter(
        Interval(0, 1, low_open=True),
        "the summed p is divided by this before the coin",
        default=1,
        strict_at=1,
        typical=(0.75, 1),
    )

    def verdicts(self, p: Array, siblings: Siblings) -> Verdicts:
        xp, left = array_namespace(p), p
        total = xp.zeros_like(p[..., 0])
        passes = []
        for k, token in enumerate(siblings.tokens):
            at, before = take(p, token), self._coin(total)
            total = total + at
            passed = xp.where(
                at >= scalar(self.single, p), xp.ones_like(at), share(self._coin(total) - before, 1 - before)
            )
            removed = without(left, token)
            if siblings.present is not None:
                present = siblings.present[k]
                passed = xp.where(present, passed, xp.zeros_like(passed))
                total = xp.where(present, total, total - at)
                removed = xp.where(present[..., None], removed, left)
            passes.append(passed)
            left = removed
        return Verdicts(tuple(passes), normalise(left))

    def _coin(self, total: Array) -> Array:
        share_of_coin = total / scalar(self.acc, total)
        xp = array_namespace(total)
        return xp.minimum(share_of_coin, xp.ones_like(share_of_coin))
