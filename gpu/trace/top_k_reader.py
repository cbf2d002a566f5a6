"""Reading a top-k trace, one block in memory at a time."""

from collections.abc import Iterator
from typing import Any

from gpu.trace.reader import Trace
from gpu.trace.top_k import TopKBlock, TopRows

__all__ = ["TopKTrace"]


class TopKTrace(Trace):
    """The blocks of a top-k trace folder, read from disk as they are asked for, as `Trace` reads whole rows."""

    def __repr__(self) -> str:
        return (
            f"TopKTrace({str(self.path)!r}: {len(self)} blocks, K={self.draft_length}, V={self.vocabulary}, "
            f"k={self.top_k})"
        )

    def __iter__(self) -> Iterator[TopKBlock]:
        return super().__iter__()

    @property
    def top_k(self) -> int:
        """k, how many tokens of a row are stored."""
        return int(self.manifest["top_k"])

    @property
    def temperature(self) -> float:
        """Of the laws whose probabilities are stored."""
        return float(self.manifest["temperature"])

    def _record(self, tensors: Any, i: int, index: int) -> TopKBlock:
        begin, end = tensors.get_slice("context_offsets")[i : i + 2].tolist()

        def rows(model: str) -> TopRows:
            return TopRows(*(tensors.get_slice(f"{model}_{part}")[i] for part in ("logits", "ids", "log_sum_exp")))

        return TopKBlock(
            target=rows("target"),
            draft=rows("draft"),
            drafted_logits=tensors.get_slice("drafted_logits")[i],
            temperature=self.temperature,
            vocabulary=self.vocabulary,
            tokens=tensors.get_slice("tokens")[i],
            context=tensors.get_slice("context_ids")[begin:end],
            prompt=int(tensors.get_slice("prompt")[i]),
            position=int(tensors.get_slice("position")[i]),
            index=index,
        )

    def _shapes(self, blocks: int) -> dict[str, list[int]]:
        k = self.draft_length
        shapes = {"drafted_logits": [blocks, k, 2], "tokens": [blocks, k], "context_offsets": [blocks + 1]}
        for model, rows in (("target", k + 1), ("draft", k)):
            shapes |= {f"{model}_{part}": [blocks, rows, self.top_k] for part in ("logits", "ids")}
            shapes[f"{model}_log_sum_exp"] = [blocks, rows]
        return shapes
