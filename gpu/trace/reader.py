"""Reading a trace, one block in memory at a time."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn.functional import pad

from fly_theory.errors import TraceError
from gpu.digest import sha256_of_bytes, sha256_of_file
from gpu.trace.block import TraceBlock
from gpu.trace.header import MANIFEST, TOKENIZER, read_manifest


class Trace:
    """The blocks of a trace folder, read from disk as they are asked for.

    `len(trace)` blocks; iterate, or index with an integer. Logits come in the dtype they are stored in, those of both
    models padded with -inf to the common width `vocabulary`. How the blocks are spread over shards does not show.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest: dict[str, Any] = read_manifest(self.path)
        if not self.manifest.get("complete"):
            done = sum(shard["blocks"] for shard in self.manifest["shards"])
            msg = f"{self.path} is unfinished: {done} blocks so far. Run the command that made it again to complete it"
            raise TraceError(msg)
        self._shards: list[dict[str, Any]] = self.manifest["shards"]
        self._starts = [0, *accumulate(shard["blocks"] for shard in self._shards)]
        self._verified: set[int] = set()
        for shard in self._shards:
            check_size(self.path, shard)

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r}: {len(self)} blocks, K={self.draft_length}, V={self.vocabulary})"

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[TraceBlock]:
        for number in range(len(self._shards)):
            yield from self.shard(number)

    def __getitem__(self, index: int) -> TraceBlock:
        if not -len(self) <= index < len(self):
            msg = f"block {index} of a trace of {len(self)} blocks"
            raise IndexError(msg)
        index %= len(self)
        shard = bisect_right(self._starts, index) - 1
        return next(self._read(shard, [index - self._starts[shard]]))

    def shard(self, number: int) -> Iterator[TraceBlock]:
        """The blocks of one shard, in their order."""
        return self._read(number, range(self._shards[number]["blocks"]))

    @property
    def shards(self) -> tuple[int, ...]:
        """How many blocks each shard holds."""
        return tuple(shard["blocks"] for shard in self._shards)

    @property
    def draft_length(self) -> int:
        """K, the number of draft tokens in a block."""
        return int(self.manifest["draft_length"])

    @property
    def vocabulary(self) -> int:
        """V, the wider of the two models' widths: the width of every logits row that is read."""
        return max(int(self.manifest["vocabulary"]["target"]), int(self.manifest["vocabulary"]["draft"]))

    @cached_property
    def sha256(self) -> str:
        """Digest of the manifest, and through it of every file of the trace."""
        return sha256_of_file(self.path / MANIFEST)

    def decode(self, ids: Tensor | Iterable[int]) -> str:
        """Text of token ids, special tokens included; no model is needed.

        Raises
        ------
        TraceError
            The trace holds no tokenizer, or a missing, altered or unreadable one.
        """
        return self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens around it; no model is needed.

        Raises
        ------
        TraceError
            As `decode`.
        """
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def token_texts(self) -> list[str | None]:
        """The text of every id by itself, V of them: empty for a special token, None for an id without a token.

        Raises
        ------
        TraceError
            As `decode`.
        """
        tokenizer = self._tokenizer
        known = [i for i in range(self.vocabulary) if tokenizer.id_to_token(i) is not None]
        texts: list[str | None] = [None] * self.vocabulary
        for i, text in zip(known, tokenizer.decode_batch([[i] for i in known]), strict=True):
            texts[i] = text
        return texts

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        entry, path = self.manifest["tokenizer"], self.path / TOKENIZER
        if entry is None:
            msg = f"{self.path} holds no tokenizer, so its ids cannot be decoded"
            raise TraceError(msg)
        try:
            content = path.read_bytes()
        except OSError as error:
            msg = f"{path} cannot be read: {error.strerror}"
            raise TraceError(msg) from error
        if sha256_of_bytes(content) != entry["sha256"]:
            msg = f"{path} was altered: its checksum is not that of the manifest"
            raise TraceError(msg)
        try:
            return Tokenizer.from_str(content.decode())
        except Exception as error:  # the only type that tokenizers raises
            msg = f"{path} is no tokenizer that this version of tokenizers reads: {error}"
            raise TraceError(msg) from error

    def _read(self, number: int, wanted: Iterable[int]) -> Iterator[TraceBlock]:
        shard = self._shards[number]
        if number not in self._verified:
            check_content(self.path, shard)
            self._verified.add(number)
        path = self.path / shard["file"]
        try:
            with safe_open(path, framework="pt") as tensors:
                self._check_shapes(tensors, shard)
                for i in wanted:
                    yield self._record(tensors, i, self._starts[number] + i)
        except (OSError, SafetensorError) as error:
            msg = f"{path} cannot be read: {error}"
            raise TraceError(msg) from error

    def _record(self, tensors: Any, i: int, index: int) -> TraceBlock:
        """Number i of an open shard, which is number `index` of the trace."""
        begin, end = tensors.get_slice("context_offsets")[i : i + 2].tolist()
        return TraceBlock(
            target_logits=self._widen(tensors.get_slice("target_logits")[i]),
            draft_logits=self._widen(tensors.get_slice("draft_logits")[i]),
            tokens=tensors.get_slice("tokens")[i],
            context=tensors.get_slice("context_ids")[begin:end],
            prompt=int(tensors.get_slice("prompt")[i]),
            position=int(tensors.get_slice("position")[i]),
            index=index,
        )

    def _shapes(self, blocks: int) -> dict[str, list[int]]:
        """Shapes of the tensors of a shard with so many blocks."""
        k, widths = self.draft_length, self.manifest["vocabulary"]
        return {
            "target_logits": [blocks, k + 1, widths["target"]],
            "draft_logits": [blocks, k, widths["draft"]],
            "tokens": [blocks, k],
            "context_offsets": [blocks + 1],
        }

    def _widen(self, logits: Tensor) -> Tensor:
        return pad(logits, (0, self.vocabulary - logits.shape[-1]), value=-torch.inf)

    def _check_shapes(self, tensors: Any, shard: dict[str, Any]) -> None:
        for name, shape in self._shapes(shard["blocks"]).items():
            found = tensors.get_slice(name).get_shape()
            if found != shape:
                msg = f"{self.path / shard['file']}: {name} has shape {found}, the manifest says {shape}"
                raise TraceError(msg)


def check_size(folder: Path, shard: dict[str, Any]) -> None:
    """Raise a TraceError that names the file if a shard is missing or has not the size the manifest says."""
    path = folder / shard["file"]
    try:
        size = path.stat().st_size
    except OSError as error:
        msg = f"{path} is missing from the trace ({error.strerror})"
        raise TraceError(msg) from error
    if size != shard["bytes"]:
        how = "truncated" if size < shard["bytes"] else "too long"
        msg = f"{path} is {how}: {size} bytes, the manifest says {shard['bytes']}"
        raise TraceError(msg)


def check_content(folder: Path, shard: dict[str, Any]) -> None:
    """Raise a TraceError that names the file if a shard's checksum is not that of the manifest."""
    path = folder / shard["file"]
    try:
        digest = sha256_of_file(path)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise TraceError(msg) from error
    if digest != shard["sha256"]:
        msg = f"{path} was altered: its sha256 is {digest}, the manifest says {shard['sha256']}"
        raise TraceError(msg)
