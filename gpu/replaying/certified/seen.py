"""What is known of the rows of a block, from a top-k trace or with a tail of whole rows left unseen."""

import torch
from torch import Tensor

from fly_theory.errors import InvalidInput
from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.heads import cells_of_rows, cells_of_top
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TopKBlock, TopKTrace, TopRows, TraceBlock

__all__ = ["cells_of", "check_law"]


def cells_of(block: TraceBlock | TopKBlock, settings: ReplaySettings, *, tail: float | None) -> Cells:
    """What is known of the rows (K) of a block; of whole rows, tokens of a joint mass up to `tail` are only summed."""
    tokens = block.tokens.to(settings.device)
    if isinstance(block, TraceBlock):
        p, q = settings.pair(block)
        return cells_of_rows(p.double(), q.double(), tokens, tail or 0.0)
    target, draft = (_top(rows, len(tokens), settings, block.temperature) for rows in (block.target, block.draft))
    if settings.temperature == 0:
        p, q = ((ids == tokens[:, None]) & (law > 0) for ids, law, _ in (target, draft))
        drafted = tuple(hit.any(-1).double() for hit in (p, q))
    else:
        log_sums = torch.stack([block.target.log_sum_exp[: len(tokens)], block.draft.log_sum_exp], dim=-1)
        laws = (block.drafted_logits.double() / block.temperature - log_sums).exp().to(settings.device)
        drafted = laws[:, 0], laws[:, 1]
    return cells_of_top(block.vocabulary, tokens, target, draft, drafted)


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


def _top(rows: TopRows, count: int, settings: ReplaySettings, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Ids and probabilities (K, k), and the most that any other token can have (K, 1)."""
    ids = rows.ids[:count].to(settings.device, torch.int64)
    law = rows.log_probabilities(temperature)[:count].exp().to(settings.device)
    if settings.temperature == 0:
        # Ties go to the lowest id, as in `fly_theory.softmax`.
        largest = ids.masked_fill(law < law.amax(-1, keepdim=True), torch.iinfo(ids.dtype).max).amin(-1, keepdim=True)
        law = (ids == largest).double()
        return ids, law, torch.zeros_like(law[:, :1])
    return ids, law, law.amin(-1, keepdim=True)
