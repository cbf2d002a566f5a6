"""Mentored decoding."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fly_theory import divergence
from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import Ceiling, Claim, DivergenceBound, FixedPoint, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict

# Bisections beyond the digits of a float, for intervals that do not start at its resolution.
_SPARE_BISECTIONS = 8


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
        smallest = q * (4 / xp.finfo(q.dtype).max)  # of p, for ratios that are numbers
        ratio = xp.where(possible, q / xp.where(possible, xp.maximum(p, smallest), xp.ones_like(p)), float("inf"))
        order = xp.argsort(ratio, axis=-1, stable=True)
        p, q, ratio = (xp.take_along_axis(x + xp.zeros_like(ratio), order, axis=-1) for x in (p, q, ratio))
        possible = p > 0
        supported = possible & (ratio > 0)
        logs = xp.log(xp.where(supported, ratio, 1))
        # Of the first 0, 1, ..., V tokens, (..., V + 1).
        sums_p, sums_q, sums_logs = (
            xp.cumulative_sum(x, axis=-1, include_initial=True) for x in (p, q, xp.where(supported, p * logs, 0))
        )
        missing = xp.any(possible & (ratio == 0), axis=-1, keepdims=True)
        filled_at = xp.where(possible, ratio, 0) * sums_p[..., 1:] - sums_q[..., 1:]

        def lowered(raised: Array) -> tuple[Array, Array]:
            """The 1/beta whose residual has the mass that 1/alpha = raised rejects, and how many tokens it fills up."""
            rejected = xp.sum(positive_part(q - raised * p), axis=-1, keepdims=True)
            filled = _count(possible & (filled_at < rejected))
            mass_p, mass_q = (xp.take_along_axis(sums, filled, axis=-1) for sums in (sums_p, sums_q))
            return xp.where(mass_p > 0, (rejected + mass_q) / xp.where(mass_p > 0, mass_p, 1), 0), filled

        def spent(raised: Array) -> Array:
            """KL(p, out) for 1/alpha = raised: out is p/beta at the first tokens, p/alpha at the last, q in between."""
            floor, filled = lowered(raised)
            kept = _count(ratio <= raised)
            first, last = filled, xp.maximum(filled, kept)
            p_first, p_last, logs_first, logs_last = (
                xp.take_along_axis(sums, at, axis=-1) for sums in (sums_p, sums_logs) for at in (first, last)
            )
            covered = floor > 0
            at_floor = p_first * xp.log(xp.where(covered, floor, 1))
            finite = at_floor + (logs_last - logs_first) + (sums_p[..., -1:] - p_last) * xp.log(raised)
            return xp.where(missing & ~covered, float("inf"), -finite)

        largest = xp.max(xp.where(possible, ratio, 1), axis=-1, keepdims=True)
        span = xp.log(xp.maximum(largest, xp.ones_like(largest)))
        low, high = xp.zeros_like(span), xp.ones_like(span)
        for _ in range(_SPARE_BISECTIONS - round(math.log2(xp.finfo(span.dtype).eps))):
            middle = (low + high) / 2
            affordable = spent(xp.exp(middle * span)) <= scalar(self.budget, p)
            low, high = xp.where(affordable, middle, low), xp.where(affordable, high, middle)
        raised = xp.exp(low * span)
        return raised, lowered(raised)[0]


def _count(mask: Array) -> Array:
    """How often a mask (..., V) holds, (..., 1)."""
    xp = array_namespace(mask)
    return xp.sum(xp.astype(mask, xp.int64), axis=-1, keepdims=True)
