"""What is known of the rows of a block, from a top-k trace or with a tail of whole rows left unseen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fly_theory.errors import InvalidInput
from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.grouping import in_groups
from gpu.replaying.certified.heads import cells_of_rows, cells_of_top
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TopKBlock, TopKTrace, TopRows, TraceBlock

__all__ = ["cells_of", "check_law", "completion", "groups_of"]

# Whole rows of which the heads are picked together.
_ROWS = 3

_Top = tuple[Tensor, Tensor, Tensor]


def cells_of(blocks: Sequence[TopKBlock], settings: ReplaySettings) -> Cells:
    """What a top-k trace says of the rows of some blocks, K each."""
    tokens = torch.cat([block.tokens for block in blocks]).to(settings.device)
    target, draft, drafted = zip(*(_stored(block, settings) for block in blocks), strict=True)
    return cells_of_top(blocks[0].vocabulary, tokens, _joined(target), _joined(draft), _joined(drafted))


def groups_of(
    blocks: Sequence[TraceBlock] | Sequence[TopKBlock], settings: ReplaySettings, *, tail: float
) -> Iterator[Cells]:
    """What is known of the rows of some blocks, in groups that are best evaluated together.

    Of whole rows, a tail of this joint mass is only summed.
    """
    if isinstance(blocks[0], TraceBlock):
        return in_groups([cells for block in blocks for cells in _by_rows(block, settings, tail)])
    cells = cells_of(blocks, settings)
    return iter([replace(cells, places=torch.arange(cells.rows, device=cells.unseen.device))])


def _by_rows(block: TraceBlock, settings: ReplaySettings, tail: float) -> Iterator[Cells]:
    """The rows of a block, so few at a time that they stay near the processor."""
    p, q = replace(settings, dtype="float64").pair(block)
    tokens = block.tokens.to(settings.device)
    return (cells_of_rows(*of_rows, tail) for of_rows in zip(*(x.split(_ROWS) for x in (p, q, tokens)), strict=True))


def _joined(of_blocks: Iterable[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(torch.cat(parts) for parts in zip(*of_blocks, strict=True))


def completion(block: TopKBlock, settings: ReplaySettings, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows p and q (V,) that agree with what is stored, to look at; unseen tokens share what is left evenly."""
    *tops, drafted = _stored(block, replace(settings, device="cpu"))
    laws = []
    for (ids, law, _), chance in zip(tops, drafted, strict=True):
        row = np.full(block.vocabulary, np.nan)
        known = ids[position] >= 0
        row[ids[position][known].numpy()] = law[position][known].numpy()
        row[int(block.tokens[position])] = float(chance[position])
        unseen = np.isnan(row)
        row[unseen] = max(0.0, 1 - np.nansum(row)) / max(1, unseen.sum())
        laws.append(row / row.sum())
    return laws[0], laws[1]


def _stored(block: TopKBlock, settings: ReplaySettings) -> tuple[_Top, _Top, tuple[Tensor, Tensor]]:
    tokens = block.tokens.to(settings.device)
    target, draft = (_top(rows, len(tokens), settings, block.temperature) for rows in (block.target, block.draft))
    if settings.temperature == 0:
        p, q = ((ids == tokens[:, None]) & (law > 0) for ids, law, _ in (target, draft))
        drafted = tuple(hit.any(-1).double() for hit in (p, q))
    else:
        log_sums = torch.stack([block.target.log_sum_exp[: len(tokens)], block.draft.log_sum_exp], dim=-1)
        laws = (block.drafted_logits.double() / block.temperature - log_sums).exp().to(settings.device)
        drafted = laws[:, 0], laws[:, 1]
    return target, draft, drafted


def check_law(trace: TopKTrace, settings: ReplaySettings) -> None:
    """Refuse a law that stored probabilities do not determine.

    Raises
    ------
    InvalidInput
        Warpers, or a temperature that is neither that of the trace nor 0.
    """
    if settings.warpers:
        msg = f"{', '.join(settings.warpers)}: a top-k trace cannot be warped, since it does not hold every token"
        raise InvalidInput(msg)
    if settings.temperature not in (0, trace.temperature):
        msg = (
            f"temperature={settings.temperature:g}; the probabilities of this top-k trace are at temperature "
            f"{trace.temperature:g}, and allowed are that and 0"
        )
        raise InvalidInput(msg)


def _top(rows: TopRows, count: int, settings: ReplaySettings, temperature: float) -> _Top:
    """Ids and probabilities (K, k), and the most that any other token can have (K, 1)."""
    ids = rows.ids[:count].to(settings.device, torch.int64)
    law = rows.log_probabilities(temperature)[:count].exp().to(settings.device)
    if settings.temperature == 0:
        # Ties go to the lowest id, as in `fly_theory.softmax`.
        largest = ids.masked_fill(law < law.amax(-1, keepdim=True), torch.iinfo(ids.dtype).max).amin(-1, keepdim=True)
        law = (ids == largest).double()
        return ids, law, torch.zeros_like(law[:, :1])
    return ids, law, law.amin(-1, keepdim=True)
