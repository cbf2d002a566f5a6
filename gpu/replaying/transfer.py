"""Blocks moved to the device that evaluates them, the next one under way while one is evaluated."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch

from gpu.trace import TraceBlock

__all__ = ["on_device"]


def on_device(blocks: Iterable[TraceBlock], device: str) -> Iterator[TraceBlock]:
    """The same blocks with their logits and tokens on a device; on CUDA one block is copied ahead, from pinned memory.

    No more than two blocks are held.
    """
    if device == "cpu":
        yield from blocks
        return
    stream = torch.cuda.Stream()
    waiting: tuple[TraceBlock, torch.cuda.Event] | None = None
    for block in blocks:
        following = _copied(block, stream)
        if waiting is not None:
            yield _arrived(*waiting)
        waiting = following
    if waiting is not None:
        yield _arrived(*waiting)


def _copied(block: TraceBlock, stream: torch.cuda.Stream) -> tuple[TraceBlock, torch.cuda.Event]:
    """A block whose copy has been started, and the event that marks its end."""
    with torch.cuda.stream(stream):
        target, draft, tokens = (
            values.pin_memory().to("cuda", non_blocking=True)
            for values in (block.target_logits, block.draft_logits, block.tokens)
        )
        return replace(block, target_logits=target, draft_logits=draft, tokens=tokens), stream.record_event()


def _arrived(block: TraceBlock, copied: torch.cuda.Event) -> TraceBlock:
    """A block that the current stream may read, and that outlives what the stream does with it."""
    current = torch.cuda.current_stream()
    current.wait_event(copied)
    for values in (block.target_logits, block.draft_logits, block.tokens):
        values.record_stream(current)
    return block
