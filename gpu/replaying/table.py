"""The result of a replay for the terminal."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import table as new_table
from gpu.replaying.estimates import Estimate
from gpu.replaying.result import Figures, Replay
from gpu.replaying.wording import half_width, number, percent, ratio, setting

__all__ = ["summary"]

_Writer = Callable[[Estimate | None], str]

# To this width specs may be folded before a column gives way.
_FOLDED = 26

# Heading, figure and how it is written; the last number is the order in which columns give way on a narrow terminal.
_COLUMNS: tuple[tuple[str, str, _Writer, int], ...] = (
    ("tokens\nper call", "tokens_per_call", lambda e: number(e, digits=2), 12),
    ("\n±", "tokens_per_call", lambda e: half_width(e, digits=2), 10),
    ("\naccepted", "acceptance", percent, 8),
    ("\nTV", "tv", number, 11),
    ("\n±", "tv", half_width, 7),
    ("KL\n(p‖out)", "kl", number, 6),
    ("KL\n(out‖p)", "reverse_kl", number, 3),
    ("\nJS", "js", number, 1),
    ("max\nout/p", "max_ratio", ratio, 5),
    ("\nwaste", "waste", number, 4),
    ("argmax\nflips", "argmax_flip", percent, 9),
    ("outside\nsupport", "outside_support", percent, 2),
)


def summary(replay: Replay, *, width: int | None = None) -> list[str | Table]:
    """What was replayed, a row a rule, and the notes; columns that do not fit into `width` characters are left out.

    A rule with an allowed set has two more rows: its output against p_A, and lossless verification of p_A.
    """
    columns, console = list(_COLUMNS), Console(width=1000)
    foldable = max(0, max(len(result.spec) for result in replay) - _FOLDED)
    while width is not None and console.measure(_table(replay, columns)).maximum - foldable > width:
        columns.remove(min(columns, key=lambda column: column[-1]))
    notes = [f"• {note}" for note in replay.notes]
    if len(columns) < len(_COLUMNS):
        notes.append("• This terminal is too narrow for all figures; results.json and --json have them.")
    return [f"{setting(replay)}\n", _table(replay, columns), "\n" + "\n".join(notes)]


def _table(replay: Replay, columns: list[tuple[str, str, _Writer, int]]) -> Table:
    headings = ["\nrule", *(heading for heading, *_ in columns)]
    rows: list[list[str | Text]] = []
    for result in replay:
        rows.append([Text(result.spec, style="bold"), *_cells(result.figures, columns)])
        if result.matched is not None and result.baseline is not None:
            rows.append(_dim(["  against p_A", *_cells(result.matched, columns)]))
            rows.append(_dim(["  lossless for p_A", *_cells(result.baseline, columns)]))
    return new_table(headings, rows, numeric=headings[1:])


def _cells(figures: Figures, columns: list[tuple[str, str, _Writer, int]]) -> list[str]:
    return [write(figures[name]) if name in figures else "" for _, name, write, _ in columns]


def _dim(cells: list[str]) -> list[str | Text]:
    return [Text(cell, style="dim") for cell in cells]
