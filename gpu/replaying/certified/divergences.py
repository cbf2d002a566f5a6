"""Divergences and entropies of enclosures.

A divergence is the sum over tokens of f(a, b) = b phi(a/b), phi convex with its minimum 0 at 1; f is convex, positively
homogeneous, and along a segment on which a and b are linear it lies below the chord of its ends and above its tangents
f(a, b) >= f_a a + f_b b, taken at any point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu.replaying.certified.array import Enclosure
from gpu.replaying.certified.cells import ROUNDING
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.sums import sum_bounds

__all__ = [
    "JENSEN_SHANNON",
    "RELATIVE_ENTROPY",
    "Generator",
    "divergence",
    "entropy",
    "relative_entropy",
    "surely_apart",
    "unseen_sum",
]


@dataclass(frozen=True)
class Generator:
    """f(a, b) at a >= 0, b >= 0, and its gradient at points with a/b = ratio."""

    value: Callable[[Tensor, Tensor], Tensor]
    gradient: Callable[[Tensor], tuple[Tensor, Tensor]]


def _relative(a: Tensor, b: Tensor) -> Tensor:
    return torch.special.xlogy(a, a / b).masked_fill(a == 0, 0) - a + b


def _jensen_shannon(a: Tensor, b: Tensor) -> Tensor:
    middle = (a + b) / 2
    return (torch.special.xlogy(a, a / middle) + torch.special.xlogy(b, b / middle)).masked_fill(middle == 0, 0) / 2


RELATIVE_ENTROPY = Generator(_relative, lambda ratio: (ratio.log(), 1 - ratio))
JENSEN_SHANNON = Generator(
    _jensen_shannon, lambda ratio: ((2 * ratio / (1 + ratio)).log() / 2, (2 / (1 + ratio)).log() / 2)
)

# Between these ratios tangents are taken; any tangent is sound.
_STEEPEST = 1e12


def divergence(generator: Generator, a: Enclosure, b: Enclosure, further: Lines | None = None) -> Enclosure:
    """Bounds (R, 1) of the sum of f(a, b) over all tokens, `further` (R, 1) beside those that a and b are given for."""
    assert a.tail is not None
    assert b.tail is not None
    head = _enclosed(generator, a.head, b.head)
    head = head if further is None else head.beside(further)
    low, high = sum_bounds(a.cells, head, _enclosed(generator, a.tail, b.tail))
    return Enclosure(a.cells, Lines.between(low.clamp(min=0), high), None)


def relative_entropy(a: Enclosure, b: Enclosure) -> Enclosure:
    """Bounds (R, 1) of the sum of a log(a / b) over all tokens; infinite where a surely has mass where b has none."""
    summed = divergence(RELATIVE_ENTROPY, a, b)
    surely = surely_apart(a, b)
    low = torch.where(surely, torch.inf, summed.low)
    high = torch.where(surely, torch.inf, summed.high)
    return Enclosure(a.cells, Lines.between(low, high), None)


def entropy(p: Enclosure) -> Enclosure:
    """Bounds (R, 1) of -sum p log p over all tokens: N unseen ones of mass P have at most P log(N / P)."""
    cells = p.cells
    if cells.entropy_p is not None and p.head is cells.head_p:
        return Enclosure(cells, _rounded(cells.entropy_p, cells.entropy_p), None)
    assert p.tail is not None
    least, most = p.head.low.clamp(min=0), p.head.high
    ends = [torch.special.entr(end) for end in (least, most)]
    low = cells.per_head(torch.minimum(*ends), torch.amin).sum(-1, keepdim=True)
    high = torch.special.entr(torch.minimum(torch.maximum(least, torch.full_like(least, 1 / torch.e)), most))
    high = cells.per_head(high, torch.amax)
    mass_low, mass_high = unseen_sum(p)
    count = cells.unseen.clamp(min=1)
    peak = torch.minimum(torch.maximum(mass_low, count / torch.e), mass_high)
    cap = p.unweighted().tail.high.amax(-1, keepdim=True).clamp(max=1)
    low = low - torch.special.xlogy(mass_low, cap)
    high = high.sum(-1, keepdim=True) + torch.special.entr(peak) + torch.special.xlogy(peak, count)
    return Enclosure(cells, _rounded(low, high), None)


def _rounded(low: Tensor, high: Tensor) -> Lines:
    """Bounds of a sum of what is not negative, moved outwards for its rounding."""
    return Lines.between(low * (1 - ROUNDING), high * (1 + ROUNDING))


def unseen_sum(x: Enclosure) -> tuple[Tensor, Tensor]:
    """Bounds (R, 1) of the sum of a quantity that is not negative over the unseen tokens."""
    cells = x.cells
    assert x.tail is not None
    nothing = Lines.exact(torch.zeros_like(x.head.low_left))
    low, high = sum_bounds(cells, nothing, x.tail)
    return low.clamp(min=0), high.clamp(min=0)


def _enclosed(generator: Generator, a: Lines, b: Lines) -> Lines:
    """Lines around f(a, b) for a and b that are not negative."""
    a, b = _not_negative(a), _not_negative(b)
    if a.is_exact and b.is_exact:
        return Lines.exact(_unbounded_for_nan(generator.value(a.low_left, b.low_left)))
    ends_a, ends_b = _ends(a), _ends(b)
    corners = generator.value(ends_a[:, None], ends_b[None])
    high = _unbounded_for_nan(corners.flatten(0, 1).amax(0))
    d_a, d_b = generator.gradient(_nearest_ratio(a, b))
    low = (d_a * ends_a).amin(0) + (d_b * ends_b).amin(0)
    # f itself is not negative, and neither is a line worth less.
    low = low.where((low[0] + low[-1] > 0) & low.isfinite().all(0), 0)
    if a.is_flat and b.is_flat:
        return Lines.between(low[0], high[0])
    return Lines(low[0], low[-1], high[0], high[-1])


def _ends(x: Lines) -> Tensor:
    """(1 or 2, 1 or 2, R, H): the lower and the upper line, where they differ, at their left and right ends."""
    bounds = (0,) if x.is_known else (0, 2)
    ends = (0,) if x.is_flat else (0, 1)
    return torch.stack([x[bound + end] for bound in bounds for end in ends]).unflatten(0, (len(bounds), len(ends)))


def _not_negative(x: Lines) -> Lines:
    """Bounds of what is known not to be negative: a line below max(L, 0) that is nowhere negative is L or 0."""
    if x.is_known:
        return x.rising(lambda end: end.clamp(min=0))
    below = (x.low_left < 0) | (x.low_right < 0)
    low_left = x.low_left.masked_fill(below, 0)
    high_left = x.high_left.clamp(min=0)
    if x.is_flat:
        return Lines.between(low_left, high_left)
    return Lines(low_left, x.low_right.masked_fill(below, 0), high_left, x.high_right.clamp(min=0))


def _nearest_ratio(a: Lines, b: Lines) -> Tensor:
    """a/b where, in the middle of the segment, a and b come nearest to each other."""
    (a_low, a_high), (b_low, b_high) = (((x[0] + x[1]) / 2, (x[2] + x[3]) / 2) for x in (a, b))
    ratio = torch.where(a_high < b_low, a_high / b_low, torch.where(a_low > b_high, a_low / b_high, 1.0))
    return ratio.nan_to_num(1.0, posinf=_STEEPEST).clamp(1 / _STEEPEST, _STEEPEST)


def surely_apart(a: Enclosure, b: Enclosure) -> Tensor:
    """(R, 1) whether a surely has mass at tokens where b has none."""
    assert a.tail is not None
    assert b.tail is not None

    def alone(a: Lines, b: Lines) -> Lines:
        nothing = (b.high_left <= 0) & (b.high_right <= 0)
        return Lines(*(end.where(nothing, 0) for end in a))

    heads = alone(a.head, b.head)
    at_heads = (a.cells.per_head(heads.low, torch.amin) > 0).any(-1, keepdim=True)
    if not bool((b.tail.high <= 0).any()):
        return at_heads
    tail = alone(a.tail, b.tail)
    return at_heads | (sum_bounds(a.cells, heads, tail)[0] > 0)


def _unbounded_for_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(torch.inf, posinf=torch.inf)
