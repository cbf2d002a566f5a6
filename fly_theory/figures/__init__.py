"""Figures of the project, all in one style: colours per quantity, sizes of paper columns, reproducible files."""

from fly_theory.figures.diagram import diagram
from fly_theory.figures.style import COLOURS, ONE_COLUMN, SERIES, TWO_COLUMNS, encode, new_figure, save, style

__all__ = ["COLOURS", "ONE_COLUMN", "SERIES", "TWO_COLUMNS", "diagram", "encode", "new_figure", "save", "style"]
