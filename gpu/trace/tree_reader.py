"""Reading a trace of draft trees, one tree in memory at a time."""

from collections.abc import Iterator
from typing import Any

from fly_theory.trees.tree import Drawing
from gpu.trace.reader import Trace
from gpu.trace.tree import TraceTree

__all__ = ["TreeTrace"]


class TreeTrace(Trace):
    """The draft trees of a trace folder, read from disk as they are asked for, as `Trace` reads blocks."""

    def __repr__(self) -> str:
        return f"TreeTrace({str(self.path)!r}: {len(self)} trees, N={self.nodes}, V={self.vocabulary})"

    def __iter__(self) -> Iterator[TraceTree]:
        return super().__iter__()

    @property
    def nodes(self) -> int:
        """N, the number of drafted tokens in a tree."""
        return int(self.manifest["nodes"])

    @property
    def drawing(self) -> Drawing:
        """How siblings were drawn."""
        return self.manifest["drawing"]

    def _record(self, tensors: Any, i: int, index: int) -> TraceTree:
        context, rows = (
            slice(*tensors.get_slice(name)[i : i + 2].tolist()) for name in ("context_offsets", "draft_offsets")
        )
        return TraceTree(
            target_logits=self._widen(tensors.get_slice("target_logits")[i]),
            draft_logits=self._widen(tensors.get_slice("draft_logits")[rows]),
            tokens=tensors.get_slice("tokens")[i],
            parents=tensors.get_slice("parents")[i],
            context=tensors.get_slice("context_ids")[context],
            prompt=int(tensors.get_slice("prompt")[i]),
            position=int(tensors.get_slice("position")[i]),
            index=index,
        )

    def _shapes(self, blocks: int) -> dict[str, list[int]]:
        return {
            "target_logits": [blocks, self.nodes + 1, self.manifest["vocabulary"]["target"]],
            "tokens": [blocks, self.nodes],
            "parents": [blocks, self.nodes],
            "context_offsets": [blocks + 1],
            "draft_offsets": [blocks + 1],
        }
