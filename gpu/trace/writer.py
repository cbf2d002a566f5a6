"""Writing a trace block by block, so that it can be broken off at any moment and taken up again."""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import torch
from safetensors.torch import save
from torch import Tensor

from fly_theory.errors import CaptureError, InvalidInput, ShapeError
from fly_theory.files import PARTIAL, json_text, write_bytes
from gpu.difference import first_difference
from gpu.digest import sha256_of_bytes
from gpu.trace.block import TraceBlock
from gpu.trace.header import DTYPES, MANIFEST, SHARDS, TOKENIZER, TraceHeader, read_manifest, shard_file
from gpu.trace.opening import open_trace
from gpu.trace.reader import Trace, check_content, check_size

Item = TypeVar("Item")


class TraceWriter:
    """Appends blocks to a trace folder; each shard, and the manifest after it, appears whole or not at all.

    A folder that holds the beginning of the same trace is taken up again: its finished shards are checked and kept,
    and `blocks_done` says how many blocks of the sequence the caller is to skip. The result is byte for byte that of
    an uninterrupted run. Use as a context manager, which keeps other writers out of the folder, and call `finish`
    after the last block.

    Raises
    ------
    CaptureError
        The folder holds a trace with another header (the first difference is named), holds something else, is being
        written by another process, or cannot be written to, the disk being full for example.
    TraceError
        A finished shard of an earlier run is missing or altered.
    """

    # What a block is called in errors.
    _unit = "block"

    def __init__(self, folder: str | Path, header: TraceHeader) -> None:
        self.folder = Path(folder)
        self.header = header
        self._shards: list[dict[str, Any]] = []
        self._pending: list[TraceBlock] = []
        self._complete = False

    def __enter__(self) -> Self:
        check_place(self.folder)
        try:
            (self.folder / SHARDS).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
        except OSError as error:
            raise self._failure(self.folder, error) from error
        try:
            self._keep_others_out()
            self._take_up() if (self.folder / MANIFEST).exists() else self._begin()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    @property
    def blocks_done(self) -> int:
        """How many blocks are safely on disk."""
        return sum(shard["blocks"] for shard in self._shards)

    def append(self, block: TraceBlock) -> None:
        """Add a block: target_logits (K+1, V_target), draft_logits (K, V_draft), tokens (K,), each model's own width.

        Raises
        ------
        ShapeError, InvalidInput
            Shapes that do not fit the header, NaN or +inf logits (+inf also when the stored dtype overflows), a token
            outside the draft's vocabulary or without draft mass.
        CaptureError
            The shard this block completes could not be written.
        """
        name = f"{self._unit} {self.blocks_done + len(self._pending)}"
        self._pending.append(self._stored(block, name))
        if len(self._pending) == self.header.blocks_per_shard:
            self._flush()

    def finish(self) -> None:
        """Write what is left over and mark the trace as complete."""
        if self._pending:
            self._flush(complete=True)
        elif not self._complete:
            self._write_manifest(complete=True)

    def _stored(self, block: TraceBlock, name: str) -> TraceBlock:
        """A block as it is stored, or an error that says what is wrong with it under this name."""
        return _stored(block, self.header, name)

    def _as_tensors(self, blocks: list[TraceBlock]) -> dict[str, Tensor]:
        """What a shard with these blocks holds."""
        return _stacked(blocks)

    def _keep_others_out(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"another process is writing to {self.folder}; let it finish, or choose another folder"
            raise CaptureError(msg) from error

    def _begin(self) -> None:
        self._write_manifest()
        self._write_tokenizer()

    def _take_up(self) -> None:
        manifest = read_manifest(self.folder)
        before = {key: value for key, value in manifest.items() if key not in ("shards", "complete")}
        difference = first_difference(before, self.header.as_json())
        if difference:
            msg = (
                f"{self.folder} holds a trace made with other settings: {difference}. "
                "Use the same settings to resume it, or choose another folder"
            )
            raise CaptureError(msg)
        for shard in manifest["shards"]:
            check_size(self.folder, shard)
            check_content(self.folder, shard)
        self._shards = manifest["shards"]
        self._complete = manifest["complete"]
        self._write_tokenizer()

    def _flush(self, *, complete: bool = False) -> None:
        file = shard_file(len(self._shards))
        data = save(self._as_tensors(self._pending))
        self._write(file, data)
        entry = {"file": file, "blocks": len(self._pending), "bytes": len(data), "sha256": sha256_of_bytes(data)}
        self._write_manifest(entry, complete=complete)
        self._pending.clear()

    def _write_manifest(self, *new: dict[str, Any], complete: bool = False) -> None:
        manifest = self.header.as_json() | {"shards": [*self._shards, *new], "complete": complete}
        self._write(MANIFEST, json_text(manifest).encode())
        self._shards.extend(new)

    def _write_tokenizer(self) -> None:
        if self.header.tokenizer is not None and not (self.folder / TOKENIZER).exists():
            self._write(TOKENIZER, self.header.tokenizer)

    def _write(self, file: str, data: bytes) -> None:
        try:
            write_bytes(self.folder / file, data)
        except OSError as error:
            raise self._failure(self.folder / file, error) from error

    def _failure(self, path: Path, error: OSError) -> CaptureError:
        msg = f"cannot write {path}: {error.strerror}"
        if self.blocks_done:
            msg += (
                f". {self.blocks_done} finished blocks are safe in {self.folder}; "
                "once there is room, the same command goes on from there"
            )
        return CaptureError(msg)


def check_place(folder: Path) -> None:
    """Refuse a place where no trace can be begun or taken up, before any work is done.

    Raises
    ------
    CaptureError
        A file, or a folder that holds something else.
    """
    if folder.exists() and not folder.is_dir():
        msg = f"{folder} is a file; choose an empty or a new folder"
        raise CaptureError(msg)
    if not folder.is_dir() or (folder / MANIFEST).exists():
        return
    ours = {SHARDS, MANIFEST + PARTIAL}
    foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in ours)
    if foreign:
        msg = f"{folder} holds other files ({foreign[0]!r}) and no trace; choose an empty or a new folder"
        raise CaptureError(msg)


def write_trace(
    path: str | Path,
    blocks: Iterable[TraceBlock],
    *,
    dtype: str = "float32",
    blocks_per_shard: int = 8,
    tokenizer: str | Path | None = None,
    source: Mapping[str, Any] | None = None,
) -> Path:
    """Write blocks captured elsewhere as a trace, and return its folder, which has to be new or empty.

    K and the widths of both models are those of the first block; `tokenizer` is a tokenizer.json to keep for decoding,
    `source` a JSON object for the manifest that says where the logits come from. At `source["settings"]["temperature"]`
    replay reads what the draft tokens were drawn at; block efficiency is identified only where that is known.

    Raises
    ------
    InvalidInput, ShapeError, CaptureError
        No block at all, or as `TraceWriter`.
    """
    folder = new_folder(path)
    first, all_blocks = looked_ahead(blocks, "block")
    header = TraceHeader(
        draft_length=first.tokens.shape[0],
        target_vocabulary=first.target_logits.shape[-1],
        draft_vocabulary=first.draft_logits.shape[-1],
        dtype=dtype,
        blocks_per_shard=blocks_per_shard,
        tokenizer=None if tokenizer is None else Path(tokenizer).read_bytes(),
        source={} if source is None else source,
    )
    with TraceWriter(folder, header) as writer:
        for block in all_blocks:
            writer.append(block)
        writer.finish()
    return folder


def new_folder(path: str | Path) -> Path:
    """A folder for a trace; refused when it holds one."""
    folder = Path(path)
    if (folder / MANIFEST).exists():
        msg = f"{folder} holds a trace already; choose an empty or a new folder"
        raise CaptureError(msg)
    return folder


def looked_ahead(items: Iterable[Item], what: str) -> tuple[Item, Iterator[Item]]:
    """The first of the items a trace is made of, and all of them; refused when there is none."""
    remaining = iter(items)
    first = next(remaining, None)
    if first is None:
        msg = f"{what}s is empty; a trace has at least one {what}"
        raise InvalidInput(msg)
    return first, chain([first], remaining)


def reshard(source: str | Path, destination: str | Path, *, blocks_per_shard: int) -> Path:
    """Copy a trace into a new folder with another number of blocks in each shard; nothing else changes."""
    trace = open_trace(source)
    if type(trace) is not Trace:
        msg = f"{trace!r} holds no blocks of whole rows; only traces of these can be cut into other shards"
        raise InvalidInput(msg)
    return write_trace(
        destination,
        at_own_width(trace),
        dtype=trace.manifest["dtype"],
        blocks_per_shard=blocks_per_shard,
        tokenizer=trace.path / TOKENIZER if trace.manifest["tokenizer"] else None,
        source=trace.manifest["source"],
    )


def at_own_width(trace: Trace) -> Iterator[TraceBlock]:
    """The blocks of a trace of whole rows, the logits of each model at its own width again."""
    width = trace.manifest["vocabulary"]
    for block in trace:
        yield TraceBlock(
            target_logits=block.target_logits[:, : width["target"]],
            draft_logits=block.draft_logits[:, : width["draft"]],
            tokens=block.tokens,
            context=block.context,
            prompt=block.prompt,
            position=block.position,
        )


def _stored(block: TraceBlock, header: TraceHeader, name: str) -> TraceBlock:
    k = header.draft_length
    for field, shape in (
        ("target_logits", (k + 1, header.target_vocabulary)),
        ("draft_logits", (k, header.draft_vocabulary)),
        ("tokens", (k,)),
    ):
        found = tuple(getattr(block, field).shape)
        if found != shape:
            msg = f"{name}: {field} has shape {found}; expected {shape}"
            raise ShapeError(msg)
    tokens = block.tokens.to(torch.int64)
    if bool(((tokens < 0) | (tokens >= header.draft_vocabulary)).any()):
        msg = f"{name}: tokens {tokens.tolist()} are not all ids of the draft, 0 to {header.draft_vocabulary - 1}"
        raise InvalidInput(msg)
    draft_logits = as_stored(block.draft_logits, header.dtype, f"{name}: draft_logits")
    chosen = draft_logits.gather(-1, tokens[:, None])[:, 0]
    if bool((chosen == -torch.inf).any()):
        at = int((chosen == -torch.inf).nonzero()[0])
        msg = f"{name}: draft token {at} is {int(tokens[at])}, to which the draft gives no mass"
        raise InvalidInput(msg)
    return TraceBlock(
        target_logits=as_stored(block.target_logits, header.dtype, f"{name}: target_logits"),
        draft_logits=draft_logits,
        tokens=tokens,
        context=block.context.to(torch.int64),
        prompt=block.prompt,
        position=block.position,
    )


def as_stored(logits: Tensor, dtype: str, name: str) -> Tensor:
    """Logits (rows, V) in the dtype they are stored in; refused when it cannot hold them, or a row has no mass."""
    stored = logits.to("cpu", DTYPES[dtype])
    bad = stored.isnan() | (stored == torch.inf)
    if bool(bad.any()):
        row, index = bad.nonzero()[0].tolist()
        msg = (
            f"{name} row {row} has {float(logits[row, index])!r} at index {index}; "
            f"allowed are numbers that {dtype} can hold, and -inf"
        )
        raise InvalidInput(msg)
    empty = (stored == -torch.inf).all(-1)
    if bool(empty.any()):
        msg = f"{name} row {int(empty.nonzero()[0])} is -inf everywhere; at least one token needs mass"
        raise InvalidInput(msg)
    return stored


def _stacked(blocks: list[TraceBlock]) -> dict[str, Tensor]:
    return {
        "target_logits": torch.stack([block.target_logits for block in blocks]),
        "draft_logits": torch.stack([block.draft_logits for block in blocks]),
        "tokens": torch.stack([block.tokens for block in blocks]),
    } | places_as_tensors(blocks)


def places_as_tensors(blocks: list[Any]) -> dict[str, Tensor]:
    """Where blocks (or trees) stand: contexts end to end, prompts and positions."""
    lengths = torch.tensor([0, *(len(block.context) for block in blocks)])
    return {
        "context_ids": torch.cat([block.context for block in blocks]),
        "context_offsets": lengths.cumsum(0),
        "prompt": torch.tensor([block.prompt for block in blocks]),
        "position": torch.tensor([block.position for block in blocks]),
    }
