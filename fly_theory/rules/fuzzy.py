"""Fuzzy speculative decoding."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import divergence
from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.parameters import Choice, Interval, parameter
from fly_theory.rules.base import Rule, Verdict

_DIVERGENCES = {"kl": divergence.kl, "js": divergence.js, "tv": divergence.total_variation}


@dataclass(frozen=True, kw_only=True)
class Fuzzy(Rule):
    """Accept everything where target and draft are close, verify losslessly elsewhere.

    Statement
    ---------
    m = q if Div(p, q) < t else min(q, p),  residual = (p - q)+

    Guarantee
    ---------
    out is q or p at each position, on the TV line; TV(out, p) is bounded by what Div < t allows.

    Reference
    ---------
    Fuzzy speculative decoding (arXiv 2502.20704), with Div one of KL(p, q), Jensen-Shannon (both in nats) or TV.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("fuzzy:divergence=tv,t=0.6").induced(p, q).tolist()
    [0.2, 0.1, 0.3, 0.4]
    """

    name: ClassVar[str] = "fuzzy"
    divergence: str = parameter(Choice(tuple(_DIVERGENCES)), "which divergence is compared with t", default="js")
    t: Number = parameter(
        Interval(0, None), "divergence below which all is accepted", strict_at=0, typical=(0, 0.1, 0.4)
    )

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        accepted = xp.where(self._close(p, q), q, xp.minimum(q, p))
        return Verdict(accepted=accepted, residual=positive_part(p - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("q where Div(p, q) < t, else p", self._law),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"t": 0}),
            MonotoneIn("t", looser="larger"),
        )

    def _close(self, p: Array, q: Array) -> Array:
        return (_DIVERGENCES[self.divergence](p, q) < scalar(self.t, p))[..., None]

    def _law(self, p: Array, q: Array) -> Array:
        return array_namespace(p, q).where(self._close(p, q), q, p)
