"""Where a verb takes its pair of a target p and a draft q from: an example, two lists, or a row of a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import typer

from fly_theory.arrays import Array, array_namespace
from fly_theory.distributions import as_distribution, as_pair, softmax
from fly_theory.errors import InvalidInput, MissingExtra
from fly_theory.example_pairs import example_pair

__all__ = ["DraftList", "ExampleName", "Pair", "TargetList", "pair_of", "pair_of_trace", "readable"]

TRACE_READERS = "fly_theory.trace_readers"

_DEFAULT_EXAMPLE = "smooth"
_LONGEST_NAME = 12

ExampleName = Annotated[
    str | None, typer.Option("--pair", help=f"Example pair; {_DEFAULT_EXAMPLE} when nothing else is given.")
]
TargetList = Annotated[str | None, typer.Option("--p", help="Target: numbers or quotients, as in 1/2,0.3,0.2.")]
DraftList = Annotated[str | None, typer.Option("--q", help="Draft, over the same tokens.")]


@dataclass(frozen=True)
class Pair:
    """A target p (V,), a draft q (V,), what they are called, and what their tokens are called."""

    name: str
    p: Array
    q: Array
    token_name: Callable[[int], str] = str


def pair_of(example: str | None, p: str | None, q: str | None) -> Pair:
    """The pair that `--pair`, or `--p` and `--q`, name.

    Raises
    ------
    InvalidInput
        For both or half of them, a list that cannot be read, an unknown example, or lists that are no distributions
        over one vocabulary.
    """
    if p is None and q is None:
        found = example_pair(example or _DEFAULT_EXAMPLE)
        return Pair(f"example {found.name}", *found.arrays())
    if example is not None:
        msg = "--pair cannot be combined with --p and --q; give the one or the other"
        raise InvalidInput(msg)
    if p is None or q is None:
        msg = f"{'--q' if q is None else '--p'} is missing; --p and --q are given together"
        raise InvalidInput(msg)
    return Pair(f"p = {p}, q = {q}", *as_pair(_numbers(p, "--p"), _numbers(q, "--q")))


def _numbers(text: str, name: str) -> Array:
    values = []
    for index, item in enumerate(text.split(",")):
        try:
            values.append(float(Fraction(item)) if "/" in item else float(item))
        except (ValueError, ZeroDivisionError) as error:
            msg = f"{name} has {item.strip()!r} at index {index}; write decimals or quotients, as in 1/2,0.3,0.2"
            raise InvalidInput(msg) from error
    return as_distribution(values, name)


# -- rows of a trace ---------------------------------------------------------------------------------------------------


class _Block(Protocol):
    target_logits: Array
    draft_logits: Array


class Trace(Protocol):
    """What the entry points of the group `fly_theory.trace_readers` return, given the folder of a trace."""

    manifest: dict[str, Any]
    sha256: str

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> _Block:
        """Block `index`: target_logits (K+1, V) and draft_logits (K, V)."""

    def decode(self, ids: list[int]) -> str:
        """The text of token ids."""


def pair_of_trace(folder: Path, block: int, position: int, temperature: float) -> Pair:
    """Target and draft at one position (0..K-1) of one block of a trace, after a softmax at a temperature.

    Raises
    ------
    InvalidInput
        For a block or position that the trace does not have, or a temperature below 0; also what the reader raises.
    """
    trace = _open(folder)
    if "nodes" in trace.manifest:
        msg = f"--trace {folder} holds draft trees; give a trace of blocks"
        raise InvalidInput(msg)
    if not 0 <= block < len(trace):
        msg = f"--block {block}: {folder} has blocks 0..{len(trace) - 1}"
        raise InvalidInput(msg)
    rows = trace[block]
    drafts = rows.draft_logits.shape[0]
    if not 0 <= position < drafts:
        msg = f"--position {position}: the blocks of {folder} have positions 0..{drafts - 1}"
        raise InvalidInput(msg)
    p, q = (_law(logits[position], temperature) for logits in (rows.target_logits, rows.draft_logits))
    name = f"block {block}, position {position} of {folder} (sha256 {trace.sha256}) at temperature {temperature:g}"
    if trace.manifest["tokenizer"] is None:
        return Pair(name, p, q)
    return Pair(name, p, q, lambda token: readable(trace.decode([token]), token))


def _law(logits: Array, temperature: float) -> Array:
    """The distribution of logits (V,) of any dtype, as a numpy array in float64."""
    xp = array_namespace(logits)
    return np.asarray(softmax(xp.astype(logits, xp.float64), temperature=temperature))


def _open(folder: Path) -> Trace:
    readers = list(entry_points(group=TRACE_READERS))
    if not readers:
        msg = f"no installed package reads traces (entry-point group {TRACE_READERS})"
        raise MissingExtra(msg)
    found: Trace = readers[0].load()(folder)
    return found


def readable(text: str, token: int) -> str:
    """A token's text with its spaces and control characters visible, cut to a width that fits an axis."""
    if "\ufffd" in text or not text:
        return f"#{token}"
    visible = repr(text.replace(" ", "␣"))[1:-1]
    return visible if len(visible) <= _LONGEST_NAME else f"{visible[: _LONGEST_NAME - 1]}…"
