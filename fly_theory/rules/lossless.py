"""Lossless token verification."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, array_namespace, positive_part
from fly_theory.claims import Claim, FixedPoint, OnTheLine
from fly_theory.claims import Lossless as LosslessClaim
from fly_theory.rules.base import Rule, Verdict


@dataclass(frozen=True, kw_only=True)
class Lossless(Rule):
    """Accept with probability min(1, p/q), redraw from the positive part of p - q.

    Statement
    ---------
    m = min(q, p),  residual = (p - q)+

    Guarantee
    ---------
    out = p whatever q is; acceptance = sum min(p, q) = 1 - TV(p, q), the largest of any rule with out = p.

    Reference
    ---------
    Leviathan, Kalman & Matias 2023 (arXiv 2211.17192), Algorithm 1; Chen et al. 2023 (arXiv 2302.01318), Algorithm 2.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> round(float(ft.rule("lossless").acceptance(p, q)), 12)
    0.5
    >>> ft.rule("lossless").induced(p, q).round(12).tolist()
    [0.5, 0.3, 0.15, 0.05]
    """

    name: ClassVar[str] = "lossless"

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        return Verdict(accepted=xp.minimum(q, p), residual=positive_part(p - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (LosslessClaim(), OnTheLine(), FixedPoint())
