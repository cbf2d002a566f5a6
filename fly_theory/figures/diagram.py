"""What rules do to one pair of distributions, token by token: target, draft, overlap, output and its ceiling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import Normal, Stroke
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from fly_theory.arrays import Array
from fly_theory.claims import Ceiling, Claim
from fly_theory.distributions import as_pair
from fly_theory.divergence import max_ratio, total_variation
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.figures.style import COLOURS, LABEL_FONTS, ONE_COLUMN, TWO_COLUMNS, drawable, new_figure, style

__all__ = ["OneTokenRule", "ceiling_factor", "diagram"]

OTHER = "other"

_LEGEND = ("target $p$", "draft $q$", "overlap", "output", "ceiling")

# Up to _MOST_NAMED bars are named on the axis; a vocabulary above _MOST_BARS is cut to the tokens that matter most.
_MOST_NAMED = 16
_MOST_BARS = 60
_TOP_OF_LARGE = 30

_BAR_WIDTH = 0.84
_PANEL_HEIGHT = 1.5
_FRAME_HEIGHT = 0.55
_LEAST_PANEL_WIDTH = 2.0
_BETWEEN_PANELS = 0.25
_LEGEND_ENTRY_WIDTH = 0.95
_HEADROOM = 1.06

# Bars have 1 and are drawn in turn. The overlap of many tokens is below both p and q, which must both be seen.
_BEHIND = 0.9

# Longer names stand upright, and need this many inches a character.
_LONGEST_FLAT = 2
_CHARACTER = 0.05


class OneTokenRule(Protocol):
    """What is drawn: a token-level rule, or anything that emits one token from one pair p and q, (V,) each."""

    @property
    def spec(self) -> str: ...

    @property
    def claims(self) -> tuple[Claim, ...]: ...

    def acceptance(self, p: Array, q: Array) -> Array: ...

    def induced(self, p: Array, q: Array) -> Array: ...


@dataclass(frozen=True)
class _Panel:
    """What a panel shows: p, q, overlap, out and ceiling (None where none is claimed) of each bar, and figures."""

    title: str
    p: Array
    q: Array
    overlap: Array
    out: Array
    ceiling: Array | None
    acceptance: float
    tv: float
    max_ratio: float


def diagram(
    p: Array | Sequence[Any],
    q: Array | Sequence[Any],
    rules: Sequence[OneTokenRule],
    *,
    titles: Sequence[str] | None = None,
    token_name: Callable[[int], str] = str,
    top: int | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the output distribution of each rule on one pair, one panel a rule, all on the same axes.

    Parameters
    ----------
    p, q
        Target and draft, (V,) each: lists, numpy arrays, or what numpy can read without a copy.
    rules
        Token-level rules, or tree rules as `fly_theory.trees.AtPosition`.
    titles
        One title a panel; the SPEC of the rule by default.
    token_name
        From a token id to the name on the axis; shown when there are at most 16 bars.
    top
        Show only the `top` tokens to which p or q gives most, and all others as one last bar, whose overlap is the sum
        of theirs. By default every token is shown up to 60 tokens, and 30 of a larger vocabulary.
    width
        Of the figure, in inches; by default one column for one rule, else two columns.

    Returns
    -------
    Figure
        Bars are ordered by falling p, ties by id. The ceiling is dashed, in the panels of rules that claim one.

    Raises
    ------
    InvalidInput
        For no rule, a number of titles that does not fit, `top` or `width` below 1; also what `Rule.induced` raises.
    """
    p, q = as_pair(*(x if isinstance(x, list | tuple) else np.asarray(x) for x in (p, q)))
    if width is None:
        width = ONE_COLUMN if len(rules) == 1 else TWO_COLUMNS
    _check(p, q, rules, titles, top, width)
    if top is None and p.shape[-1] > _MOST_BARS:
        top = _TOP_OF_LARGE
    bars = _bars(p, q, top)
    panels = [
        _panel(p, q, rule, bars, title)
        for rule, title in zip(rules, titles or [rule.spec for rule in rules], strict=True)
    ]
    with style():
        return _draw(panels, [_name(ids, token_name) for ids in bars], width)


def ceiling_factor(rule: OneTokenRule, p: Array, q: Array) -> float | None:
    """The smallest factor c with which the rule claims out <= c p on this pair (V,), or None when it claims none."""
    factors = [
        float(claim.factor(p, q) if callable(claim.factor) else claim.factor)
        for claim in rule.claims
        if isinstance(claim, Ceiling)
    ]
    return min(factors, default=None)


def _check(
    p: Array,
    q: Array,
    rules: Sequence[OneTokenRule],
    titles: Sequence[str] | None,
    top: int | None,
    width: float,
) -> None:
    if p.ndim != 1 or q.ndim != 1:
        msg = f"p has shape {tuple(p.shape)} and q {tuple(q.shape)}; a diagram shows one pair, (V,) each"
        raise ShapeError(msg)
    if not rules:
        msg = "rules is empty; a diagram shows at least one rule"
        raise InvalidInput(msg)
    if titles is not None and len(titles) != len(rules):
        msg = f"titles has {len(titles)} entries for {len(rules)} rules; give one a rule"
        raise InvalidInput(msg)
    if top is not None and top < 1:
        msg = f"top={top} is below 1; at least one token is shown"
        raise InvalidInput(msg)
    if not 1 <= width < math.inf:
        msg = f"width={width} is outside [1, inf) inches"
        raise InvalidInput(msg)


# -- from distributions to bars ----------------------------------------------------------------------------------------


def _bars(p: Array, q: Array, top: int | None) -> list[Array]:
    """The token ids of each bar: one each, but all that are not among the `top` in the last."""
    order = np.argsort(-p, kind="stable")
    if top is None or top >= len(order):
        return list(order[:, None])
    shown = np.zeros(len(order), dtype=bool)
    shown[np.argsort(-np.maximum(p, q), kind="stable")[:top]] = True
    return [*order[shown[order]][:, None], np.flatnonzero(~shown)]


def _panel(p: Array, q: Array, rule: OneTokenRule, bars: list[Array], title: str) -> _Panel:
    out, factor = rule.induced(p, q), ceiling_factor(rule, p, q)
    heights = _heights(p, bars)
    return _Panel(
        title=title,
        p=heights,
        q=_heights(q, bars),
        overlap=_heights(np.minimum(p, q), bars),
        out=_heights(out, bars),
        ceiling=None if factor is None else factor * heights,
        acceptance=float(rule.acceptance(p, q)),
        tv=float(total_variation(p, out)),
        max_ratio=float(max_ratio(p, out)),
    )


def _heights(x: Array, bars: list[Array]) -> Array:
    return np.array([x[ids].sum() for ids in bars])


def _name(ids: Array, token_name: Callable[[int], str]) -> str:
    if len(ids) > 1:
        return OTHER
    token = int(ids[0])
    name = token_name(token)
    return name if drawable(name) else f"#{token}"


# -- from bars to a figure ---------------------------------------------------------------------------------------------


def _draw(panels: Sequence[_Panel], names: Sequence[str], width: float) -> Figure:
    columns = _columns(len(panels), width)
    rows = math.ceil(len(panels) / columns)
    last = range(len(panels) - columns, len(panels))
    ticks = [bar for bar, name in enumerate(names) if len(names) <= _MOST_NAMED or name == OTHER]
    longest = max((len(names[bar]) for bar in ticks), default=0)
    upright = longest > _LONGEST_FLAT and len(ticks) > 1
    labelled_rows = len({panel // columns for panel in last})
    height = rows * _PANEL_HEIGHT + _FRAME_HEIGHT + upright * longest * labelled_rows * _CHARACTER
    figure = new_figure(width, height)
    axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for spare in axes[len(panels) :]:
        spare.remove()
    for index, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
        _draw_panel(ax, panel, width / columns - _BETWEEN_PANELS)
        ax.set_xticks(
            ticks, [names[bar] for bar in ticks], rotation=90 if upright else 0, family=LABEL_FONTS, parse_math=False
        )
        ax.tick_params(labelbottom=index in last)
    tallest = max(float(heights.max()) for panel in panels for heights in (panel.p, panel.q, panel.out))
    axes[0].set_xlim(-0.75, len(names) - 0.25)
    axes[0].set_ylim(0, _HEADROOM * tallest)
    axes[0].yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    figure.supylabel("probability", fontsize=mpl.rcParams["axes.labelsize"])
    figure.supxlabel("tokens, by falling target probability", fontsize=mpl.rcParams["axes.labelsize"])
    _draw_legend(figure)
    return figure


def _columns(panels: int, width: float) -> int:
    fitting = max(1, int(width / _LEAST_PANEL_WIDTH))
    return math.ceil(panels / math.ceil(panels / fitting))


def _draw_panel(ax: Axes, panel: _Panel, room: float) -> None:
    """Draw a panel whose title has `room` inches."""
    ids = np.arange(len(panel.p))
    edges = np.arange(len(panel.p) + 1) - 0.5
    target, draft, overlap, output, ceiling = _LEGEND
    ax.bar(ids, panel.p, _BAR_WIDTH, color=COLOURS["target"], label=target)
    drafted = ax.bar(ids, panel.q, _BAR_WIDTH, color=COLOURS["draft"], label=draft)
    for bar in np.flatnonzero(panel.q > panel.p):
        drafted[bar].set_zorder(_BEHIND)
    ax.bar(ids, panel.overlap, _BAR_WIDTH, color=COLOURS["overlap"], label=overlap)
    ax.stairs(
        panel.out,
        edges,
        baseline=None,
        color=COLOURS["output"],
        linewidth=1.3,
        path_effects=[Stroke(linewidth=2.3, foreground="white"), Normal()],
        label=output,
    )
    if panel.ceiling is not None:
        ax.stairs(
            panel.ceiling,
            edges,
            baseline=None,
            color=COLOURS["ceiling"],
            linewidth=0.9,
            linestyle=(0, (4, 2)),
            label=ceiling,
        )
    ax.set_title(panel.title, loc="left", pad=12, parse_math=False, fontsize=_fitting_size(panel.title, room))
    ax.annotate(
        f"acceptance {panel.acceptance:.2f}   TV {panel.tv:.3f}   max ratio {_ratio(panel.max_ratio)}",
        (0, 1),
        xytext=(0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=mpl.rcParams["xtick.labelsize"],
        color="0.35",
    )


def _fitting_size(title: str, room: float) -> float:
    """The size of titles, or as much of it as the title fits into `room` inches with."""
    size: float = mpl.rcParams["axes.titlesize"]
    if not title.strip():
        return size
    outline = TextPath((0, 0), title.replace("$", r"\$"), size=size, prop=FontProperties(family="serif"))
    return size * min(1, 72 * room / outline.get_extents().width)


def _ratio(ratio: float) -> str:
    if math.isinf(ratio):
        return "∞"
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.3g}"


def _draw_legend(figure: Figure) -> None:
    artists = {name: artist for ax in figure.axes for artist, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    names = [name for name in _LEGEND if name in artists]
    fitting = max(1, int(figure.get_figwidth() / _LEGEND_ENTRY_WIDTH))
    figure.legend([artists[name] for name in names], names, loc="outside upper center", ncols=min(fitting, len(names)))
