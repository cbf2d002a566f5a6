"""The plots of the report: what acceptance costs, how divergence is distributed, and the worst positions."""

import math
import re
from collections import defaultdict
from itertools import cycle, product

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from matplotlib.transforms import Transform

from fly_theory.figures import ONE_COLUMN, SERIES, TWO_COLUMNS, diagram, encode, new_figure, style
from gpu.replaying.cases import Case, TokenNames, pair_at
from gpu.replaying.estimates import Estimate
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.tally import TV_EDGES

__all__ = ["case_diagram", "efficiency_against_divergence", "inline_svg", "tv_distribution"]

_MARKERS = ("o", "s", "D", "^", "v", "P")
_TOKENS_DRAWN = 10
_LARGE_TV = 0.1
# Longer SPECs are folded before their parameters.
_WIDEST_NAME = 30


def efficiency_against_divergence(replay: Replay) -> Figure:
    """Acceptance against TV(p, out), with the TV line, and tokens per call against TV where it is identified.

    Points are numbered by rule; settings of one rule are joined; bars are the intervals.
    """
    identified = all(result["tokens_per_call"] is not None for result in replay)
    with style():
        figure = new_figure(TWO_COLUMNS if identified else ONE_COLUMN * 1.3, 3.4)
        axes = figure.subplots(1, 1 + identified, squeeze=False)[0]
        axes[0].set_ylabel("acceptance probability")
        axes[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        _draw_line(axes[0], replay)
        _draw_points(axes[0], replay, "acceptance")
        if identified:
            axes[1].set_ylabel("tokens per target call")
            _draw_points(axes[1], replay, "tokens_per_call")
        for ax in axes:
            ax.set_xlabel("mean TV(p, out)")
            ax.set_xlim(left=-0.06 * ax.get_xlim()[1])
            ax.yaxis.set_major_locator(MaxNLocator(nbins=6))
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4 if identified else 2)
        figure.draw_without_rendering()
        _number_points(axes[0], replay, "acceptance")
        if identified:
            _number_points(axes[1], replay, "tokens_per_call")
    return figure


def _draw_points(ax: Axes, replay: Replay, name: str) -> None:
    families: dict[str, list[RuleResult]] = defaultdict(list)
    for result in replay:
        families[result.rule.name].append(result)
    looks = cycle(product(_MARKERS, SERIES))
    for (marker, colour), (family, results) in zip(looks, families.items(), strict=False):
        for result in results:
            x, y = result["tv"], result[name]
            ax.errorbar(
                x.mean, y.mean, xerr=_bar(x), yerr=_bar(y), color=colour, elinewidth=0.5, capsize=1.2, alpha=0.6
            )
        numbers = _ranges([replay.rules.index(result) + 1 for result in results])
        points = sorted((result["tv"].mean, result[name].mean) for result in results)
        ax.plot(
            *zip(*points, strict=True),
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=0.7,
            label=f"{numbers} {family}",
        )


def _ranges(numbers: list[int]) -> str:
    """Rising numbers with runs drawn together: 1, 4–7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _number_points(ax: Axes, replay: Replay, name: str) -> None:
    """Number every point, on the side where there is most room."""
    points = [ax.transData.transform((result["tv"].mean, result[name].mean)) for result in replay]
    taken = list(points)
    for number, point in enumerate(points, start=1):
        sides = [
            np.array([reach * np.cos(angle), reach * np.sin(angle)])
            for reach in (9, 15)
            for angle in np.arange(8) * np.pi / 4 + np.pi / 8
        ]
        crowded = [sum(max(0.0, 14 - np.hypot(*(point + side - other))) for other in taken) for side in sides]
        side = sides[int(np.argmin(crowded))]
        taken.append(point + side)
        ax.annotate(
            str(number),
            ax.transData.inverted().transform(point),
            xytext=side * 72 / ax.figure.dpi,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=6.5,
            in_layout=False,
        )


def _bar(estimate: Estimate) -> list[list[float]] | None:
    if estimate.low is None:
        return None
    # Intervals are cut to the range of the measure, never past the mean; rounding may still pass it.
    return [[max(estimate.mean - estimate.low, 0)], [max(estimate.high - estimate.mean, 0)]]


def _draw_line(ax: Axes, replay: Replay) -> None:
    """TV = TV(p, q) - P_rej holds in the mean too, being linear: nothing lies above it."""
    nearest = replay.draft["tv"].mean
    ax.plot([0, nearest], [1 - nearest, 1], color="0.45", linewidth=0.8, linestyle=(0, (4, 2)), zorder=0)
    ax.annotate("out of reach", (0, 1), xytext=(4, -4), textcoords="offset points", va="top", color="0.35")
    ax.fill_between([0, nearest], [1 - nearest, 1], 1, color="0.93", linewidth=0, zorder=-1)


def tv_distribution(replay: Replay) -> Figure:
    """For each rule, the share of positions by TV(p, out), on a logarithmic scale with a bin for zero."""
    counts = np.array([result.tv_histogram for result in replay])
    shares = counts / counts.sum(axis=1, keepdims=True)
    large = shares[:, TV_EDGES.index(_LARGE_TV) + 1 :].sum(axis=1)
    edges = np.log10(TV_EDGES)
    filled = np.flatnonzero(counts[:, 1:].any(axis=0))
    lowest = math.floor(edges[filled[0]]) if len(filled) else -1
    zero = lowest - 0.6
    with style():
        figure = new_figure(TWO_COLUMNS, 0.34 * len(shares) + 0.7)
        axes = figure.subplots(len(shares), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for number, (ax, result) in enumerate(zip(axes, replay, strict=True)):
            row = shares[number]
            ax.bar([zero, *edges[:-1]], row, [0.3, *np.diff(edges)], align="edge", color=SERIES[0], edgecolor="white")
            if row[0]:
                _beside(ax, _percent(row[0]), (zero - 0.05, 0.5), ax.get_xaxis_transform(), ha="right")
            _beside(ax, f"{_percent(large[number])} ≥ {_LARGE_TV:g}", (1.01, 0.5), ax.transAxes, ha="left")
            name = result.spec if len(result.spec) <= _WIDEST_NAME else result.spec.replace(":", ":\n", 1)
            ax.set_ylabel(f"{number + 1}  {name}", rotation=0, ha="right", va="center", parse_math=False)
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.tick_params(bottom=ax is axes[-1])
        axes[0].set_xlim(zero - (0.8 if counts[:, 0].any() else 0.1), 0)
        axes[0].set_ylim(0, max(shares[:, 1:].max(), 0.01))
        decades = range(lowest, 1)
        axes[-1].set_xticks([zero + 0.15, *decades], ["0", *(f"$10^{{{d}}}$" for d in decades[:-1]), "1"])
        axes[-1].set_xlabel("TV(p, out) at a position; height: share of positions, one scale for all but that of zero")
    return figure


def _percent(share: float) -> str:
    """A share that is not nothing is not 0 %."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _beside(ax: Axes, text: str, place: tuple[float, float], transform: Transform, *, ha: str) -> None:
    ax.text(
        *place, text, transform=transform, ha=ha, va="center", color="0.35", fontsize=mpl.rcParams["xtick.labelsize"]
    )


def case_diagram(replay: Replay, result: RuleResult, case: Case) -> Figure:
    """What the rule does at one of its worst positions."""
    p, q = pair_at(replay.trace, replay.settings, case.block, case.position)
    name = TokenNames(replay.trace).label
    return diagram(p, q, [result.rule], titles=[""], token_name=name, top=_TOKENS_DRAWN, width=ONE_COLUMN)


def inline_svg(figure: Figure, name: str) -> str:
    """A figure as an <svg> element for an HTML page on which `name` keeps its ids apart from those of other figures."""
    text = encode(figure, "svg").decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
