"""Mentored decoding."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import divergence
from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import Ceiling, Claim, DivergenceBound, FixedPoint, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict

_BISECTIONS = 60


@dataclass(frozen=True, kw_only=True)
class Mentored(Rule):
    """Accept as much as a budget on KL(p, out) allows.

    Statement
    ---------
    m = min(q, p/alpha),  residual = (p/beta - q)+,  alpha <= 1 <= beta, hence out = clip(q, p/beta, p/alpha);
    beta makes out sum to one and alpha spends the budget: KL(p, out) = budget. When KL(p, q) <= budget, m = q.

    Guarantee
    ---------
    KL(p, out) <= budget nats; on the TV line; p/beta <= out <= p/alpha. A token outside the target's support is kept
    only when the whole draft is.

    Reference
    ---------
    V. Tran-Thien, "An optimal lossy variant of speculative decoding" (2023). The Fast-HSD port of it swaps two
    cumulative sums. Here alpha is found by bisection on its logarithm, beta in closed form from the sorted ratios q/p.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("mentored:budget=0.1").induced(p, q).round(4).tolist()
    [0.3689, 0.2213, 0.3, 0.1098]
    """

    name: ClassVar[str] = "mentored"
    unreadable_by: ClassVar = {
        Interpreter.EXACT: "its multipliers solve a transcendental equation",
        Interpreter.SYMBOLIC: "its multipliers solve a transcendental equation",
    }
    budget: Number = parameter(
        Interval(0, None), "largest KL(p, out), in nats", default=0.1, strict_at=0, typical=(0, 0.02, 0.1, 0.5)
    )

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        raised, lowered = self._multipliers(p, q)
        unbound = (divergence.kl(p, q) <= scalar(self.budget, p))[..., None]
        return Verdict(
            accepted=xp.where(unbound, q, xp.minimum(q, raised * p)),
            residual=positive_part(xp.where(unbound, p, lowered * p) - q),
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            DivergenceBound("kl", self.budget, "budget"),
            Ceiling(self._factor, "1/alpha(p, q)"),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"budget": 0}),
            MonotoneIn("budget", looser="larger"),
        )

    def _factor(self, p: Array, q: Array) -> Array:
        unbound = divergence.kl(p, q) <= scalar(self.budget, p)
        xp = array_namespace(p, q)
        return xp.where(unbound, divergence.max_ratio(p, q), self._multipliers(p, q)[0][..., 0])

    def _multipliers(self, p: Array, q: Array) -> tuple[Array, Array]:
        """1/alpha and 1/beta (..., 1): the largest 1/alpha whose out spends at most the budget."""
        xp = array_namespace(p, q)
        if self.budget == 0:
            one = xp.ones_like(p[..., :1] + q[..., :1])
            return one, one
        possible = p > 0
        ratio = xp.where(possible, q / xp.where(possible, p, xp.ones_like(p)), float("inf"))
        order = xp.argsort(ratio, axis=-1, stable=True)
        p, q, ratio = (xp.take_along_axis(x + xp.zeros_like(ratio), order, axis=-1) for x in (p, q, ratio))
        possible = p > 0
        below_p, below_q = xp.cumulative_sum(p, axis=-1), xp.cumulative_sum(q, axis=-1)
        filled_at = xp.where(possible, ratio, 0) * below_p - below_q

        def lowered(raised: Array) -> Array:
            """The 1/beta whose residual has the mass that 1/alpha = raised rejects."""
            rejected = xp.sum(positive_part(q - raised * p), axis=-1, keepdims=True)
            filled = possible & (filled_at < rejected)
            mass_p = xp.sum(xp.where(filled, p, 0), axis=-1, keepdims=True)
            mass_q = xp.sum(xp.where(filled, q, 0), axis=-1, keepdims=True)
            return xp.where(mass_p > 0, (rejected + mass_q) / xp.where(mass_p > 0, mass_p, 1), 0)

        def spent(raised: Array) -> Array:
            """KL(p, out) for 1/alpha = raised, from log(out / p) = log clip(q / p)."""
            clipped = xp.minimum(xp.maximum(ratio, lowered(raised)), raised)
            covered = clipped > 0
            logs = xp.where(covered, xp.log(xp.where(covered, clipped, 1)), -float("inf"))
            return -xp.sum(xp.where(possible, p * logs, 0), axis=-1, keepdims=True)

        largest = xp.max(xp.where(possible, ratio, 1), axis=-1, keepdims=True)
        span = xp.log(xp.maximum(largest, xp.ones_like(largest)))
        low, high = xp.zeros_like(span), xp.ones_like(span)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            affordable = spent(xp.exp(middle * span)) <= scalar(self.budget, p)
            low, high = xp.where(affordable, middle, low), xp.where(affordable, high, middle)
        raised = xp.exp(low * span)
        return raised, lowered(raised)
