"""Printed summaries recomputed from printed detail, in exact decimals."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from fly_theory import published
from fly_theory.reproduce.item import CENT, Compared, Finding, printed

__all__ = ["BENCHMARKS", "MEASURES", "cells", "gaps", "mean", "means_of_settings", "over_datasets", "summary"]

BENCHMARKS = ("MATH", "MBPP+", "INCLUDE", "BFCL")
MEASURES = {"block_efficiency": "BE", "decoding_speed": "DS", "accuracy_percent": "accuracy"}

# A printed figure is off by half a cent at most, and so is a mean of printed figures.
_ROUNDED_MEAN = CENT
_ROUNDED_GAP = CENT * 3 / 2


def mean(values: Iterable[float | Fraction]) -> Fraction:
    """The mean of printed figures, exactly."""
    exact = [value if isinstance(value, Fraction) else printed(value) for value in values]
    return sum(exact, start=Fraction(0)) / len(exact)


def summary(values: list[Compared], *, what: str) -> Finding:
    """The finding about summaries of which each value is one cell."""
    off = sum(value.agrees is False for value in values)
    if not off:
        return Finding("reproduced", f"All {len(values)} cells are {what}, up to rounding.", values)
    others = "1 is not" if off == 1 else f"{off} are not"
    why = f"{len(values) - off} of {len(values)} cells are {what}, up to rounding; {others}."
    return Finding("not reproducible here", why, values)


def means_of_settings(summaries: str, details: str, names: Mapping[str, str]) -> Iterator[Compared]:
    """Each cell of a table of means beside the mean over all settings of the method called `names[method]`."""
    rows = published.table(details)
    for row in published.table(summaries):
        for measure, label in MEASURES.items():
            settings = [
                detail[measure]
                for detail in rows
                if (detail["method"], detail["benchmark"]) == (names[row["method"]], row["benchmark"])
            ]
            what = f"{row['method']}, {row['benchmark']}, {label}"
            yield Compared(what, printed(row[measure]), mean(settings), _ROUNDED_MEAN)


def over_datasets(table: str) -> Iterator[Compared]:
    """Each Mean of FLy Table 2 or 3 beside the mean over its datasets."""
    rows = published.table(table)
    for row in rows:
        if row["dataset"] == "Mean":
            setting = ("temperature", "target", "method")
            same = [r for r in rows if all(r[key] == row[key] for key in setting) and r["dataset"] != "Mean"]
            for measure in ("speedup", "tau"):
                what = f"T={row['temperature']:g}, {row['target']}, {row['method']}, {measure}"
                yield Compared(what, printed(row[measure]), mean(r[measure] for r in same), _ROUNDED_MEAN)


def gaps(cell: Mapping[tuple[str, str, str, str], Fraction]) -> Iterator[Compared]:
    """Each cell of the lossy paper's Table 7 beside the difference of the two methods in `cell`.

    `cell` holds means by (framework, method, benchmark, measure); averages are over the four benchmarks.
    """
    for row in published.table("lossy_table7_matched_gap"):
        loose, matched = (name.replace("eta", "η") for name in row["pair"].split(" - "))
        over = BENCHMARKS if row["benchmark"] == "Avg" else (row["benchmark"],)
        for column, measure in (
            ("delta_block_efficiency", "block_efficiency"),
            ("delta_accuracy_pp", "accuracy_percent"),
        ):
            where = [(row["framework"], benchmark, measure) for benchmark in over]
            ours = mean(cell[f, loose, b, m] - cell[f, matched, b, m] for f, b, m in where)
            what = f"{loose} - {matched}, {row['framework']}, {row['benchmark']}, Δ{MEASURES[measure]}"
            yield Compared(what, printed(row[column]), ours, _ROUNDED_GAP)


def cells(table: str, framework: str) -> dict[tuple[str, str, str, str], Any]:
    """The printed means of Table 2 or 3, as `gaps` reads them."""
    return {
        (framework, row["method"], row["benchmark"], measure): printed(row[measure])
        for row in published.table(table)
        for measure in MEASURES
    }
