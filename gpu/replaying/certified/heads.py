"""Which tokens of a row are looked at one by one: the most probable ones that were stored, or all but a small tail."""

import itertools

import torch
from torch import Tensor

from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.packing import packed, places_of
from gpu.replaying.certified.sectors import FAR, by_direction

__all__ = ["cells_of_rows", "cells_of_top"]

# Sectors where only their total mass is known, which takes time by their square.
SECTORS = 16

# Where the unknown one of p and q is cut, in terms of the known one.
_CUTS = (0.5, 1.0, 2.0)

# Probabilities from 2^-64 to 1, in eighths of an octave: by the bits of a float64 above the last `_LEVEL_BITS`.
_LEVELS = 8 * 64
_LEVEL_BITS = 49
_LOWEST = (1023 - 64) << 52


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
    unknown = p.isnan() | q.isnan()
    known, half = (packed(real & which, fill=-1) for which in (~unknown, unknown))
    head_p, head_q = (_gathered(x, known) for x in (p, q))
    half_p, half_q = (_gathered(x, half) for x in (p, q))
    left_p, right_p = _pieces(half_p, half_q, target[2])
    left_q, right_q = _pieces(half_q, half_p, draft[2])
    far = torch.linspace(-FAR, FAR, SECTORS - 1, dtype=torch.float64, device=ids.device).sigmoid()
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
    """Rows known in full, p and q (R, V) in float64, of which a tail with (p + q)/2 of at most `tail` is only summed.

    Heads are the draft tokens (R,), the most probable token of each model, and all but those of smallest max(p, q).
    """
    seen = _seen(p, q, tail)
    seen.scatter_(-1, torch.stack([tokens, p.max(-1).indices, q.max(-1).indices], dim=-1), True)
    places, starts = places_of(seen)
    head_p, head_q = (_heads(x.flatten(), places, starts.tolist()) for x in (p, q))
    first = torch.arange(p.shape[0], device=p.device) * p.shape[-1]
    drafted = torch.searchsorted(places, first + tokens) - starts[:-1]
    unseen = (~seen).to(p.dtype)
    unseen_p, unseen_q = p * unseen, q * unseen
    nodes, summed = by_direction(unseen_p, unseen_q)
    tiny = torch.finfo(p.dtype).smallest_normal
    return Cells(
        vocabulary=p.shape[-1],
        head_p=Lines.exact(head_p),
        head_q=Lines.exact(head_q),
        unseen=(p.shape[-1] - starts.diff()[:, None]).double(),
        cap_p=unseen_p.amax(-1, keepdim=True),
        cap_q=unseen_q.amax(-1, keepdim=True),
        nodes=nodes,
        drafted=drafted,
        known=head_p.shape[-1],
        spare=True,
        summed=summed,
        entropy_p=0 - torch.linalg.vecdot(p, p.clamp(min=tiny).log_())[:, None],
    )


def _seen(p: Tensor, q: Tensor, tail: float) -> Tensor:
    """(R, V) all tokens that have mass but those of smallest max(p, q), as many as together have no more than `tail`.

    By eighths of an octave, the leading bits of a float, instead of sorting; what is below the lowest counts with it.
    """
    weight = torch.maximum(p, q)
    level = (weight.view(torch.int64) >> _LEVEL_BITS).sub_(_LOWEST >> _LEVEL_BITS).clamp_(min=0)
    masses = torch.zeros(p.shape[0], _LEVELS + 1, dtype=p.dtype, device=p.device).scatter_add_(-1, level, (p + q) / 2)
    lowest = (masses.cumsum(-1) <= tail).sum(-1, keepdim=True)
    return (level >= lowest) & (weight > 0)


def _heads(x: Tensor, places: Tensor, starts: list[int]) -> Tensor:
    """(R, H) the numbers x (R V,) at the places of each row, filled up with zeros; one column holds nothing else."""
    bounds = list(itertools.pairwise(starts))
    heads = x.new_zeros(len(bounds), 1 + max(end - start for start, end in bounds))
    for row, (start, end) in zip(heads, bounds, strict=True):
        row[: end - start] = x.index_select(0, places[start:end])
    return heads
