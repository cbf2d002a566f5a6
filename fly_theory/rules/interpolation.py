"""Adaptive interpolation on its own."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.rules.base import Rule, Verdict
from fly_theory.rules.lenience import lenience_parameter


@dataclass(frozen=True, kw_only=True)
class Interpolation(Rule):
    """Accept up to l p + (1 - l) q, redraw from the positive part of p - q: lenience without its ceiling.

    Statement
    ---------
    r = l p + (1 - l) q,  m = min(q, r),  residual = (p - q)+

    Guarantee
    ---------
    out = r, the law of `cos` with draft weight 1 - l; on the TV line, no ceiling.

    Reference
    ---------
    A reconstruction of the "adaptive interpolation" ablation of the lossy-verification paper, Table 1, from its
    numbers: no code for that variant was found.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("interpolation:l=0.5").induced(p, q).round(12).tolist()
    [0.35, 0.2, 0.225, 0.225]
    """

    name: ClassVar[str] = "interpolation"
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=array_namespace(p, q).minimum(q, self._law(p, q)), residual=positive_part(p - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("l p + (1 - l) q", self._law),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"l": 1}),
            MonotoneIn("l", looser="smaller"),
        )

    def _law(self, p: Array, q: Array) -> Array:
        l = scalar(self.l, p)
        return l * p + (1 - l) * q
