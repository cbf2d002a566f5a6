"""Bounds of a sum over all tokens of which the unseen ones are known by their mass.

At an unseen token of weight w = p + q and direction s = q/w, a quantity is at most w U(s), U linear on each sector.
For every pair (a, b) with a (1 - s) + b s >= U(s) at the ends of all sectors, the sum over all tokens is at most

    a P + b Q + sum over heads known exactly of U + sum over other heads of max over their ends of (U - a p - b q),

P and Q the masses of all that is not known exactly: weak duality of the linear programme that spreads these masses
over segments. Any such pair is sound; those tried are chords of the concave envelope of U, moved upwards by whatever
rounding leaves below it. Where the masses of each sector are known, its line is summed instead.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.lines import Lines

__all__ = ["sum_bounds"]


def sum_bounds(cells: Cells, head: Lines, tail: Lines) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds (R, 1) of the sum of a quantity with these bounds at heads (R, H) and sectors (R, G)."""
    if cells.summed is not None:
        return _bounds_by_sector(cells, head, tail)
    high = _upper(cells, head.high_left, head.high_right, tail.high_left, tail.high_right)
    return 0 - _upper(cells, -head.low_left, -head.low_right, -tail.low_left, -tail.low_right), high


def _upper(cells: Cells, head_left: Tensor, head_right: Tensor, tail_left: Tensor, tail_right: Tensor) -> Tensor:
    at_nodes = torch.maximum(
        torch.cat([tail_left, tail_right[:, -1:]], dim=-1), torch.cat([tail_left[:, :1], tail_right], dim=-1)
    ).expand(cells.rows, -1)
    at_nodes = torch.where(cells.empty, torch.zeros_like(at_nodes), at_nodes)
    unbounded = (at_nodes == torch.inf).any(-1, keepdim=True)
    at_nodes = torch.where(unbounded, torch.zeros_like(at_nodes), at_nodes)
    bounds = []
    for a, b in _multipliers(cells, at_nodes):
        heads = torch.maximum(
            head_left - a * cells.blurred_p.low_left - b * cells.blurred_q.low_left,
            head_right - a * cells.blurred_p.low_right - b * cells.blurred_q.low_right,
        )
        heads = cells.per_head(heads, torch.amax)
        # Of the masses left, the share of one that heads do not have, only so much is known.
        magnitude = heads.abs().sum(-1, keepdim=True) + a.abs() * (1 + cells.rest_p) + b.abs() * (1 + cells.rest_q)
        bounds.append(heads.sum(-1, keepdim=True) + a * cells.rest_p + b * cells.rest_q + ROUNDING * magnitude)
    return torch.stack(bounds).amin(0).masked_fill(unbounded, torch.inf)


def _bounds_by_sector(cells: Cells, head: Lines, tail: Lines) -> tuple[Tensor, Tensor]:
    """The same where the masses of each sector are known: its lines, summed, and in narrow ones their outer ends."""
    if cells.any_narrow:
        outer = tail.low, tail.low, tail.high, tail.high
        tail = Lines(*(torch.where(cells.narrow, x, end) for x, end in zip(outer, tail, strict=True)))
    terms = torch.stack(torch.broadcast_tensors(*tail, cells.at_nodes[0])[:4]).mul_(cells.weights)
    # What is unbounded, but has no tokens, counts as nothing.
    terms = terms.nan_to_num_(0.0, posinf=torch.inf, neginf=-torch.inf).unflatten(0, (2, 2))
    of_tail, magnitude = terms.sum((1, 3)), terms.abs_().sum((1, 3))
    ends = head.low[None] if head.is_known else torch.stack([head.low, head.high])
    of_heads, of_heads_magnitude = ends.sum(-1), ends.abs().sum(-1)
    rounding = ROUNDING * (magnitude + of_heads_magnitude)
    low, high = of_tail + of_heads
    return (low - rounding[0])[:, None], (high + rounding[1])[:, None]


def _multipliers(cells: Cells, at_nodes: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs (a, b), (R, 1) each, whose line lies above the values at the nodes (R, G + 1)."""
    nodes = cells.nodes.expand_as(at_nodes)
    for direction in cells.directions:
        ends = _steepest(nodes, at_nodes, direction)
        s_left, s_right = (nodes.gather(-1, end) for end in ends)
        u_left, u_right = (at_nodes.gather(-1, end) for end in ends)
        apart = s_right > s_left
        slope = torch.where(apart, u_right - u_left, 0) / torch.where(apart, s_right - s_left, 1)
        a = u_left - slope * s_left
        lift = (at_nodes - (a + slope * nodes)).max(-1, keepdim=True).values
        yield a + lift, a + slope + lift


def _steepest(nodes: Tensor, at_nodes: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """The two nodes (R, 1) around a direction (R, 1) whose chord passes highest over it."""
    before, after = nodes <= direction, nodes >= direction
    gap = nodes[:, None, :] - nodes[:, :, None]
    share = torch.where(gap > 0, (direction[:, :, None] - nodes[:, :, None]) / torch.where(gap > 0, gap, 1), 0)
    over = at_nodes[:, :, None] + share * (at_nodes[:, None, :] - at_nodes[:, :, None])
    over = torch.where(before[:, :, None] & after[:, None, :], over, -torch.inf)
    best = over.flatten(1).argmax(-1, keepdim=True)
    return best // nodes.shape[1], best % nodes.shape[1]
