"""The measures of `gpu.replaying.measures` as intervals, from what is known of the rows of some blocks."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fly_theory.arrays import array_namespace, positive_part
from fly_theory.closed_form import block_efficiency
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import ZeroResidualError
from fly_theory.rules.accept_set import AllowedSetRule
from fly_theory.rules.base import Rule
from gpu.replaying.certified.array import Enclosure, joined
from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.divergences import JENSEN_SHANNON, RELATIVE_ENTROPY, divergence, surely_apart, unseen_sum
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.packing import packed
from gpu.replaying.certified.points import Points, PointSums, Summed, parted
from gpu.replaying.measures import BASELINE, KEEP, MATCHED, MEASURES, prefixed

__all__ = ["SLACK", "Bounds", "draft_bounds", "draft_row_bounds", "of_blocks", "pair_of", "row_bounds", "rule_bounds"]

# By how much every figure is moved outwards, relatively and absolutely, for the rounding of its float64 arithmetic.
SLACK = 1e-9

_REJECTION_ROUNDING = 1e-12
_REFINEMENTS = 4


class Bounds(NamedTuple):
    """A figure lies between `low` and `high`, one value a row or a block."""

    low: Tensor
    high: Tensor


def rule_bounds(rule: Rule, cells: Cells, draft_length: int) -> dict[str, Bounds]:
    """Every measure of a rule at rows (R) of blocks of `draft_length` draft tokens, (R,) or one a block (R / K,).

    Raises
    ------
    ZeroResidualError
        The rule surely rejects in some row and surely has nothing to redraw from.
    NotReadable
        The rule needs to see every token.
    """
    return of_blocks(row_bounds(rule, [cells]), draft_length)


def row_bounds(rule: Rule, parts: Sequence[Cells]) -> dict[str, Bounds]:
    """`rule_bounds` on any rows, one value a row: what `of_blocks` needs in place of the values of blocks.

    The rows come in parts, one after the other: what takes time by the number of heads is done part by part.
    """
    with trusted_inputs():
        judged, *matched = zip(*(_judged(rule, cells) for cells in parts), strict=True)
        (p, q, accepted, residual), points = _joined((part.looked_at, part.points) for part in judged)
        factor = _redraw_factor(rule, q - accepted, residual, points)
        kept = None if points is None else Lines.exact(points.masses.kept)
        found = {"acceptance": _bounds(accepted.beside(kept).total()), KEEP: _kept(judged)}
        sums = None if points is None else points.against_target(factor.head)
        found |= _distances(p, q, accepted, accepted + factor * residual, sums)
        for looked in matched:
            found |= _matched(looked, factor)
    return found


class _Judged(NamedTuple):
    """Target p, draft q, what a rule accepts and redraws from, and maybe more, at some heads and in the sectors; the
    probability that the draft token survives; and all other heads, if there are others."""

    looked_at: tuple[Enclosure, ...]
    keep: Bounds
    points: Points | None


def _judged(rule: Rule, cells: Cells) -> tuple[_Judged, ...]:
    """What a rule decides; and, if it has an allowed set A, where tokens may be in A, with the matched target p_A and
    what of q it covers. At all other heads p_A is 0."""
    p, q = pair_of(cells)
    accepted, residual = (x.only_tokens() for x in rule.verdict(p, q))
    points = None if cells.summed is None else parted(cells, accepted.head, residual.head)
    drafted = cells.drafted[:, None]
    judged = _Judged(
        _at((p, q, accepted, residual), points), _survival(accepted.at(cells, drafted), q.at(cells, drafted)), points
    )
    if not isinstance(rule, AllowedSetRule):
        return (judged,)
    target = rule.matched_target(p)
    if points is not None:
        allowed = (target.head.high > 0).scatter_(-1, points.apart, True)
        points = points.without(packed(allowed, fill=cells.known - 1))
    drafted_q, drafted_target = (x.at(cells, drafted) for x in (q, target))
    keep = _survival(array_namespace(q).minimum(drafted_q, drafted_target), drafted_q)
    return judged, _Judged(_at((p, q, accepted, residual, target), points), keep, points)


def _matched(judged: Sequence[_Judged], factor: Enclosure) -> dict[str, Bounds]:
    """The measures against the matched target p_A, and those of its lossless verification."""
    (p, q, accepted, residual, target), points = _joined((part.looked_at, part.points) for part in judged)
    # An empty set leaves no distribution at all, and figures against it are what arithmetic makes of zeros.
    proper = target.total().low > 0
    sums = None if points is None else points.against_nothing(factor.head)
    left = None if points is None else Lines.exact(points.masses.p)
    # TV(p, p_A) is 1 - p(A), what p has beyond p_A; where A is not empty, p_A has as much beyond p.
    beyond = positive_part(p - target).beside(left).total()
    apart = _mean_of(positive_part(target - p).total(), beyond, None)
    baseline = {
        "acceptance": _bounds(array_namespace(q).minimum(q, target).total()),
        KEEP: _kept(judged),
        "tv": Bounds(*(torch.where(proper[:, 0], *ends) for ends in zip(apart, _bounds(beyond), strict=True))),
    }
    matched = _distances(target, q, accepted, accepted + factor * residual, sums, proper)
    return prefixed(MATCHED, matched) | prefixed(BASELINE, baseline)


def draft_row_bounds(parts: Sequence[Cells]) -> dict[str, Bounds]:
    """The distances of the draft from the target, one value a row, for `of_blocks`."""
    seen = []
    for cells in parts:
        p, q = pair_of(cells)
        points = None if cells.summed is None else parted(cells, q.head, (0 * q).head)
        seen.append((_at((p, q), points), points))
    (p, q), points = _joined(seen)
    none = Lines.exact(torch.zeros_like(p.cells.unseen))
    return _distances(p, q, q, q, None if points is None else points.against_target(none))


def draft_bounds(cells: Cells) -> dict[str, Bounds]:
    """The distances of the draft from the target."""
    return of_blocks(draft_row_bounds([cells]), 1)


def of_blocks(found: dict[str, Bounds], draft_length: int) -> dict[str, Bounds]:
    """The figures of rows that follow one another in blocks, and of blocks, moved outwards by the slack."""
    figures = {}
    for name, bounds in found.items():
        if name.endswith(KEEP):
            keep = (block_efficiency(end.reshape(-1, draft_length)) for end in bounds)
            name, bounds = f"{name.removesuffix(KEEP)}accepted_per_call", Bounds(*(x.accepted_per_call for x in keep))
        figures[name] = _outwards(name, *bounds)
    return figures


def _at(quantities: tuple[Enclosure, ...], points: Points | None) -> tuple[Enclosure, ...]:
    """Quantities at the heads that are not points."""
    if points is None:
        return quantities
    cells = points.cells.at(points.apart)
    return tuple(x.at(cells, points.apart) for x in quantities)


def _joined(
    parts: Iterable[tuple[tuple[Enclosure, ...], Points | None]],
) -> tuple[tuple[Enclosure, ...], Summed | None]:
    """What is looked at of all parts, and all their points."""
    looked_at, of_parts = zip(*parts, strict=True)
    points = [part for part in of_parts if part is not None]
    return (joined(looked_at), Summed(points)) if points else (looked_at[0], None)


def _kept(judged: Sequence[_Judged]) -> Bounds:
    return Bounds(*(torch.cat(ends) for ends in zip(*(part.keep for part in judged), strict=True)))


def pair_of(cells: Cells) -> tuple[Enclosure, Enclosure]:
    """Target p and draft q as arrays (R, V)."""
    return (
        Enclosure(cells, cells.head_p, cells.tail_p, weighted=True),
        Enclosure(cells, cells.head_q, cells.tail_q, weighted=True),
    )


# -- what a rejection is redrawn from ----------------------------------------------------------------------------------


def _redraw_factor(rule: Rule, rejections: Enclosure, residual: Enclosure, points: Summed | None) -> Enclosure:
    """Bounds (R, 1) of rejected mass over residual mass, by which the residual is multiplied in the output.

    The two sums are correlated (equal, for a rule on the TV line), so the quotient is refined: with D the sum of
    rejected - k residual, it is k + D / (sum of the residual), for whatever k.
    """
    if points is not None:
        rejections = rejections.beside(Lines.exact(points.masses.rejected))
        residual = residual.beside(Lines.exact(points.masses.redrawn))
    rejected, mass = rejections.total(), residual.total()
    low, high = mass.low.clamp(min=0), mass.high
    empty = (rejected.low > _REJECTION_ROUNDING) & (high <= 0)
    if bool(empty.any()):
        row = int(empty.nonzero()[0, 0])
        probability, places = float(rejected.low[row]), rejections.cells.places
        row = row if places is None else int(places[row])
        msg = f"{rule.spec} rejects with probability {probability:g} in row {row}, but its residual there is all zero"
        raise ZeroResidualError(msg)
    least = (rejected.low.clamp(min=0) / high).nan_to_num(0.0, posinf=0.0)
    most = (rejected.high.clamp(min=0) / low).nan_to_num(0.0, posinf=torch.inf)
    for _ in range(_REFINEMENTS):
        k = torch.where(most.isfinite(), (least + most) / 2, least)
        off = (rejections - residual * Enclosure(None, Lines.exact(k), None)).total()
        least = torch.maximum(
            least, k + (off.low / torch.where(off.low < 0, low, high)).nan_to_num(0.0, posinf=0.0, neginf=-torch.inf)
        )
        most = torch.minimum(
            most, k + (off.high / torch.where(off.high > 0, low, high)).nan_to_num(0.0, posinf=torch.inf)
        )
    return Enclosure(None, Lines.between(least, torch.maximum(least, most)), None)


# -- the measures ------------------------------------------------------------------------------------------------------


def _survival(accepted: Enclosure, q: Enclosure) -> Bounds:
    """The probability that a draft token survives, from quantities at this one head."""
    chance = q.head.low_left
    return Bounds(
        *((end / torch.where(chance > 0, chance, 1)).clamp(0, 1) for end in (accepted.head.low, accepted.head.high))
    )


def _distances(
    target: Enclosure,
    q: Enclosure,
    accepted: Enclosure,
    out: Enclosure,
    points: PointSums | None,
    proper: Tensor | None = None,
) -> dict[str, Bounds]:
    """Figures of the output against a target, which surely is a distribution in the rows (R, 1) that are `proper`.

    The heads looked at are those of the enclosures; what the others add comes as `points`.
    """
    law, emitted = target.multiple(), out.multiple()
    of = dict.fromkeys(PointSums._fields) if points is None else points._asdict()
    infinite_kl, infinite_reverse = surely_apart(law, emitted), surely_apart(emitted, law)
    if points is not None:
        infinite_kl, infinite_reverse = infinite_kl | points.missing, infinite_reverse | points.beyond
    gain, loss = positive_part(out - target), positive_part(target - out)
    rejections = q - accepted
    return {
        "tv": _mean_of(gain.beside(of["gain"]).total(), loss.beside(of["loss"]).total(), proper),
        "kl": _kl(infinite_kl, divergence(RELATIVE_ENTROPY, law, emitted, of["kl"]), proper),
        "reverse_kl": _infinite_where(infinite_reverse, divergence(RELATIVE_ENTROPY, emitted, law, of["reverse_kl"])),
        "js": _bounds(divergence(JENSEN_SHANNON, law, emitted, of["js"])),
        "max_ratio": _max_ratio(law, emitted, of["ratio"]),
        "waste": _mean_of(
            (gain - positive_part(q - target) + rejections).beside(of["waste_of_gain"]).total(),
            (loss - positive_part(target - q) + rejections).beside(of["waste_of_loss"]).total(),
            proper,
        ),
        "argmax_flip": _argmax_flip(target.beside(of["largest_target"]), out.beside(of["largest"])),
        "outside_support": _bounds(_outside_support(law, emitted).beside(of["outside"]).total()),
    }


def _kl(infinite: Tensor, summed: Enclosure, proper: Tensor | None) -> Bounds:
    """The sum of target log(target / out), which is less than that of its generator where the target has no mass."""
    low, high = _infinite_where(infinite, summed)
    return Bounds(low if proper is None else torch.where(proper[:, 0] | low.isinf(), low, 0), high)


def _max_ratio(target: Enclosure, out: Enclosure, of_points: Lines | None) -> Bounds:
    """Along a segment the quotient of two lines is largest at an end."""
    low = out.cells.per_head(_zero_for_nan(out.head.low / target.head.high), torch.amin).amax(-1)
    low = torch.maximum(low, _mean_quotient(out, target).amax(-1))
    high = _quotient(out.head, target.head).amax(-1)
    unseen = _quotient(out.tail, target.tail).masked_fill(~target.cells.populated, 0).amax(-1)
    high = torch.maximum(high, unseen)
    if of_points is not None:
        low, high = torch.maximum(low, of_points.low[:, 0]), torch.maximum(high, of_points.high[:, 0])
    return Bounds(low.clamp(min=1), high.clamp(min=1))


def _quotient(above: Lines, below: Lines) -> Tensor:
    """The largest quotient along each segment, which is at one of its ends; 0 / 0 does not count."""
    ends = {(id(above.high_left), id(below.low_left)): (above.high_left, below.low_left)}
    ends[id(above.high_right), id(below.low_right)] = above.high_right, below.low_right
    quotients = [_zero_for_nan(a.clamp(min=0) / b.clamp(min=0)) for a, b in ends.values()]
    return torch.maximum(quotients[0], quotients[-1])


def _mean_quotient(out: Enclosure, target: Enclosure) -> Tensor:
    """(R, 1 or G) lower bounds of the quotient of the masses of unseen tokens, which one of them reaches."""
    if out.cells.summed is None:
        return _zero_for_nan(unseen_sum(out)[0] / unseen_sum(target)[1])
    cells = out.cells
    left, right = cells.at_nodes
    rounding = ROUNDING * (left + right)
    least = out.tail.low_left * left + out.tail.low_right * right - rounding
    most = target.tail.high_left * left + target.tail.high_right * right + rounding
    return _zero_for_nan(least / most).masked_fill(cells.narrow, 0)


def _zero_for_nan(x: Tensor) -> Tensor:
    return x.nan_to_num(0.0, posinf=torch.inf)


def _argmax_flip(target: Enclosure, out: Enclosure) -> Bounds:
    """Whether none, or not each, of the tokens that may be the most probable output is one of the target's."""
    best = out.largest().low
    heads, unseen = (x >= best - SLACK * best for x in (out.head.high, _unseen_high(out)))
    unseen = unseen & (out.cells.unseen > 0)
    others, tail = _highest_other(target)
    keeps = (target.head.low >= others) | ~heads
    stays = keeps.all(-1, keepdim=True) & ~unseen
    flips = (target.head.high < target.largest().low) | ~heads
    moves = flips.all(-1, keepdim=True) & (~unseen | (tail < target.largest().low))
    return Bounds(moves.to(best.dtype)[:, 0], (~stays).to(best.dtype)[:, 0])


def _highest_other(target: Enclosure) -> tuple[Tensor, Tensor]:
    """(R, H) what any token but this head has at most of the target, and (R, 1) what any unseen one has."""
    tail = _unseen_high(target).masked_fill(target.cells.unseen == 0, 0)
    high = target.cells.per_head(target.head.high, torch.amax)
    first = high.topk(min(2, high.shape[-1]), dim=-1)
    second = torch.maximum(first.values[:, -1:], tail) if high.shape[-1] > 1 else tail
    others = torch.maximum(first.values[:, :1], tail).expand_as(high).clone()
    return target.cells.per_column(others.scatter(-1, first.indices[:, :1], second)), tail


def _unseen_high(x: Enclosure) -> Tensor:
    return x.highest_unseen().amax(-1, keepdim=True)


def _outside_support(target: Enclosure, out: Enclosure) -> Enclosure:
    """The output counts at an end of a segment where the target may vanish, and all along where it surely does."""
    summed = out.cells.summed is not None

    def outside(target: Lines, out: Lines) -> Lines:
        throughout = (target.high_left <= 0) & (target.high_right <= 0)
        left, right = target.low_left > 0, target.low_right > 0
        if summed:  # a jump at one end is no line along the sector: all of it counts
            left = right = left & right
        return Lines(
            out.low_left.where(throughout, 0),
            out.low_right.where(throughout, 0),
            out.high_left.masked_fill(left, 0),
            out.high_right.masked_fill(right, 0),
        )

    return Enclosure(out.cells, outside(target.head, out.head), outside(target.tail, out.tail), weighted=True)


# -- bounds ------------------------------------------------------------------------------------------------------------


def _bounds(x: Enclosure) -> Bounds:
    return Bounds(x.low[:, 0], x.high[:, 0])


def _mean_of(a: Enclosure, b: Enclosure, same: Tensor | None) -> Bounds:
    """Bounds of the mean of two figures of at least 0 that are the same in the rows (R, 1) named (None: all)."""
    low, high = torch.maximum(a.low, b.low), torch.minimum(a.high, b.high)
    if same is not None:
        low, high = torch.where(same, low, (a.low + b.low) / 2), torch.where(same, high, (a.high + b.high) / 2)
    return Bounds(low.clamp(min=0)[:, 0], high[:, 0])


def _infinite_where(surely: Tensor, x: Enclosure) -> Bounds:
    return Bounds(x.low.masked_fill(surely, torch.inf)[:, 0], x.high.masked_fill(surely, torch.inf)[:, 0])


def _outwards(name: str, low: Tensor, high: Tensor) -> Bounds:
    measure = MEASURES[name.removeprefix(MATCHED).removeprefix(BASELINE)]
    if name.endswith("argmax_flip"):  # 0 or 1, not rounded
        return Bounds(low, high)
    low = torch.where(low.isposinf(), low, low - SLACK * (1 + low.abs())).nan_to_num(measure.low, posinf=torch.inf)
    high = (high + SLACK * (1 + high.abs())).nan_to_num(measure.high, posinf=measure.high)
    return Bounds(low.clamp(measure.low, measure.high), high.clamp(measure.low, measure.high))
