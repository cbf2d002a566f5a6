"""Cactus."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar, sums_across, take
from fly_theory.claims import Claim, FixedPoint, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict


@dataclass(frozen=True, kw_only=True)
class Cactus(Rule):
    """Raise the target at the draft token as far as a budget on the binary divergence of that token allows.

    Statement
    ---------
    h = min(1, p + sqrt(2 delta p (1 - p))),  m = min(q, h); after rejecting x the redraw is from (H_x - q)+, where H_x
    has h(x) at x and p(v) (1 - h(x)) / (1 - p(x)) elsewhere.

    Guarantee
    ---------
    On the TV line: H_x <= p off x, so recovered mass never leaves the corridor between q and p.

    Reference
    ---------
    Cactus (arXiv 2604.04987), released code; delta bounds the binary divergence at the draft token to first order.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cactus:delta=0.1").induced(p, q).round(4).tolist()
    [0.3503, 0.2023, 0.3, 0.1475]
    """

    name: ClassVar[str] = "cactus"
    unreadable_by: ClassVar = {
        Interpreter.EXACT: "its accepted mass contains a square root",
        Interpreter.SYMBOLIC: "its accepted mass contains a square root",
    }
    delta: Number = parameter(
        Interval(0, None), "divergence allowed at the draft token, in nats", strict_at=0, typical=(0, 0.02, 0.1, 0.5)
    )

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        accepted = xp.minimum(q, self._raised(p))
        ratio = xp.where(p > 0, q / xp.where(p > 0, p, xp.ones_like(p)), float("inf"))
        shrink = self._shrink(p) + xp.zeros_like(ratio)
        below_shrink, up_to_ratio = sums_across(shrink, ratio)
        mass = shrink * below_shrink(p + xp.zeros_like(ratio)) - below_shrink(q + xp.zeros_like(ratio))
        share = (q - accepted) / xp.where(mass > 0, mass, xp.ones_like(mass))
        # Residual at v: the sum over rejected x with shrink(x) p(v) > q(v) of share(x) (shrink(x) p(v) - q(v)).
        shrunk_share = share * shrink
        above_p = xp.sum(shrunk_share, axis=-1, keepdims=True) - up_to_ratio(shrunk_share)
        above_q = xp.sum(share, axis=-1, keepdims=True) - up_to_ratio(share)
        return Verdict(accepted, positive_part(xp.where(p > q, p * above_p - q * above_q, xp.zeros_like(ratio))))

    def residual_after(self, p: Array, q: Array, tokens: Array) -> Array:
        return positive_part(take(self._shrink(p), tokens)[..., None] * p - q)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (OnTheLine(), FixedPoint(), ReducesTo("lossless", {"delta": 0}), MonotoneIn("delta", looser="larger"))

    def _raised(self, p: Array) -> Array:
        xp = array_namespace(p)
        return xp.minimum(xp.ones_like(p), p + xp.sqrt(2 * scalar(self.delta, p) * p * positive_part(1 - p)))

    def _shrink(self, p: Array) -> Array:
        """(1 - h(x)) / (1 - p(x)), by which the other tokens of H_x are lowered; 0 where p(x) = 1."""
        xp = array_namespace(p)
        others = 1 - p
        return positive_part(1 - self._raised(p)) / xp.where(others > 0, others, xp.ones_like(others))
