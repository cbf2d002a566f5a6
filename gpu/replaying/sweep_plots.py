"""Sweeps as curves: what changes with one parameter, with the intervals as bands."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from fly_theory.figures import ONE_COLUMN, SERIES, TWO_COLUMNS, new_figure, style
from gpu.replaying.estimates import Estimate
from gpu.replaying.result import Replay
from gpu.replaying.sweep import Sweep

__all__ = ["sweep_curves"]

# Figure, how it is called in the legend, and the style of its line.
_Curve = tuple[str, str, str]

_ENDINGS: tuple[_Curve, ...] = (
    ("gate_open", "gate open, of mismatches", "-"),
    ("lost_to_gate", "gate, of rejections", "--"),
    ("lost_to_window", "window, of rejections", "-."),
    ("lost_to_boundary", "boundary, of rejections", ":"),
)


def sweep_curves(replay: Replay, sweep: Sweep) -> Figure:
    """Tokens per call against the parameter, and beside them what else the rule has to tell.

    Of a token-level rule that is its TV to the target, of FLy how often its gate opens and what ends its rounds. Where
    tokens per call are not identified, acceptance takes their place.
    """
    results = [replay[point.rule] for point in sweep.points]
    values = [point.value for point in sweep.points]
    speed = "tokens_per_call" if results[0]["tokens_per_call"] is not None else "acceptance"
    panels: list[Callable[[Axes], object]] = []
    if all(speed in result.figures for result in results):
        panels.append(lambda ax: _speed(ax, values, results, speed))
    if "tv" in results[0].figures:
        panels.append(lambda ax: _curves(ax, values, results, [("tv", "TV(p, out)", "-")], label="TV(p, out)"))
    if any(result.figures.get("gate_open") is not None for result in results):
        panels.append(lambda ax: _shares(ax, values, results))
    if not panels:
        panels.append(lambda ax: ax.set_title("tokens per call are not identified by this trace"))
    with style():
        figure = new_figure(TWO_COLUMNS if len(panels) > 1 else ONE_COLUMN, 2.7)
        for draw, ax in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
            draw(ax)
            ax.set_xlabel(_named(sweep))
            if all(value.is_integer() for value in values):
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        handles = [handle for ax in figure.axes for handle in ax.get_legend_handles_labels()[0]]
        if len(handles) > len(panels):
            figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=5)
    return figure


def _speed(ax: Axes, values: Sequence[float], results: Sequence[Any], name: str) -> None:
    label = {"tokens_per_call": "tokens per target call", "acceptance": "acceptance probability"}[name]
    _curves(ax, values, results, [(name, "the rule", "-")], label=label)
    gains = [result.figures.get("gain_over_strict") for result in results]
    if all(gain is not None for gain in gains):
        strict = [result[name].mean - gain.mean for result, gain in zip(results, gains, strict=True)]
        ax.plot(values, strict, color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), label="strict")


def _shares(ax: Axes, values: Sequence[float], results: Sequence[Any]) -> None:
    _curves(ax, values, results, _ENDINGS, label="share", colours=SERIES[1:])
    ax.set_ylim(-0.03, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _curves(
    ax: Axes,
    values: Sequence[float],
    results: Sequence[Any],
    curves: Iterable[_Curve],
    *,
    label: str,
    colours: Sequence[str] = SERIES,
) -> None:
    for (name, legend, line), colour in zip(curves, colours, strict=False):
        found: list[Estimate | None] = [result[name] for result in results]
        mean = [np.nan if each is None else each.mean for each in found]
        low = [np.nan if each is None or each.low is None else each.low for each in found]
        high = [np.nan if each is None or each.high is None else each.high for each in found]
        ax.plot(values, mean, color=colour, linestyle=line, marker="o", markersize=2.5, label=legend)
        ax.fill_between(values, low, high, color=colour, alpha=0.13, linewidth=0)
    ax.set_ylabel(label)


def _named(sweep: Sweep) -> str:
    rule, _, _ = sweep.text.partition(":")
    known = {"K": "draft length K", "theta": "threshold θ", "window": "window W"}
    return known.get(sweep.parameter, f"{sweep.parameter} of {rule}")
