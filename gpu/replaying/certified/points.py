"""Heads at which a rule's verdict is exactly known, summed at one value of the redraw factor.

There the output is accepted + k residual, and only k, one number a row, is known within bounds [low, high]. Sums are
taken at a point k0 of them and moved outwards by what k can change. With R the residual mass at these heads, m the
larger of high - k0 and k0 - low, and T the sum of |out - p| at k0:

-   out rises with k, by R times the change of k in all: so do the sums of (out - p)+ and, falling, of (p - out)+.
-   The sum G of a divergence f(p, out) is convex in k. From below it is bounded by its tangent at k0, from above by the
    steeper of those at low and high; what follows are bounds of |G'|, by residual <= out / k.
-   KL(p, out), f = p log(p/out) - p + out: |G'| = |sum residual (1 - p/out)| <= sum |out - p| / k.
-   KL(out, p): |G'| <= sum residual |log(out/p)| <= sum out |log(out/p)| / k, where |log(out/p)| moves by log(k/k0) at
    most. With falling k, G rises by no more than the sum of (p - out)+ at low, since f(out, p) <= p - out where
    out < p, and f falls with out where out > p.
-   Jensen-Shannon: the slope is log(2t/(1+t))/2 with t = out/p, and |log(2t/(1+t))| is at most |t-1|/(1+t) for t > 1
    and |t-1|/(2t) for t < 1: |G'| <= sum |out - p| / (2k). Besides, f <= |out - p| log(2)/2: it is convex in out on
    either side of p, and equal there at out = 0 and, in the limit, at p = 0.
-   out/p moves by the factor k/k0 at most.

Sums of |p log(out/p)| and |out log(out/p)|, which bound their rounding, follow from those without the sign: since
log x <= x - 1, what is negative among their terms has no more than the sums of (out - p)+ and of (p - out)+.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.packing import packed

__all__ = ["PointSums", "Points", "Summed", "parted"]

_TINY = torch.finfo(torch.float64).smallest_normal


class PointSums(NamedTuple):
    """What these heads have part in, all (R, 1), of the output against a target.

    gain, loss
        Sums of (out - target)+ and (target - out)+.
    waste_of_gain, waste_of_loss
        The same less those of the draft, and with the rejected mass.
    kl, reverse_kl, js
        Sums of the generators of `divergences`.
    outside
        Output where the target has none.
    ratio
        The largest out/target.
    missing, beyond
        Where the target surely has mass and the output none, and the other way round.
    largest, largest_target
        (R, 1 or 2) the largest output among the most probable tokens of the target and among all others, and what the
        target gives those at most; of the others only that it is less.
    """

    gain: Lines
    loss: Lines
    waste_of_gain: Lines
    waste_of_loss: Lines
    kl: Lines
    reverse_kl: Lines
    js: Lines
    outside: Lines
    ratio: Lines
    missing: Tensor
    beyond: Tensor
    largest: Lines
    largest_target: Lines


class _AtPoint(NamedTuple):
    """Figures of the output against p at one value of the factor, (R, 1) each.

    missing, faint
        Whether some token with p has no output, or less than p times the smallest normal number, of which no log is
        taken.
    apart
        The sum of |out - p|.
    ratio
        The largest t = out/p.
    p_logs, out_logs, middles
        The sums of p log t, out log t and (p + out) log(1 + t).
    best, others
        The largest output among the most probable tokens of the target, and among all others.
    """

    missing: Tensor
    faint: Tensor
    apart: Tensor
    ratio: Tensor
    p_logs: Tensor
    out_logs: Tensor
    middles: Tensor
    best: Tensor
    others: Tensor


class _Masses(NamedTuple):
    """What is known of points whatever the redraw factor, (R, 1) each.

    p, kept, rejected, redrawn
        The target mass, the accepted mass, the draft mass that is not accepted, and the residual mass.
    draft_gain, draft_loss
        The sums of (q - p)+ and (p - q)+.
    seen_p, peak, subnormal
        Of all heads: their p, the greatest p, and whether some p is too small for its inverse.
    kept_outside, redrawn_outside
        Accepted and residual mass where p is 0.
    """

    p: Tensor
    kept: Tensor
    rejected: Tensor
    redrawn: Tensor
    draft_gain: Tensor
    draft_loss: Tensor
    seen_p: Tensor
    peak: Tensor
    subnormal: Tensor
    kept_outside: Tensor
    redrawn_outside: Tensor


@dataclass(frozen=True, eq=False)
class Points:
    """All heads of whole rows but those `apart` (R, N), by column, and those without a token.

    accepted, residual : (R, H)
        What a rule accepts there and the weights it redraws from; 0 at the columns apart.
    """

    cells: Cells
    apart: Tensor
    accepted: Tensor
    residual: Tensor

    def without(self, columns: Tensor) -> "Points":
        """The same without some further columns (R, N), `apart` among them."""
        return Points(self.cells, columns, *(x.scatter(-1, columns, 0) for x in (self.accepted, self.residual)))

    @cached_property
    def masses(self) -> _Masses:
        """What does not depend on the redraw factor."""
        cells, q = self.cells, self.cells.head_q.low_left
        p_apart, q_apart = (x.low_left.gather(-1, self.apart) for x in (cells.head_p, cells.head_q))
        kept_outside, redrawn_outside = (_sum(x.gather(-1, cells.without_p)) for x in (self.accepted, self.residual))
        return _Masses(
            p=cells.seen_p - _sum(p_apart),
            kept=_sum(self.accepted),
            rejected=_sum((q - self.accepted).scatter_(-1, self.apart, 0)),
            redrawn=_sum(self.residual),
            draft_gain=cells.draft_gain - _sum((q_apart - p_apart).clamp_(min=0)),
            draft_loss=cells.draft_loss - _sum((p_apart - q_apart).clamp_(min=0)),
            seen_p=cells.seen_p,
            peak=cells.peak,
            subnormal=cells.subnormal,
            kept_outside=kept_outside,
            redrawn_outside=redrawn_outside,
        )

    def at(self, k: Tensor) -> _AtPoint:
        """The sums at one value k (R, 1) of the redraw factor."""
        cells = self.cells
        p = cells.head_p.low_left
        # Where columns are apart the output is the target: they add nothing.
        out = torch.addcmul(self.accepted, k, self.residual)
        out.scatter_(-1, self.apart, p.gather(-1, self.apart))
        distance = _sum((out - p).abs_())
        t = out * cells.inverse_p
        tiny = (t < _TINY) & cells.with_p
        faint = _any(tiny)
        missing = _any(tiny & (out == 0)) if bool(faint.any()) else faint
        largest = t.amax(-1, keepdim=True)
        middle = (t + 1).log_()
        logs = t.clamp_(min=_TINY).log_()
        p_logs, out_logs, middles = (_dot(a, b) for a, b in ((p, logs), (out, logs), (p + out, middle)))
        out.scatter_(-1, self.apart, 0)
        best = out.gather(-1, cells.modes).amax(-1, keepdim=True)
        others = out.scatter_(-1, cells.modes, 0).amax(-1, keepdim=True)
        return _AtPoint(missing, faint, distance, largest, p_logs, out_logs, middles, best, others)

    def largest_at(self, k: Tensor) -> Tensor:
        """(R, 1) the largest output at one value k (R, 1) of the redraw factor; unbounded, 0 of it counts as 0."""
        return torch.addcmul(self.accepted, k.clamp(max=1 / _TINY), self.residual).amax(-1, keepdim=True)


class Summed:
    """Points of several parts of rows, one after the other, summed."""

    def __init__(self, parts: Sequence[Points]) -> None:
        self.parts = parts
        self.masses = _Masses(*(torch.cat(of_parts) for of_parts in zip(*(x.masses for x in parts), strict=True)))

    def _split(self, k: Tensor) -> tuple[Tensor, ...]:
        return k.split([part.cells.rows for part in self.parts])

    def against_target(self, factor: Lines) -> PointSums:
        """The sums against the target p, for a redraw factor (R, 1) within bounds."""
        masses, low, high = self.masses, factor.low, factor.high
        residual = masses.redrawn
        k = torch.where(high.isfinite(), (low + high) / 2, low + 1)
        # Where nothing is redrawn k changes nothing.
        up, down = ((end.masked_fill(residual == 0, 0)) for end in (high - k, k - low))
        move = torch.maximum(up, down)
        share, steepest = ((move / at).nan_to_num(0.0, posinf=torch.inf) for at in (k, low))

        parts = [part.at(at) for part, at in zip(self.parts, self._split(k), strict=True)]
        found = _AtPoint(*(torch.cat(of_parts) for of_parts in zip(*parts, strict=True)))
        apart, p_logs, out_logs, middles = found.apart, found.p_logs, found.out_logs, found.middles
        mass_out = masses.kept + k * residual
        more = mass_out - masses.p
        rounding = ROUNDING * (masses.p + mass_out)
        gain, loss = ((apart + sign * more).clamp(min=0) / 2 for sign in (1, -1))
        gained = Lines.between(gain - down * residual - rounding, gain + up * residual + rounding)
        lost = Lines.between(loss - up * residual - rounding, loss + down * residual + rounding)
        moved = move * residual
        furthest = apart + moved

        kl, size_kl = more - p_logs, p_logs.abs() + 2 * gain
        up_kl = (steepest * furthest).masked_fill(found.faint, torch.inf)
        size = out_logs.abs() + 2 * loss
        reverse = out_logs - more
        up_reverse = torch.minimum(
            steepest * (size + steepest * mass_out), share * (size + share * mass_out) + loss + moved
        )
        both = 2 * masses.seen_p + more
        js = (out_logs - middles + math.log(2) * both) / 2
        size_js = size + middles + both
        up_js = torch.minimum(js + steepest * furthest / 2, math.log(2) / 2 * furthest)

        # By which out moves at most; 0/0 changes nothing.
        factors = Lines.between(
            *((end / k).nan_to_num(1.0, posinf=torch.inf).masked_fill(residual == 0, 1) for end in (low, high))
        )
        outside = Lines.exact(masses.kept_outside) + Lines.exact(masses.redrawn_outside) * factor
        surely, maybe = outside.low > 0, outside.high > 0
        reverse_kl = _around(reverse, share * size, up_reverse, rounding + ROUNDING * size)
        ratio = Lines.exact(found.ratio) * factors

        def unless_outside(x: Lines) -> Lines:
            low = x.low.masked_fill(maybe, 0).masked_fill(surely, torch.inf)
            return Lines.between(low, x.high.masked_fill(maybe | masses.subnormal, torch.inf))

        return PointSums(
            gain=gained,
            loss=lost,
            waste_of_gain=gained + Lines.exact(masses.rejected - masses.draft_gain),
            waste_of_loss=lost + Lines.exact(masses.rejected - masses.draft_loss),
            kl=_around(kl, share * apart, up_kl, rounding + ROUNDING * size_kl),
            reverse_kl=unless_outside(reverse_kl),
            js=_around(js, share * apart / 2, up_js - js, ROUNDING * size_js),
            outside=outside,
            ratio=unless_outside(ratio),
            missing=found.missing,
            beyond=surely,
            largest=Lines.exact(torch.cat([found.best, found.others], dim=-1)) * factors,
            largest_target=Lines.exact(torch.cat([masses.peak, torch.full_like(k, -1)], dim=-1)),
        )

    def against_nothing(self, factor: Lines) -> PointSums:
        """The sums against a target that has no mass at these heads, for a redraw factor (R, 1) within bounds."""
        masses = self.masses
        out = Lines.exact(masses.kept) + Lines.exact(masses.redrawn) * factor
        nothing = torch.zeros_like(masses.kept)
        unbounded = Lines.between(
            nothing.masked_fill(out.low > 0, torch.inf), nothing.masked_fill(out.high > 0, torch.inf)
        )
        others = (
            torch.cat([part.largest_at(at) for part, at in zip(self.parts, self._split(k), strict=True)])
            for k in (factor.low, factor.high)
        )
        return PointSums(
            gain=out,
            loss=Lines.exact(nothing),
            waste_of_gain=Lines.exact(masses.redrawn) * factor,
            waste_of_loss=Lines.exact(masses.rejected),
            kl=out,
            reverse_kl=unbounded,
            js=out * Lines.exact(torch.full_like(nothing, math.log(2) / 2)),
            outside=out,
            ratio=unbounded,
            missing=nothing > 0,
            beyond=out.low > 0,
            largest=Lines.between(*others),
            largest_target=Lines.exact(nothing),
        )


def parted(cells: Cells, accepted: Lines, residual: Lines) -> Points:
    """The heads at which it is known what is accepted and redrawn; the spare last column is among the others."""
    unknown = [x.low != x.high for x in (accepted, residual) if not x.is_exact]
    spare = cells.drafted.new_full((cells.rows, 1), cells.known - 1)
    points = Points(cells, spare, accepted.low, residual.low)
    if not unknown:
        return points
    apart = packed(torch.stack(unknown).any(0).scatter_(-1, spare, True), fill=cells.known - 1)
    return points.without(apart)


def _any(mask: Tensor) -> Tensor:
    # As numbers, which is many times as fast.
    return mask.view(torch.int8).amax(-1, keepdim=True) > 0


def _sum(x: Tensor) -> Tensor:
    return x.sum(-1, keepdim=True)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.vecdot(a, b)[:, None]


def _around(value: Tensor, down: Tensor, up: Tensor, rounding: Tensor) -> Lines:
    """Bounds around a figure that is not negative."""
    return Lines.between((value - down - rounding).clamp(min=0), value + up + rounding)
