"""The two thresholds of SGLang."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, one_hot, scalar
from fly_theory.claims import Ceiling, Claim, ReducesTo
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict, law_of_redrawing_other, redraw_other


@dataclass(frozen=True, kw_only=True)
class Threshold(Rule):
    """Accept a token above one threshold of p outright, others with p over a second; the draft counts as a point mass.

    Statement
    ---------
    m = q where p >= single, else q min(1, p/acc); after rejecting x the redraw is from p without x.

    Guarantee
    ---------
    out = q - r + p sum r with r = (q - m)/(1 - p), and out/p <= max(1/single, 1/acc); lossless at single = acc = 1,
    where it is `sample-match` with n = 1. The draft's probabilities are never used, so it accepts less than min(1, p/q)
    does. Not the fixed point at p = q.

    Reference
    ---------
    SGLang, released code of the target-only sampling kernel (threshold_single, threshold_acc), for one draft token.

    Examples
    --------
    >>> import fly_theory as ft
    >>> ft.rule("threshold:single=1,acc=0.75").induced([0.5, 0.25, 0.25], [1.0, 0.0, 0.0]).round(6).tolist()
    [0.666667, 0.166667, 0.166667]
    """

    name: ClassVar[str] = "threshold"
    single: Number = parameter(
        Interval(0, 1, low_open=True),
        "p at and above which a token is accepted",
        default=1,
        strict_at=1,
        typical=(0.5, 1),
    )
    acc: Number = parameter(
        Interval(0, 1, low_open=True), "p is divided by this before the coin", default=1, strict_at=1, typical=(0.75, 1)
    )

    def verdict(self, p: Array, q: Array) -> Verdict:
        accepted = self._accepted(p, q)
        return Verdict(accepted, redraw_other(p, q - accepted))

    def residual_after(self, p: Array, q: Array, tokens: Array) -> Array:
        return p * (1 - one_hot(tokens, p))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            law_of_redrawing_other(self._rejected),
            Ceiling(max(1 / self.exact("single"), 1 / self.exact("acc")), "max(1/single, 1/acc)"),
            ReducesTo("sample-match:n=1", {"single": 1, "acc": 1}),
        )

    def _accepted(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        one = xp.ones_like(p)
        return q * xp.where(p >= scalar(self.single, p), one, xp.minimum(one, p / scalar(self.acc, p)))

    def _rejected(self, p: Array, q: Array) -> Array:
        return q - self._accepted(p, q)
