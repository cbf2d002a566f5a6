"""The result of a replay for the terminal."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import table as new_table
from gpu.replaying.estimates import Estimate, Figures
from gpu.replaying.mode_table import mode_table
from gpu.replaying.result import Replay
from gpu.replaying.wording import certified, half_width, interval, number, percent, ratio, setting

__all__ = ["summary"]

_Writer = Callable[[Estimate | None], str]
_Columns = Sequence[tuple[str, str, _Writer, int]]

# To this width specs may be folded before a column gives way.
_FOLDED = 26

# Heading, figure and how it is written; the last number is the order in which columns give way on a narrow terminal.
_COLUMNS: _Columns = (
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


_BLOCK_COLUMNS: _Columns = (
    ("tokens\nper call", "tokens_per_call", lambda e: number(e, digits=2), 12),
    ("\n95 %", "tokens_per_call", lambda e: interval(e, digits=2), 11),
    ("more than\nstrict", "gain_over_strict", lambda e: number(e, digits=2), 9),
    ("\n95 %", "gain_over_strict", lambda e: interval(e, digits=2), 5),
    ("more than\nlossless", "gain_over_lossless", lambda e: number(e, digits=2), 3),
    ("\n95 %", "gain_over_lossless", lambda e: interval(e, digits=2), 2),
    ("gate\nopen", "gate_open", percent, 10),
    ("\nforgiven", "forgiven", lambda e: number(e, digits=2), 4),
    ("rejected:\ngate", "lost_to_gate", percent, 8),
    ("\nwindow", "lost_to_window", percent, 7),
    ("\nboundary", "lost_to_boundary", percent, 6),
)


def summary(replay: Replay, *, width: int | None = None) -> list[str | Table]:
    """What was replayed, a row a rule, and the notes; columns that do not fit into `width` characters are left out.

    A rule with an allowed set has two more rows: its output against p_A, and lossless verification of p_A. Where tokens
    are unseen, a row below each rule says what its figures surely lie between. Block rules have a table of their own.
    """
    parts: list[str | Table] = [f"{setting(replay)}\n"]
    narrow = False
    for columns, tabulate, specs in (
        (_COLUMNS, _table, [result.spec for result in replay]),
        (_block_columns(replay), _block_table, [result.label for result in replay.block_rules]),
    ):
        if specs:
            fitting = _fitting(replay, columns, tabulate, longest=max(map(len, specs)), width=width)
            narrow |= len(fitting) < len(columns)
            parts += ["", tabulate(replay, fitting)] if len(parts) > 1 else [tabulate(replay, fitting)]
    notes = [f"• {note}" for note in replay.notes]
    if narrow:
        notes.append("• This terminal is too narrow for all figures; results.json and --json have them.")
    return [*parts, *mode_table(replay), "\n" + "\n".join(notes)]


def _fitting(
    replay: Replay, columns: _Columns, tabulate: Callable[[Replay, _Columns], Table], *, longest: int, width: int | None
) -> _Columns:
    kept, console, foldable = list(columns), Console(width=1000), max(0, longest - _FOLDED)
    while width is not None and console.measure(tabulate(replay, kept)).maximum - foldable > width:
        kept.remove(min(kept, key=lambda column: column[-1]))
    return kept


def _block_columns(replay: Replay) -> _Columns:
    """The columns in which some block rule has a figure."""
    return [column for column in _BLOCK_COLUMNS if any(result[column[1]] is not None for result in replay.block_rules)]


def _block_table(replay: Replay, columns: _Columns) -> Table:
    headings = ["\nblock rule", *(heading for heading, *_ in columns)]
    rows = [[Text(result.label, style="bold"), *_cells(result.figures, columns)] for result in replay.block_rules]
    return new_table(headings, rows, numeric=headings[1:])


def _table(replay: Replay, columns: _Columns) -> Table:
    headings = ["\nrule", *(heading for heading, *_ in columns)]
    rows: list[list[str | Text]] = []
    for result in replay:
        rows.append([Text(result.spec, style="bold"), *_cells(result.figures, columns)])
        if any(figure is not None and figure.certified for figure in result.figures.values()):
            rows.append(_dim(["  certified", *_certified(result.figures, columns)]))
        if result.matched is not None and result.baseline is not None:
            rows.append(_dim(["  against p_A", *_cells(result.matched, columns)]))
            rows.append(_dim(["  lossless for p_A", *_cells(result.baseline, columns)]))
    return new_table(headings, rows, numeric=headings[1:])


def _cells(figures: Figures, columns: _Columns) -> list[str]:
    return [write(figures[name]) if name in figures else "" for _, name, write, _ in columns]


def _certified(figures: Figures, columns: _Columns) -> list[str]:
    return [
        "" if "±" in heading else certified(figures[name], percent=write is percent, digits=2 if "call" in name else 4)
        for heading, name, write, _ in columns
    ]


def _dim(cells: list[str]) -> list[str | Text]:
    return [Text(cell, style="dim") for cell in cells]
