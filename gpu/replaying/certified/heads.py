"""Which tokens of a row are looked at one by one: the most probable ones that were stored, or all but a small tail."""

import torch
from torch import Tensor

from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.lines import Lines

__all__ = ["cells_of_rows", "cells_of_top"]

# Sectors where only their total mass is known, which takes time by their square, and where that of each is known.
SECTORS, ROW_SECTORS = 16, 64

# Where the unknown one of p and q is cut, in terms of the known one.
_CUTS = (0.5, 1.0, 2.0)

# Probabilities from 2^-64 to 1, in eighths of an octave.
_LEVELS = 8 * 64

# Beyond these log-ratios of q to p sectors are not subdivided.
_FAR = 8.0


def cells_of_top(
    vocabulary: int,
    tokens: Tensor,
    target: tuple[Tensor, Tensor, Tensor],
    draft: tuple[Tensor, Tensor, Tensor],
    drafted: tuple[Tensor, Tensor],
) -> Cells:
    """What is known when the most probable tokens of target p and draft q are.

    Parameters
    ----------
    vocabulary
        V, the number of tokens.
    tokens
        (R,) the draft tokens.
    target, draft
        Ids (R, k), negative where there are fewer, their probabilities (R, k), and the most that any other token can
        have (R, 1).
    drafted
        p and q of the draft tokens, (R,) each.
    """
    nobody = vocabulary
    ids = torch.cat([target[0], draft[0], tokens[:, None]], dim=-1)
    ids = ids.where(ids >= 0, nobody).sort(-1).values
    again = torch.zeros_like(ids, dtype=torch.bool)
    again[:, 1:] = ids[:, 1:] == ids[:, :-1]
    ids = ids.masked_fill(again, nobody)
    p, q = (_stored(ids, top, tokens, chance) for top, chance in zip((target, draft), drafted, strict=True))
    real = ids < nobody
    known, half = _packed(real & ~p.isnan() & ~q.isnan()), _packed(real & (p.isnan() | q.isnan()))
    head_p, head_q = (_gathered(x, known) for x in (p, q))
    half_p, half_q = (_gathered(x, half) for x in (p, q))
    left_p, right_p = _pieces(half_p, half_q, target[2])
    left_q, right_q = _pieces(half_q, half_p, draft[2])
    far = torch.linspace(-_FAR, _FAR, SECTORS - 1, dtype=torch.float64, device=ids.device).sigmoid()
    return Cells(
        vocabulary=vocabulary,
        head_p=_lines(head_p, left_p, right_p),
        head_q=_lines(head_q, left_q, right_q),
        unseen=(vocabulary - real.sum(-1, keepdim=True)).double(),
        cap_p=target[2],
        cap_q=draft[2],
        nodes=torch.cat([far.new_zeros(1), far, far.new_ones(1)])[None],
        drafted=_gathered(ids, known).eq(tokens[:, None]).int().argmax(-1),
        known=known.shape[-1],
        pieces=len(_CUTS) + 1,
    )


def _stored(ids: Tensor, top: tuple[Tensor, Tensor, Tensor], tokens: Tensor, chance: Tensor) -> Tensor:
    """Probabilities (R, H) of tokens where they are known, else NaN."""
    order = top[0].sort(-1)
    at = torch.searchsorted(order.values, ids).clamp(max=order.values.shape[-1] - 1)
    value = top[1].gather(-1, order.indices.gather(-1, at)).masked_fill(order.values.gather(-1, at) != ids, torch.nan)
    return torch.where(ids == tokens[:, None], chance[:, None], value)


def _packed(mask: Tensor) -> Tensor:
    """(R, most) the columns where a mask (R, H) holds, in their order; -1 fills up."""
    count = mask.sum(-1, keepdim=True)
    columns = mask.int().argsort(dim=-1, descending=True, stable=True)[:, : int(count.max())]
    return columns.masked_fill(torch.arange(columns.shape[-1], device=mask.device) >= count, -1)


def _gathered(x: Tensor, columns: Tensor) -> Tensor:
    """The columns of x (R, H), 0 where there is none."""
    return x.gather(-1, columns.clamp(min=0)).masked_fill(columns < 0, 0)


def _pieces(x: Tensor, other: Tensor, cap: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right ends (R, M, pieces) of x at tokens (R, M): itself where known, else cut where it equals `other`,
    half of it and twice of it (rules have kinks there), from 0 up to the cap."""
    cuts = torch.stack([cut * other for cut in _CUTS], dim=-1).nan_to_num(0.0)
    ends = torch.cat([torch.zeros_like(cuts[..., :1]), cuts, torch.full_like(cuts[..., :1], torch.inf)], dim=-1)
    ends = torch.minimum(ends, cap[..., None]).where(x.isnan()[..., None], x[..., None])
    return ends[..., :-1], ends[..., 1:]


def _lines(known: Tensor, left: Tensor, right: Tensor) -> Lines:
    if not left.numel():
        return Lines.exact(known)
    return Lines.exact(*(torch.cat([known, end.flatten(-2)], dim=-1) for end in (left, right)))


def cells_of_rows(p: Tensor, q: Tensor, tokens: Tensor, tail: float) -> Cells:
    """Rows known in full, p and q (R, V) in float64, of which a tail with p + q of at most `tail` is only summed.

    Heads are the draft tokens (R,), the most probable token of each model, and all but those of smallest max(p, q).
    """
    weight = torch.maximum(p, q)
    # By eighths of an octave instead of sorting; what is below the lowest level counts with it.
    level = (_LEVELS + 8 * weight.float().log2()).clamp(min=0).long()
    masses = torch.zeros_like(p[:, :1]).expand(-1, _LEVELS + 1).clone().scatter_add_(-1, level, p + q)
    lowest = (masses.cumsum(-1) <= tail).sum(-1, keepdim=True)
    seen = (level >= lowest) & (weight > 0)
    seen.scatter_(-1, torch.stack([tokens, p.argmax(-1), q.argmax(-1)], dim=-1), True)
    count = seen.sum(-1, keepdim=True)
    ids = torch.full((p.shape[0], int(count.max())), p.shape[-1], device=p.device)
    rows, columns = seen.nonzero(as_tuple=True)
    ids[rows, (seen.cumsum(-1) - 1)[rows, columns]] = columns
    real = ids < p.shape[-1]
    head_p, head_q = (x.gather(-1, ids.clamp(max=p.shape[-1] - 1)).masked_fill(~real, 0) for x in (p, q))
    unseen_p, unseen_q = (x.masked_fill(seen, 0) for x in (p, q))
    share = unseen_q / (unseen_p + unseen_q)
    # Only a token without p has the direction 1, whatever rounding says.
    share = torch.where(unseen_p > 0, share.clamp(max=1 - 2.0**-53), share)
    least = share.nan_to_num(2.0).amin(-1, keepdim=True).clamp(max=1)
    least = torch.where(least < 1, least * (1 - ROUNDING), least)
    most = share.nan_to_num(-1.0).amax(-1, keepdim=True).clamp(min=0) * (1 + ROUNDING)
    # A direction near 1 has lost the digits of p, on which q/p hangs: there by the least share of p, one step outwards.
    rest = (unseen_p / (unseen_p + unseen_q)).nan_to_num(2.0).amin(-1, keepdim=True) * (1 - ROUNDING)
    most = torch.where(most > 0.5, (1 - rest).nextafter(torch.ones_like(rest)), most)
    nodes = _nodes(torch.minimum(least, most), torch.maximum(least, most))
    sector = torch.searchsorted(nodes, share.nan_to_num(0.0), right=True).sub_(1).clamp_(0, ROW_SECTORS - 1)
    by_sector = tuple(
        torch.zeros_like(nodes[:, 1:]).scatter_add_(-1, sector, unseen) for unseen in (unseen_p, unseen_q)
    )
    return Cells(
        vocabulary=p.shape[-1],
        head_p=Lines.exact(head_p),
        head_q=Lines.exact(head_q),
        unseen=(p.shape[-1] - count).double(),
        cap_p=unseen_p.amax(-1, keepdim=True),
        cap_q=unseen_q.amax(-1, keepdim=True),
        nodes=nodes,
        drafted=(ids == tokens[:, None]).int().argmax(-1),
        known=ids.shape[-1],
        summed=by_sector,
        entropy_p=torch.special.entr(p).sum(-1, keepdim=True),
    )


def _nodes(least: Tensor, most: Tensor) -> Tensor:
    """(R, ROW_SECTORS + 1) directions from the least to the most, even in log-ratio, with 1/2 (q = p) among them."""
    start, end = (x.logit().clamp(-_FAR, _FAR) for x in (least, most))
    steps = torch.linspace(0, 1, ROW_SECTORS + 1, dtype=least.dtype, device=least.device)
    nodes = (start + (end - start) * steps).sigmoid()
    middle = 1 + (nodes[:, 1:-1] - 0.5).abs().argmin(-1, keepdim=True)
    nodes = nodes.scatter(-1, middle, 0.5)
    nodes = torch.minimum(torch.maximum(nodes, least), most)
    nodes[:, 0], nodes[:, -1] = least[:, 0], most[:, 0]
    return nodes
