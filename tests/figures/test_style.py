"""The style of figures: colours that everyone can tell apart, files that are the same every time, nothing global."""

import itertools
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from fly_theory.errors import InvalidInput
from fly_theory.figures import COLOURS, ONE_COLUMN, TWO_COLUMNS, encode, new_figure, save, style
from fly_theory.figures.style import FORMATS, LABEL_FONTS, drawable

# Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# A difference of 2.3 in CIELAB is just noticeable; neighbouring areas of a figure need several times that.
CLEAR_DIFFERENCE = 20


def lab(colour: str, sight: str) -> np.ndarray:
    """CIELAB coordinates (D65) of a colour as somebody with this sight sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(SIGHT[sight] @ linear, 0, 1)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ seen
    ratio = xyz / [0.9505, 1, 1.089]
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), ratio * 841 / 108 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def some_figure():
    with style():
        figure = new_figure(ONE_COLUMN, 2)
        figure.subplots().plot([1, 3, 2], label="some text")
    return figure


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_differ_for_every_sight(sight):
    for a, b in itertools.combinations([*COLOURS.values(), "white"], 2):
        assert np.linalg.norm(lab(a, sight) - lab(b, sight)) > CLEAR_DIFFERENCE, (a, b)


def test_bars_differ_in_grey():
    lightness = sorted(lab(COLOURS[name], "full")[0] for name in ("target", "overlap", "draft"))
    assert min(np.diff(lightness)) > 8


def test_style_leaves_nothing_behind():
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 31.0}):
        with style():
            assert mpl.rcParams["pdf.fonttype"] == 42
        assert mpl.rcParams["font.size"] == 31.0
    assert dict(mpl.rcParams) == before


def test_columns_fit_a_paper():
    assert 2 * ONE_COLUMN < TWO_COLUMNS < 7.2


@pytest.mark.parametrize("file_format", FORMATS)
def test_same_figure_same_bytes(file_format):
    first, second = (encode(some_figure(), file_format, description="what it shows") for _ in range(2))
    assert first == second
    assert len(first) > 2000


def test_global_settings_do_not_reach_a_figure():
    plain = encode(some_figure(), "svg")
    with mpl.rc_context({"font.size": 31.0, "svg.fonttype": "path", "savefig.dpi": 10}):
        assert encode(some_figure(), "svg") == plain


def test_text_stays_text():
    assert b">some text<" in encode(_with_title(), "svg")
    pdf = encode(_with_title(), "pdf")
    assert b"/Type3" not in pdf
    assert b"/CIDFontType2" in pdf  # Type 42: a TrueType font, embedded


def test_description_is_in_the_file():
    assert b"tEXtDescription\0what it shows" in encode(some_figure(), "png", description="what it shows")
    assert b"<dc:description>what it shows</dc:description>" in encode(
        some_figure(), "svg", description="what it shows"
    )
    assert b"/Subject (what it shows)" in encode(some_figure(), "pdf", description="what it shows")


def test_no_dates():
    assert b"<dc:date>" not in encode(some_figure(), "svg")
    assert b"CreationDate" not in encode(some_figure(), "pdf")


def test_save_by_suffix(tmp_path):
    for name, start in (("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")):
        assert save(some_figure(), tmp_path / name).read_bytes().startswith(start)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.SVG", "a.pdf"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("figure.jpg", "the suffix must be one of .png, .svg, .pdf"),
        ("figure", "the suffix must be one of .png, .svg, .pdf"),
        ("nowhere/figure.png", "there is no folder 'nowhere'"),
    ],
)
def test_refused_paths(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        save(some_figure(), path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_our_error(tmp_path):
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(InvalidInput, match=r"cannot write the figure to .*taken.png"):
        save(some_figure(), tmp_path / "taken.png")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]


def test_drawable():
    assert drawable("␣the é → $x_1\\n")
    assert not drawable("中")


def _with_title():
    with style():
        figure = new_figure(ONE_COLUMN, 1)
        figure.subplots().set_title("some text", family=LABEL_FONTS)
    return figure
