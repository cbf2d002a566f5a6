"""Running a pair: the target's continuation of prompts, then drafts and what both models say along them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu.models import Model, Pair
from gpu.sampling import CONTEXT, DRAFT, draw, uniforms
from gpu.trace.block import TraceBlock


@dataclass(frozen=True)
class Place:
    """Where a block is drafted: after `context`, which is prompt number `prompt` and `position` tokens more.

    `block` counts the blocks of this prompt from 0; with the prompt it is the address of the block's random draws.
    """

    context: list[int]
    prompt: int
    position: int
    block: int


@torch.inference_mode()
def continuations(
    pair: Pair, prompts: Sequence[Sequence[int]], numbers: Sequence[int], *, length: int, temperature: float, seed: int
) -> list[list[int]]:
    """What the target writes after each prompt: up to `length` ids, ending before an end-of-sequence id.

    `prompts` are token ids, `numbers` the numbers of these prompts. Only ids known to both models are written.
    """
    sequences = _Batch(pair.target, prompts)
    noise = _uniforms(seed, CONTEXT, [(number, 0) for number in numbers], length)
    written = torch.empty(len(prompts), 0, dtype=torch.int64)
    stopped = torch.zeros(len(prompts), dtype=torch.bool)
    stops = torch.tensor(sorted(pair.target.stop_ids), dtype=torch.int64)
    for step in range(length):
        logits = sequences.next_logits()[:, : pair.common].float().cpu()
        ids = draw(logits, noise[:, step], temperature=temperature)
        written = torch.cat([written, ids[:, None]], dim=1)
        stopped |= torch.isin(ids, stops)
        if bool(stopped.all()):
            break
        sequences.append(ids)
    return [_before_stop(row, pair.target.stop_ids) for row in written.tolist()]


@torch.inference_mode()
def draft_blocks(
    pair: Pair, places: Sequence[Place], *, draft_length: int, temperature: float, seed: int, dtype: torch.dtype
) -> list[TraceBlock]:
    """Draft a block at each place and score it with the target, one batch for all.

    Draft tokens are drawn from softmax(logits / temperature) of the draft's logits *after* rounding to `dtype` and
    after giving -inf to the ids the target does not know: the law that a reader of the trace recomputes.
    """
    contexts = [place.context for place in places]
    sequences = _Batch(pair.draft, contexts)
    noise = _uniforms(seed, DRAFT, [(place.prompt, place.block) for place in places], draft_length)
    rows, drafted = [], []
    for step in range(draft_length):
        logits = sequences.next_logits().to("cpu", dtype)
        logits[:, pair.common :] = -torch.inf
        ids = draw(logits, noise[:, step], temperature=temperature)
        rows.append(logits)
        drafted.append(ids)
        if step < draft_length - 1:
            sequences.append(ids)
    draft_logits, tokens = torch.stack(rows, dim=1), torch.stack(drafted, dim=1)

    paths = [context + ids for context, ids in zip(contexts, tokens.tolist(), strict=True)]
    target_logits = _Batch(pair.target, paths).last_logits(draft_length + 1).to("cpu", dtype)
    return [
        TraceBlock(
            target_logits=target_logits[i],
            draft_logits=draft_logits[i],
            tokens=tokens[i],
            context=torch.tensor(place.context),
            prompt=place.prompt,
            position=place.position,
        )
        for i, place in enumerate(places)
    ]


class _Batch:
    """Sequences of different lengths in one model, padded on the left, growing by one id each at a time."""

    def __init__(self, model: Model, sequences: Sequence[Sequence[int]]) -> None:
        longest = max(len(sequence) for sequence in sequences)
        padding = [longest - len(sequence) for sequence in sequences]
        device = model.network.device
        self._model = model
        self._cache = model.new_cache()
        self._new = torch.tensor(
            [[0] * pad + list(sequence) for pad, sequence in zip(padding, sequences, strict=True)], device=device
        )
        self._mask = torch.tensor([[0] * pad + [1] * (longest - pad) for pad in padding], device=device)

    def last_logits(self, keep: int) -> Tensor:
        """Logits (B, keep, V) after each of the last `keep` ids."""
        return self._model.logits(self._new, self._mask, keep=keep)

    def next_logits(self) -> Tensor:
        """Logits (B, V) of the next id."""
        return self._model.logits(self._new, self._mask, keep=1, cache=self._cache)[:, -1]

    def append(self, ids: Tensor) -> None:
        """Add one id (B,) to each sequence."""
        self._new = ids.to(self._mask.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)


def _uniforms(seed: int, stream: int, addresses: Sequence[tuple[int, int]], count: int) -> Tensor:
    return torch.stack([torch.from_numpy(uniforms(seed, stream, prompt, block, count)) for prompt, block in addresses])


def _before_stop(ids: list[int], stops: frozenset[int]) -> list[int]:
    return next((ids[:i] for i, token in enumerate(ids) if token in stops), ids)
