"""Log-probabilities that a serving engine returned, as a top-k trace.

Two files, one of a target run and one of a draft run along the same draft tokens, each JSONL (an object a line) or a
JSON array of such objects, one a block, in the same order:

    {"token_ids": [11, 12], "logprobs": [{"11": {"logprob": -0.2, "rank": 1, "decoded_token": " a"}, "9": ...}, ...],
     "context": [5, 6], "prompt": 0, "position": 0}

    token_ids    the K draft tokens, the same in both files
    logprobs     one object a position, token id -> {"logprob", "rank", ...} or the log-probability alone: K objects of
                 the draft, K + 1 of the target, whose last one follows the last draft token
    context      the token ids before the block; prompt, position: as in a trace. All three optional, read from the
                 draft file

This is the layout of vLLM's `logprobs` and `prompt_logprobs`: of the draft, those of the tokens it generated; of the
target, `prompt_logprobs` of the draft tokens when they are given as the end of the prompt, and `logprobs` of the first
token generated after them. Each object holds the most probable tokens and, as engines do, the draft token itself,
wherever it ranks. Values are taken as exact; engines round them to float32.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fly_theory.errors import InvalidInput
from gpu.digest import sha256_of_file
from gpu.trace import TopKBlock, TopKHeader, TopKWriter, TopRows
from gpu.trace.writer import new_folder

__all__ = ["import_logprobs"]

# How far the probabilities of one row may pass one: engines compute them in float32, or lower.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class _Row:
    """The most probable tokens of one position, most probable first, and what the draft token there has."""

    top: tuple[tuple[int, float], ...]
    drafted: float


@dataclass(frozen=True)
class _Run:
    """What one model said along one block."""

    tokens: list[int]
    rows: list[_Row]
    record: Mapping[str, Any]


def import_logprobs(
    target: str | Path,
    draft: str | Path,
    *,
    out: str | Path,
    vocabulary: int,
    temperature: float | None = 1.0,
    logprobs_at: float = 1.0,
    tokenizer: str | Path | None = None,
    blocks_per_shard: int = 64,
) -> Path:
    """Write a top-k trace of an engine's log-probabilities, in the layout of `gpu.importing`, and return its folder.

    The trace holds as many tokens of each row as the shortest one has.

    Parameters
    ----------
    target, draft
        The files of both runs.
    out
        The trace folder: new or empty.
    vocabulary
        V, how many tokens the models have.
    temperature
        What the draft tokens were drawn at, 0 if greedily; None when it is not known.
    logprobs_at
        The temperature the log-probabilities are at; engines return those at 1 unless told otherwise.
    tokenizer
        A tokenizer.json to keep for decoding.
    blocks_per_shard
        How many blocks share a file.

    Raises
    ------
    InvalidInput
        A file that cannot be read or is not in this layout, naming file, block and position; runs along different draft
        tokens; ids beyond the vocabulary.
    CaptureError
        A folder that holds something else.
    """
    folder = new_folder(out)
    of_target, of_draft = _runs(Path(target), "target", extra=1), _runs(Path(draft), "draft", extra=0)
    if len(of_target) != len(of_draft):
        msg = f"{target} has {len(of_target)} blocks and {draft} has {len(of_draft)}; a block needs both"
        raise InvalidInput(msg)
    length = len(of_draft[0].tokens)
    for number, (ours, theirs) in enumerate(zip(of_target, of_draft, strict=True)):
        if ours.tokens != theirs.tokens:
            msg = f"block {number}: the target ran along {ours.tokens}, the draft along {theirs.tokens}"
            raise InvalidInput(msg)
        if len(theirs.tokens) != length:
            msg = (
                f"block {number} has {len(theirs.tokens)} draft tokens, block 0 has {length}; give all the same number"
            )
            raise InvalidInput(msg)
    k = min(len(row.top) for run in (*of_target, *of_draft) for row in run.rows)
    header = TopKHeader(
        draft_length=length,
        target_vocabulary=vocabulary,
        draft_vocabulary=vocabulary,
        dtype="float64",
        blocks_per_shard=blocks_per_shard,
        tokenizer=None if tokenizer is None else Path(tokenizer).read_bytes(),
        source={
            "settings": {} if temperature is None else {"temperature": float(temperature)},
            "imported": {name: sha256_of_file(Path(file)) for name, file in (("target", target), ("draft", draft))},
        },
        top_k=k,
        temperature=logprobs_at,
    )
    with TopKWriter(folder, header) as writer:
        for block in _blocks(of_target, of_draft, header):
            writer.append(block)
        writer.finish()
    return folder


def _blocks(of_target: Sequence[_Run], of_draft: Sequence[_Run], header: TopKHeader) -> Iterator[TopKBlock]:
    scale = header.temperature
    for ours, theirs in zip(of_target, of_draft, strict=True):
        drafted = [[p.drafted, q.drafted] for p, q in zip(ours.rows, theirs.rows, strict=False)]
        yield TopKBlock(
            target=_top_rows(ours.rows, header),
            draft=_top_rows(theirs.rows, header),
            drafted_logits=scale * torch.tensor(drafted, dtype=torch.float64),
            temperature=header.temperature,
            vocabulary=header.draft_vocabulary,
            tokens=torch.tensor(theirs.tokens),
            context=torch.tensor(theirs.record.get("context", []), dtype=torch.int64),
            prompt=int(theirs.record.get("prompt", 0)),
            position=int(theirs.record.get("position", 0)),
        )


def _top_rows(rows: Sequence[_Row], header: TopKHeader) -> TopRows:
    ids = torch.tensor([[token for token, _ in row.top[: header.top_k]] for row in rows], dtype=torch.int32)
    values = torch.tensor([[value for _, value in row.top[: header.top_k]] for row in rows], dtype=torch.float64)
    return TopRows(
        logits=header.temperature * values,
        ids=ids.masked_fill(values == -torch.inf, -1),
        log_sum_exp=torch.zeros(len(rows), dtype=torch.float64),
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def _runs(path: Path, model: str, *, extra: int) -> list[_Run]:
    runs = [_run(record, f"{path}, block {number}", extra) for number, record in enumerate(_records(path))]
    if not runs:
        msg = f"{path} holds no block of the {model}"
        raise InvalidInput(msg)
    return runs


def _records(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read: {error}"
        raise InvalidInput(msg) from error
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        msg = f"{path} is neither a JSON array nor JSONL: {error}"
        raise InvalidInput(msg) from error


def _run(record: Any, name: str, extra: int) -> _Run:
    if not isinstance(record, dict) or "token_ids" not in record or "logprobs" not in record:
        msg = f"{name} is no object with token_ids and logprobs"
        raise InvalidInput(msg)
    tokens, rows = record["token_ids"], record["logprobs"]
    for key, values in (("token_ids", tokens), ("context", record.get("context", []))):
        if not isinstance(values, list) or not all(isinstance(token, int) and token >= 0 for token in values):
            msg = f"{name}: {key} is {_shown(values)}; expected a list of token ids"
            raise InvalidInput(msg)
    if not tokens:
        msg = f"{name} has no draft token"
        raise InvalidInput(msg)
    if not isinstance(rows, list) or len(rows) != len(tokens) + extra:
        found = len(rows) if isinstance(rows, list) else _shown(rows)
        what = "one for each draft token" + (" and one after the last" if extra else "")
        msg = f"{name}: logprobs has {found} positions for {len(tokens)} draft tokens; expected {what}"
        raise InvalidInput(msg)
    drafted = [*tokens, *([None] * extra)]
    read = [_row(row, token, f"{name}, position {n}") for n, (row, token) in enumerate(zip(rows, drafted, strict=True))]
    return _Run(tokens, read, record)


def _row(row: Any, drafted: int | None, name: str) -> _Row:
    if not isinstance(row, dict) or not row:
        msg = f"{name}: {_shown(row)}; expected an object from token ids to log-probabilities"
        raise InvalidInput(msg)
    entries = sorted((_entry(key, value, name) for key, value in row.items()), key=lambda entry: (-entry[1], entry[0]))
    total = math.fsum(math.exp(value) for _, value, _ in entries)
    if total > 1 + _ROUNDING:
        msg = f"{name}: the probabilities sum to {total:g}; log-probabilities of one law are expected"
        raise InvalidInput(msg)
    own = next((value for token, value, _ in entries if token == drafted), None)
    if drafted is not None and own is None:
        msg = f"{name} does not hold the draft token {drafted}"
        raise InvalidInput(msg)
    top = [(token, value) for token, value, _ in _most_probable(entries, drafted)]
    return _Row(tuple(top), 0.0 if own is None else own)


def _most_probable(
    entries: Sequence[tuple[int, float, int | None]], drafted: int | None
) -> Sequence[tuple[int, float, int | None]]:
    """The entries below which every other token of the vocabulary ranks: all but a draft token from farther down.

    Ranks say so where they are given. Else a draft token that comes last counts as from farther down.
    """
    if all(rank is not None for *_, rank in entries):
        kept = [entry for place, entry in enumerate(entries, start=1) if entry[2] <= place]  # type: ignore[operator]
        return kept or entries[:1]
    return entries[:-1] if len(entries) > 1 and entries[-1][0] == drafted else entries


def _entry(key: str, value: Any, name: str) -> tuple[int, float, int | None]:
    rank = value.get("rank") if isinstance(value, dict) else None
    number = value.get("logprob") if isinstance(value, dict) else value
    if not key.isdecimal():
        msg = f"{name}: {key!r} is no token id"
        raise InvalidInput(msg)
    if isinstance(number, bool) or not isinstance(number, int | float) or math.isnan(number) or number > _ROUNDING:
        msg = f"{name}, token {key}: the log-probability is {_shown(number)}; expected a number of at most 0"
        raise InvalidInput(msg)
    if rank is not None and (not isinstance(rank, int) or rank < 1):
        msg = f"{name}, token {key}: the rank is {_shown(rank)}; expected an integer of at least 1"
        raise InvalidInput(msg)
    return int(key), float(number), rank


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
