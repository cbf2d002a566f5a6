"""Figures printed in papers, as data; README.md beside this file names the source of each table."""

import csv
from importlib.resources import files
from typing import Any

from fly_theory.errors import unknown_name

__all__ = ["table", "tables"]


def tables() -> tuple[str, ...]:
    """Names of the published tables."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".csv") for name in names if name.endswith(".csv")))


def table(name: str) -> list[dict[str, Any]]:
    """The rows of one table, one dict a row by column name; numbers as floats, anything else as printed.

    Raises
    ------
    UnknownName
        With the nearest names and the list of all of them.
    """
    if name not in tables():
        raise unknown_name(kind="published table", name=name, known=tables())
    lines = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return [{column: _value(text) for column, text in row.items()} for row in csv.DictReader(lines)]


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
