"""Next-token laws by context, in exact fractions, and the law of the text they generate.

A text is the tuple of tokens emitted so far; a law maps a text to a row, the law (V,) of the token after it.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fly_theory.conformance.numbers import as_rational, is_rounded
from fly_theory.errors import DistributionError, ShapeError
from fly_theory.pairs import Pair

__all__ = ["ROUNDING", "Law", "Row", "Table", "Text", "constant", "pair_laws", "read_row", "read_table", "text_law"]

Text = tuple[int, ...]
Row = tuple[Fraction, ...]
Law = Callable[[Text], Row]

# How far the sum of a row may be from one and still be rounding, by the dtype it came in.
_SUM_TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 1e-4}
_FINEST_TOLERANCE = 1e-9
# How far in TV the rounding of numbers may move a law: what float32 may do to it. Half precision is taken at its word.
ROUNDING = Fraction(1, 10**6)
_TAKEN_AT_ITS_WORD = ("float16", "bfloat16")
_MAX_DEPTH = 2


@dataclass(frozen=True, eq=False)
class Table:
    """A law whose rows depend on the last `depth` tokens; before there are that many, token 0 stands for them.

    rows : context of `depth` tokens -> row (V,)
    dtype : of the array the table was read from, None for Python numbers
    rounding : how far in TV the rounding of its numbers may move a law; 0 for rationals and short decimals
    """

    rows: Mapping[Text, Row]
    depth: int
    vocabulary: int
    dtype: str | None
    rounding: Fraction

    def __call__(self, text: Text) -> Row:
        """The law (V,) of the token after `text`."""
        return self.rows[((0,) * self.depth + text)[len(text) :]]


def read_table(values: Any, name: str, *, normalised: bool = True) -> Table:
    """A table from a row (V,), or rows (C, V) or (C, C, V) by the last one or two tokens, given as nested sequences.

    Rows whose sum is one up to rounding are divided by it. Others are refused, unless `normalised` is False; then rows
    in half precision, too, are left as they are.

    Raises
    ------
    ShapeError
        For more than two context axes, or rows of different lengths.
    DistributionError
        For entries that are no probabilities or rows that do not sum to one, naming the context.
    """
    dtype = str(values.dtype).split(".")[-1] if hasattr(values, "dtype") else None
    nested = values.tolist() if hasattr(values, "tolist") else values
    found = dict(_rows(nested, ()))
    depths, widths = {len(context) for context in found}, {len(row) for row in found.values()}
    if len(depths) != 1 or len(widths) != 1 or max(depths) > _MAX_DEPTH or 0 in widths:
        msg = f"{name} is ragged or has too many axes; expected (V,), (C, V) or (C, C, V): rows by the last tokens"
        raise ShapeError(msg)
    rounded = dtype not in _TAKEN_AT_ITS_WORD and any(is_rounded(value) for row in found.values() for value in row)
    rows = {context: read_row(row, _at(name, context), dtype, normalised) for context, row in found.items()}
    return Table(rows, depths.pop(), widths.pop(), dtype, ROUNDING if rounded else Fraction(0))


def read_row(values: Sequence[Any], name: str, dtype: str | None = None, normalised: bool = True) -> Row:
    """One row (V,) of finite numbers >= 0; divided by its sum where that is one up to rounding.

    Raises
    ------
    DistributionError
        As `read_table`.
    """
    try:
        row = tuple(as_rational(value) for value in values)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{name} is {list(values)!r}; allowed are finite numbers >= 0"
        raise DistributionError(msg) from error
    if any(value < 0 for value in row):
        msg = f"{name} is ({', '.join(map(str, row))}); allowed are finite numbers >= 0"
        raise DistributionError(msg)
    total = sum(row, Fraction(0))
    as_it_is = not normalised and dtype in _TAKEN_AT_ITS_WORD
    if abs(total - 1) <= _SUM_TOLERANCE.get(dtype or "", _FINEST_TOLERANCE) and not as_it_is:
        return tuple(value / total for value in row)
    if normalised:
        msg = f"{name} sums to {float(total):.10g}; a distribution sums to 1"
        raise DistributionError(msg)
    return row


def constant(row: Row) -> Law:
    """The law that is this row after every text."""
    return lambda text: row


def pair_laws(pair: Pair) -> tuple[Law, Law]:
    """Target and draft law of an exact toy pair that starts in one context."""
    start = next(context for context, mass in enumerate(pair.initial.tolist()) if mass)
    successor, tables = pair.successor.tolist(), (pair.target.tolist(), pair.draft.tolist())

    def follow(table: list[list[Fraction]]) -> Law:
        @functools.cache
        def law(text: Text) -> Row:
            context = start
            for token in text:
                context = successor[context][token]
            return tuple(Fraction(value) for value in table[context])

        return law

    return follow(tables[0]), follow(tables[1])


def text_law(law: Law, positions: int, eos: int | None = None, text: Text = ()) -> dict[Text, Fraction]:
    """Law of `text` continued until it has `positions` tokens or holds `eos`; texts without mass are left out."""
    if len(text) >= positions or (eos is not None and eos in text):
        return {text: Fraction(1)}
    found: dict[Text, Fraction] = {}
    for token, probability in enumerate(law(text)):
        if probability:
            for whole, mass in text_law(law, positions, eos, (*text, token)).items():
                found[whole] = probability * mass
    return found


def _rows(nested: Any, context: Text) -> Iterator[tuple[Text, list[Any]]]:
    if not isinstance(nested, list | tuple) or len(context) > _MAX_DEPTH:
        yield context, []
    elif nested and not isinstance(nested[0], list | tuple) and not hasattr(nested[0], "tolist"):
        yield context, list(nested)
    else:
        for token, rows in enumerate(nested):
            yield from _rows(rows.tolist() if hasattr(rows, "tolist") else rows, (*context, token))


def _at(name: str, context: Text) -> str:
    return f"{name} after {context}" if context else name
