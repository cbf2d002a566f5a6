"""Verification at temperature 0."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, array_namespace, one_hot
from fly_theory.trees.base import Verdicts, Walk
from fly_theory.trees.tree import Siblings

__all__ = ["GreedyPath"]


@dataclass(frozen=True, kw_only=True)
class GreedyPath(Walk):
    """Follow the target's argmax through the tree as far as it goes, and emit one more.

    Statement
    ---------
    A child passes when it is argmax p (ties to the lowest id); when none does, argmax p is emitted.

    Guarantee
    ---------
    The text is the target's greedy text, whatever the drafts are. Where siblings differ, the path is the longest that
    agrees with the target.

    Reference
    ---------
    SpecInfer (arXiv 2305.09781), greedy decoding; released code of EAGLE and Medusa at temperature 0.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> law = ft.trees.position_law(ft.tree_rule("greedy-path"), p, q, drafts=2, drawing="with-replacement")
    >>> round(float(law.acceptance), 12), law.induced.round(12).tolist()
    (0.36, [1.0, 0.0, 0.0, 0.0])
    """

    name: ClassVar[str] = "greedy-path"

    def verdicts(self, p: Array, siblings: Siblings) -> Verdicts:
        xp = array_namespace(p)
        greedy = xp.argmax(p, axis=-1)
        agrees = [token == greedy for token in siblings.tokens]
        if siblings.present is not None:
            agrees = [there & yes for there, yes in zip(siblings.present, agrees, strict=True)]
        return Verdicts(tuple(xp.astype(yes, p.dtype) for yes in agrees), one_hot(greedy, p))
