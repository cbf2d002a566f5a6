"""The measures of `gpu.replaying.measures` as intervals, from what is known of the rows of some blocks."""

from typing import NamedTuple

import torch
from torch import Tensor

from fly_theory.arrays import array_namespace, positive_part
from fly_theory.closed_form import block_efficiency
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import ZeroResidualError
from fly_theory.rules.accept_set import AllowedSetRule
from fly_theory.rules.base import Rule
from gpu.replaying.certified.array import Enclosure
from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.divergences import JENSEN_SHANNON, RELATIVE_ENTROPY, divergence, surely_apart, unseen_sum
from gpu.replaying.certified.lines import Lines
from gpu.replaying.measures import BASELINE, MATCHED, MEASURES

__all__ = ["SLACK", "Bounds", "draft_bounds", "pair_of", "rule_bounds"]

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
    p, q = pair_of(cells)
    with trusted_inputs():
        accepted, residual = rule.verdict(p, q)
        out = accepted + _redraw_factor(rule, q, accepted, residual) * residual
        found = _efficiency(accepted, q, draft_length) | _distances(p, q, out, accepted)
        if isinstance(rule, AllowedSetRule):
            target, xp = rule.matched_target(p), array_namespace(q)
            covered = xp.minimum(q, target)
            # An empty set leaves no distribution at all, and figures against it are what arithmetic makes of zeros.
            proper = xp.where(rule.allowed_set(p), p, xp.zeros_like(p)).total().low > 0
            found |= _prefixed(MATCHED, _distances(target, q, out, accepted, proper))
            found |= _prefixed(BASELINE, _efficiency(covered, q, draft_length))
            found[f"{BASELINE}tv"] = _total_variation(p, target, proper)
    return _finished(found)


def draft_bounds(cells: Cells) -> dict[str, Bounds]:
    """The distances of the draft from the target."""
    p, q = pair_of(cells)
    return _finished(_distances(p, q, q, q))


def pair_of(cells: Cells) -> tuple[Enclosure, Enclosure]:
    """Target p and draft q as arrays (R, V)."""
    return (
        Enclosure(cells, cells.head_p, cells.tail_p, weighted=True),
        Enclosure(cells, cells.head_q, cells.tail_q, weighted=True),
    )


# -- what a rejection is redrawn from ----------------------------------------------------------------------------------


def _redraw_factor(rule: Rule, q: Enclosure, accepted: Enclosure, residual: Enclosure) -> Enclosure:
    """Bounds (R, 1) of rejected mass over residual mass, by which the residual is multiplied in the output.

    The two sums are correlated (equal, for a rule on the TV line), so the quotient is refined: with D the sum of
    rejected - k residual, it is k + D / (sum of the residual), for whatever k.
    """
    rejections = q - accepted
    if q.cells.all_seen and rejections.head.is_exact and residual.head.is_exact:
        rejections, residual = rejections.gathered(), residual.gathered()
    rejected, mass = rejections.total(), residual.total()
    low, high = mass.low.clamp(min=0), mass.high
    empty = (rejected.low > _REJECTION_ROUNDING) & (high <= 0)
    if bool(empty.any()):
        row = int(empty.nonzero()[0, 0])
        probability = float(rejected.low[row])
        msg = f"{rule.spec} rejects with probability {probability:g} in row {row}, but its residual there is all zero"
        raise ZeroResidualError(msg)
    least = (rejected.low.clamp(min=0) / high).nan_to_num(0.0, posinf=0.0)
    most = (rejected.high.clamp(min=0) / low).nan_to_num(0.0, posinf=torch.inf)
    for _ in range(_REFINEMENTS):
        k = torch.where(most.isfinite(), (least + most) / 2, least)
        off = (rejections - residual * Enclosure(None, Lines.exact(k), None)).total()
        least = torch.maximum(
            least, k + (off.low / torch.where(off.low < 0, low, high)).nan_to_num(0.0, neginf=-torch.inf)
        )
        most = torch.minimum(
            most, k + (off.high / torch.where(off.high > 0, low, high)).nan_to_num(0.0, posinf=torch.inf)
        )
    return Enclosure(None, Lines.between(least, torch.maximum(least, most)), None)


# -- the measures ------------------------------------------------------------------------------------------------------


def _efficiency(accepted: Enclosure, q: Enclosure, draft_length: int) -> dict[str, Bounds]:
    drafted = q.cells.drafted[:, None]
    chance = q.head.low_left.gather(-1, drafted)
    keep = (
        (end.gather(-1, drafted) / torch.where(chance > 0, chance, 1)).clamp(0, 1).reshape(-1, draft_length)
        for end in (accepted.head.low, accepted.head.high)
    )
    return {
        "acceptance": _bounds(accepted.total()),
        "accepted_per_call": Bounds(*(block_efficiency(end).accepted_per_call for end in keep)),
    }


def _distances(
    target: Enclosure, q: Enclosure, out: Enclosure, accepted: Enclosure, proper: Tensor | None = None
) -> dict[str, Bounds]:
    """Figures of the output against a target, which surely is a distribution in the rows (R, 1) that are `proper`."""
    infinite_kl, infinite_reverse = surely_apart(target, out), surely_apart(out, target)
    return {
        "tv": _total_variation(target, out, proper),
        "kl": _kl(infinite_kl, target, out, proper),
        "reverse_kl": _infinite_where(infinite_reverse, divergence(RELATIVE_ENTROPY, out, target)),
        "js": _bounds(divergence(JENSEN_SHANNON, target, out)),
        "max_ratio": _max_ratio(target, out),
        "waste": _waste(target, q, out, accepted, proper),
        "argmax_flip": _argmax_flip(target, out),
        "outside_support": _outside_support(target, out),
    }


def _total_variation(target: Enclosure, out: Enclosure, proper: Tensor | None) -> Bounds:
    """Half the sum of the differences of either sign; of two distributions, both have the same sum."""
    return _mean_of(positive_part(out - target).total(), positive_part(target - out).total(), proper)


def _kl(infinite: Tensor, target: Enclosure, out: Enclosure, proper: Tensor | None) -> Bounds:
    """The sum of target log(target / out), which is less than that of its generator where the target has no mass."""
    low, high = _infinite_where(infinite, divergence(RELATIVE_ENTROPY, target, out))
    return Bounds(low if proper is None else torch.where(proper[:, 0] | low.isinf(), low, 0), high)


def _waste(target: Enclosure, q: Enclosure, out: Enclosure, accepted: Enclosure, proper: Tensor | None) -> Bounds:
    rejections = q - accepted
    return _mean_of(
        (positive_part(out - target) - positive_part(q - target) + rejections).total(),
        (positive_part(target - out) - positive_part(target - q) + rejections).total(),
        proper,
    )


def _max_ratio(target: Enclosure, out: Enclosure) -> Bounds:
    """Along a segment the quotient of two lines is largest at an end."""
    low = out.cells.per_head(_zero_for_nan(out.head.low / target.head.high), torch.amin).amax(-1)
    low = torch.maximum(low, _mean_quotient(out, target).amax(-1))
    high = _quotient(out.head, target.head).amax(-1)
    unseen = _quotient(out.tail, target.tail).masked_fill(~target.cells.populated, 0).amax(-1)
    return Bounds(low.clamp(min=1), torch.maximum(high, unseen).clamp(min=1))


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
    return x.unweighted().tail.high.amax(-1, keepdim=True)


def _outside_support(target: Enclosure, out: Enclosure) -> Bounds:
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

    emitted = Enclosure(out.cells, outside(target.head, out.head), outside(target.tail, out.tail), weighted=True)
    return _bounds(emitted.total())


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


def _finished(found: dict[str, Bounds]) -> dict[str, Bounds]:
    """Every figure moved outwards by the slack, and cut to where the measure can lie."""
    return {name: _outwards(name, *bounds) for name, bounds in found.items()}


def _outwards(name: str, low: Tensor, high: Tensor) -> Bounds:
    measure = MEASURES[name.removeprefix(MATCHED).removeprefix(BASELINE)]
    if name.endswith("argmax_flip"):  # 0 or 1, not rounded
        return Bounds(low, high)
    low = torch.where(low.isposinf(), low, low - SLACK * (1 + low.abs())).nan_to_num(measure.low, posinf=torch.inf)
    high = (high + SLACK * (1 + high.abs())).nan_to_num(measure.high, posinf=measure.high)
    return Bounds(low.clamp(measure.low, measure.high), high.clamp(measure.low, measure.high))


def _prefixed(prefix: str, found: dict[str, Bounds]) -> dict[str, Bounds]:
    return {f"{prefix}{name}": bounds for name, bounds in found.items()}
