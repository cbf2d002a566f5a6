"""Unseen tokens of whole rows, summed by the direction q/(p+q)."""

import math

import torch
from torch import Tensor

from gpu.replaying.certified.cells import ROUNDING

__all__ = ["FAR", "by_direction"]

# Beyond these log-ratios of q to p sectors are not subdivided.
FAR = 8.0

_SECTORS = 128


def by_direction(p: Tensor, q: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Rising directions (R, G + 1) around tokens p and q (R, V), and the p and q (R, G) of those between two of them.

    Sectors are told apart by the leading bits of the ratio q/p as a float64, of which each row takes so many that it
    needs no more than G: they are even in every octave, and q = p is a border.
    """
    ratio, inverse = (_ratio(a, b) for a, b in ((q, p), (p, q)))
    largest, largest_inverse = ratio.amax(-1, keepdim=True), inverse.amax(-1, keepdim=True)
    # A direction near 1 has lost the digits of p, on which q/p hangs: there by the share of p, one step outwards.
    by_p = (1 - (1 - ROUNDING) / (1 + largest)).nextafter(torch.ones_like(largest))
    most = torch.where(largest > 1, by_p, (1 + ROUNDING) * largest / (1 + largest))
    least = (1 - ROUNDING) / (1 + largest_inverse)
    least, most = torch.minimum(least, most), torch.maximum(least, most)
    far = math.exp(FAR)
    first = (1 / largest_inverse).clamp(1 / far, far)
    last = torch.maximum(first, largest.clamp(1 / far, far))
    start, span = first.view(torch.int64), (last.view(torch.int64) - first.view(torch.int64)).double()
    shift = (span / (_SECTORS - 2)).frexp().exponent.long().clamp(min=0)
    start = start >> shift
    sector = (ratio.clamp_(first, last).view(torch.int64) >> shift).sub_(start)
    border = torch.arange(_SECTORS + 1, device=p.device)
    at = ((start + border) << shift).view(torch.float64)
    nodes = torch.minimum(torch.maximum(at / (1 + at), least), most)
    nodes = torch.where(border > (last.view(torch.int64) >> shift) - start, most, nodes)
    nodes[:, :1] = least
    p_of, q_of = (torch.zeros_like(nodes[:, 1:]).scatter_add_(-1, sector, x) for x in (p, q))
    return nodes, (p_of, q_of)


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """a/b for numbers that are not negative; 0/0 is 0."""
    return (a / b).nan_to_num_(0.0, posinf=torch.inf)
