"""Writing a top-k trace, block by block, as `TraceWriter` writes whole rows."""

from dataclasses import fields
from pathlib import Path

import torch
from torch import Tensor

from fly_theory.errors import InvalidInput, ShapeError
from gpu.trace.header import TOKENIZER, TraceHeader
from gpu.trace.opening import open_trace
from gpu.trace.reader import Trace
from gpu.trace.top_k import TOP_K_DTYPES, TopKBlock, TopKHeader, TopRows, top_k_of
from gpu.trace.writer import TraceWriter, at_own_width, new_folder, places_as_tensors

__all__ = ["TopKWriter", "top_k_header", "truncate_trace"]


class TopKWriter(TraceWriter):
    """A `TraceWriter` for `TopKBlock`s.

    Besides wrong shapes, it refuses NaN and +inf, ids outside the vocabulary or twice in a row, rows without mass, and
    draft tokens to which the draft gives none.
    """

    header: TopKHeader

    def _stored(self, block: TopKBlock, name: str) -> TopKBlock:
        header, k = self.header, self.header.draft_length
        tokens, drafted = block.tokens.to(torch.int64), block.drafted_logits.to("cpu", TOP_K_DTYPES[header.dtype])
        _check_shape(name, "tokens", tokens, (k,))
        _check_shape(name, "drafted_logits", drafted, (k, 2))
        if bool(((tokens < 0) | (tokens >= header.draft_vocabulary)).any()):
            msg = f"{name}: tokens {tokens.tolist()} are not all ids of the draft, 0 to {header.draft_vocabulary - 1}"
            raise InvalidInput(msg)
        _check_numbers(f"{name}: drafted_logits", drafted)
        without_mass = (drafted[:, 1] == -torch.inf).nonzero()
        if len(without_mass):
            at = int(without_mass[0])
            msg = f"{name}: draft token {at} is {int(tokens[at])}, to which the draft gives no mass"
            raise InvalidInput(msg)
        if block.temperature != header.temperature:
            msg = f"{name} is at temperature {block.temperature:g}, the trace at {header.temperature:g}"
            raise InvalidInput(msg)
        return TopKBlock(
            target=self._rows(block.target, k + 1, header.target_vocabulary, f"{name}: target"),
            draft=self._rows(block.draft, k, header.draft_vocabulary, f"{name}: draft"),
            drafted_logits=drafted,
            temperature=block.temperature,
            vocabulary=block.vocabulary,
            tokens=tokens,
            context=block.context.to(torch.int64),
            prompt=block.prompt,
            position=block.position,
        )

    def _rows(self, rows: TopRows, count: int, vocabulary: int, name: str) -> TopRows:
        logits = rows.logits.to("cpu", TOP_K_DTYPES[self.header.dtype])
        ids, log_sum_exp = rows.ids.to("cpu", torch.int32), rows.log_sum_exp.to("cpu", torch.float64)
        _check_shape(name, "logits", logits, (count, self.header.top_k))
        _check_shape(name, "ids", ids, (count, self.header.top_k))
        _check_shape(name, "log_sum_exp", log_sum_exp, (count,))
        _check_numbers(f"{name} logits", logits)
        if bool(~log_sum_exp.isfinite().all()):
            msg = f"{name}: log_sum_exp {log_sum_exp.tolist()} are not all finite"
            raise InvalidInput(msg)
        if bool(((ids < -1) | (ids >= vocabulary) | ((ids < 0) & (logits > -torch.inf))).any()):
            msg = f"{name}: ids are not all of 0 to {vocabulary - 1}, or -1 beside a logit of -inf"
            raise InvalidInput(msg)
        ordered = ids.sort(-1).values
        if bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()):
            msg = f"{name}: a row holds a token id twice"
            raise InvalidInput(msg)
        if bool((logits == -torch.inf).all(-1).any()):
            msg = f"{name}: a row is -inf everywhere; at least one token needs mass"
            raise InvalidInput(msg)
        return TopRows(logits, ids, log_sum_exp)

    def _as_tensors(self, blocks: list[TopKBlock]) -> dict[str, Tensor]:
        rows = {
            f"{model}_{part.name}": torch.stack([getattr(getattr(block, model), part.name) for block in blocks])
            for model in ("target", "draft")
            for part in fields(TopRows)
        }
        return (
            rows
            | {name: torch.stack([getattr(block, name) for block in blocks]) for name in ("drafted_logits", "tokens")}
            | places_as_tensors(blocks)
        )


def top_k_header(header: TraceHeader, k: int, *, temperature: float) -> TopKHeader:
    """The header of the top-k trace of a trace; k at most the vocabulary."""
    k = min(k, max(header.target_vocabulary, header.draft_vocabulary)) if isinstance(k, int) else k
    return TopKHeader(
        **{part.name: getattr(header, part.name) for part in fields(TraceHeader)}, top_k=k, temperature=temperature
    )


def truncate_trace(trace: Trace | str | Path, folder: str | Path, k: int) -> Path:
    """Write the k most probable tokens of each row of a trace of blocks as a top-k trace, and return its folder.

    The laws are those at the temperature the draft tokens were drawn at (1 where they were taken greedily, or the trace
    does not say). With k = 256 a trace shrinks to about a hundredth.

    Raises
    ------
    InvalidInput, CaptureError
        A trace of another kind, k below 1, or a folder that holds something already.
    """
    if not isinstance(trace, Trace):
        trace = open_trace(trace)
    if type(trace) is not Trace:
        msg = f"{trace!r} has no whole rows; only traces of blocks can be truncated"
        raise InvalidInput(msg)
    folder = new_folder(folder)
    temperature = float(trace.manifest["source"].get("settings", {}).get("temperature") or 1)
    header = top_k_header(_header_of(trace), k, temperature=temperature)
    with TopKWriter(folder, header) as writer:
        for block in at_own_width(trace):
            writer.append(top_k_of(block, header.top_k, temperature=temperature))
        writer.finish()
    return folder


def _header_of(trace: Trace) -> TraceHeader:
    manifest = trace.manifest
    return TraceHeader(
        draft_length=trace.draft_length,
        target_vocabulary=manifest["vocabulary"]["target"],
        draft_vocabulary=manifest["vocabulary"]["draft"],
        dtype=manifest["dtype"],
        blocks_per_shard=manifest["blocks_per_shard"],
        tokenizer=(trace.path / TOKENIZER).read_bytes() if manifest["tokenizer"] else None,
        source=manifest["source"],
    )


def _check_shape(name: str, field: str, value: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(value.shape) != expected:
        msg = f"{name}: {field} has shape {tuple(value.shape)}; expected {expected}"
        raise ShapeError(msg)


def _check_numbers(name: str, logits: Tensor) -> None:
    if bool((logits.isnan() | (logits == torch.inf)).any()):
        msg = f"{name} contain NaN or +inf; allowed are numbers and -inf"
        raise InvalidInput(msg)
