"""The result of a replay on draft trees for the terminal."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import table as new_table
from gpu.replaying.estimates import Estimate, Figures
from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.on_trees.wording import setting
from gpu.replaying.wording import half_width, number, percent, ratio

__all__ = ["summary"]

_Column = tuple[str, str, Callable[[Estimate | None], str], int]

# To this width specs may be folded before a column gives way.
_FOLDED = 26

# Heading, figure and how it is written; the last number is the order in which columns give way on a narrow terminal.
_COLUMNS: tuple[_Column, ...] = (
    ("tokens\nper call", "tokens_per_call", lambda e: number(e, digits=2), 12),
    ("\n±", "tokens_per_call", lambda e: half_width(e, digits=2), 10),
    ("first\nkept", "first_kept", percent, 8),
    ("\nTV", "tv", number, 11),
    ("\n±", "tv", half_width, 7),
    ("KL\n(p‖out)", "kl", number, 4),
    ("KL\n(out‖p)", "reverse_kl", number, 3),
    ("\nJS", "js", number, 1),
    ("max\nout/p", "max_ratio", ratio, 2),
    ("argmax\nflips", "argmax_flip", percent, 6),
    ("point\nmass", "collapsed", percent, 9),
    ("candidates\nallowed", "children_allowed", lambda e: number(e, digits=2), 5),
)


def summary(replay: TreeReplay, *, width: int | None = None) -> list[str | Table]:
    """What was replayed, a row a rule, and the notes; columns that do not fit into `width` characters are left out.

    A rule with an allowed set has two more rows: its output against p_A, and lossless verification of p_A.
    """
    columns, console = list(_COLUMNS), Console(width=1000)
    foldable = max(0, max(len(result.spec) for result in replay) - _FOLDED)
    while width is not None and console.measure(_table(replay, columns)).maximum - foldable > width:
        columns.remove(min(columns, key=lambda column: column[-1]))
    notes = [f"• {note}" for note in replay.notes]
    notes += [f"• {result.spec}: {note}" for result in replay for note in result.notes if result["tv"] is None]
    if len(columns) < len(_COLUMNS):
        notes.append("• This terminal is too narrow for all figures; results.json and --json have them.")
    return [f"{setting(replay)}\n", _table(replay, columns), "\n" + "\n".join(notes)]


def _table(replay: TreeReplay, columns: Sequence[_Column]) -> Table:
    headings = ["\nrule", *(heading for heading, *_ in columns)]
    rows: list[list[str | Text]] = []
    for result in replay:
        rows.append([Text(result.spec, style="bold"), *_cells(result.figures, columns)])
        for name, figures in (("  against p_A", result.matched), ("  lossless for p_A", result.baseline)):
            if figures is not None:
                rows.append([Text(cell, style="dim") for cell in [name, *_cells(figures, columns)]])
    return new_table(headings, rows, numeric=headings[1:])


def _cells(figures: Figures, columns: Sequence[_Column]) -> list[str]:
    return [write(figures[name]) if name in figures else "" for _, name, write, _ in columns]
