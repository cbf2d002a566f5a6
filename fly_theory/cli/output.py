"""What verbs print on stdout: one JSON document, or tables that lose nothing when they go to a file or a pipe."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fly_theory.files import json_text

__all__ = ["display", "number", "print_json", "table"]

_UNBOUNDED = 1_000_000


def print_json(document: Any) -> None:
    """Print a document as JSON; see `fly_theory.files.json_text` for how values are written."""
    sys.stdout.write(json_text(document))


def table(headings: Sequence[str], rows: Iterable[Sequence[str | Text]], *, numeric: Iterable[str] = ()) -> Table:
    """A table of texts; the columns whose headings are in `numeric` are aligned to the right."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    aligned = set(numeric)
    for heading in headings:
        made.add_column(Text(heading), justify="right" if heading in aligned else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def display(*parts: str | Text | Table) -> None:
    """Print texts and tables; in a terminal they fold to its width, elsewhere every row keeps to its line."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    if console.is_terminal:
        for part in parts:
            console.print(part)
        return
    unbounded = console.options.update(width=_UNBOUNDED)
    console.width = max(console.measure(part, options=unbounded).maximum for part in parts)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def number(value: Any) -> str:
    """A figure as tables show it: six significant digits, and none beyond the twelfth decimal, which are rounding."""
    return f"{round(float(value), 12) + 0.0:.6g}"
