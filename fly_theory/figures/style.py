"""How every figure of the project looks: sizes in inches, one colour per quantity, fonts, and reproducible files.

Figures are made with `matplotlib.figure.Figure`, never through pyplot, so drawing changes nothing global.
"""

import contextlib
import functools
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.rcsetup import cycler

from fly_theory.errors import InvalidInput
from fly_theory.files import write_bytes

__all__ = [
    "COLOURS",
    "FORMATS",
    "LABEL_FONTS",
    "ONE_COLUMN",
    "SERIES",
    "TWO_COLUMNS",
    "check_path",
    "drawable",
    "encode",
    "new_figure",
    "save",
    "style",
]

# Widths of one and of two columns of a two-column paper.
ONE_COLUMN = 3.35
TWO_COLUMNS = 6.95

# Distinguishable with every form of colour blindness (held to a minimum distance in the tests) and in grey.
COLOURS = {
    "target": "#4a7fb0",
    "draft": "#f2a9c0",
    "overlap": "#e58e1c",
    "output": "#4b1d7a",
    "ceiling": "#6f6f6f",
}

# For series that are none of the above, in this order (Okabe & Ito, without its yellow, which is faint on paper).
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

FORMATS = ("png", "svg", "pdf")

# STIX and DejaVu come with matplotlib, so text has the same shape everywhere; in an SVG text stays text, and falls back
# to Times. Labels that come from data, such as tokens, need the wider coverage of both.
LABEL_FONTS = ("STIXGeneral", "DejaVu Sans")
_PARAMETERS: Any = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral", "Times New Roman", "Times"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=SERIES),
    "axes.unicode_minus": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.0,
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 300.0,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fly-theory",
}

# Where each format keeps a description; nothing that differs between two runs of the same command is written.
_DESCRIPTION = {"png": "Description", "svg": "Description", "pdf": "Subject"}
_NO_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """The project's style inside the block; whatever was set before comes back afterwards."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_PARAMETERS)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches with a constrained layout; create it and draw inside `style()`."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03))


def drawable(text: str) -> bool:
    """Whether `LABEL_FONTS` have every character of the text."""
    return all(ord(character) in _code_points() for character in text)


@functools.cache
def _code_points() -> frozenset[int]:
    return frozenset().union(*(get_font(findfont(family)).get_charmap() for family in LABEL_FONTS))


def encode(figure: Figure, file_format: str, *, description: str = "") -> bytes:
    """A figure as the bytes of a PNG, SVG or PDF file; the same figure and description give the same bytes."""
    buffer = io.BytesIO()
    metadata = {**_NO_METADATA[file_format], _DESCRIPTION[file_format]: description or None}
    with style():
        figure.savefig(buffer, format=file_format, metadata=metadata)
    return buffer.getvalue()


def save(figure: Figure, path: str | Path, *, description: str = "") -> Path:
    """Write a figure to a `.png`, `.svg` or `.pdf` file, which appears whole or not at all.

    Raises
    ------
    InvalidInput
        For another suffix, a folder that is not there, or a file that cannot be written.
    """
    path = check_path(path)
    try:
        write_bytes(path, encode(figure, path.suffix[1:].lower(), description=description))
    except OSError as error:
        msg = f"cannot write the figure to {str(path)!r}: {error.strerror}"
        raise InvalidInput(msg) from error
    return path


def check_path(path: str | Path) -> Path:
    """The path of a figure, refused before any work is done if `save` could not write it there."""
    path = Path(path)
    if path.suffix[1:].lower() not in FORMATS:
        msg = f"cannot write a figure to {str(path)!r}: the suffix must be one of {', '.join(f'.{f}' for f in FORMATS)}"
        raise InvalidInput(msg)
    if not path.parent.is_dir():
        msg = f"cannot write a figure to {str(path)!r}: there is no folder {str(path.parent)!r}"
        raise InvalidInput(msg)
    return path
