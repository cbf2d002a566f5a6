"""Estimates with their intervals beside the exact values, one column a simulation."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fly_theory.errors import InvalidInput
from fly_theory.figures.style import ONE_COLUMN, SERIES, TWO_COLUMNS, new_figure, style
from simulators.estimates import Estimate
from simulators.simulation import Simulation

__all__ = ["figure"]

# Of a long law, the most frequent outcomes are drawn.
_MOST_OUTCOMES = 24
# Up to this many outcomes, every one is named on the axis.
_MOST_NAMED = 16
_PANEL_WIDTH = 2.2


def figure(simulations: Sequence[Simulation], *, width: float | None = None) -> Figure:
    """The first law that each simulation estimates: rates with intervals above, their distances from the exact below.

    The lower panel is left out when no simulation has exact values.

    Raises
    ------
    InvalidInput
        For no simulation, or one that estimates no law.
    """
    if not simulations:
        msg = "simulations is empty; a figure shows at least one"
        raise InvalidInput(msg)
    laws = [_law(simulation) for simulation in simulations]
    exact = any(estimate.exact is not None for law in laws for estimate in law)
    width = width or (ONE_COLUMN if len(laws) == 1 else max(TWO_COLUMNS, _PANEL_WIDTH * len(laws)))
    with style():
        drawn = new_figure(width, 3.5 if exact else 2.3)
        ratios = (2.0, 1.0)[: 1 + exact]
        axes = drawn.subplots(1 + exact, len(laws), squeeze=False, sharex="col", sharey="row", height_ratios=ratios)
        for column, (simulation, law) in enumerate(zip(simulations, laws, strict=True)):
            _draw_rates(axes[0, column], law)
            axes[0, column].set_title(f"{simulation.subject}\n{_headline(simulation.estimates[0])}")
            if exact:
                _draw_errors(axes[1, column], law)
            axes[-1, column].set_xlabel(law[0].name)
            _name_outcomes(axes[-1, column], law)
        axes[0, 0].set_ylabel("probability")
        axes[0, 0].set_ylim(bottom=0)
        if exact:
            axes[1, 0].set_ylabel("estimate − exact")
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside lower center", ncols=len(names))
    return drawn


def _law(simulation: Simulation) -> list[Estimate]:
    """The first law of a simulation, cut to its most frequent outcomes."""
    names = [estimate.name for estimate in simulation.estimates if estimate.outcome is not None]
    if not names:
        msg = f"{simulation.subject} estimates no law: there is nothing to draw"
        raise InvalidInput(msg)
    law = [e for e in simulation.estimates if e.outcome is not None and e.name == names[0]]
    if len(law) <= _MOST_OUTCOMES:
        return law
    return sorted(law, key=lambda estimate: -estimate.value)[:_MOST_OUTCOMES]


def _headline(estimate: Estimate) -> str:
    exact = "" if estimate.exact is None else f", exact {estimate.exact:.4g}"
    return f"{estimate.label}\n{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]{exact}"


def _draw_rates(axes: Axes, law: list[Estimate]) -> None:
    at, values = np.arange(len(law)), np.array([estimate.value for estimate in law])
    ends = np.array([(e.value - e.low, e.high - e.value) for e in law]).T
    label = f"estimate, {100 * law[0].confidence:.4g} % interval"
    axes.errorbar(at, values, yerr=ends, fmt="o", color=SERIES[0], capsize=2, label=label)
    if law[0].exact is not None:
        exact = [e.exact for e in law]
        axes.plot(at, exact, linestyle="none", marker="_", markersize=11, color=SERIES[1], label="exact", zorder=3)


def _draw_errors(axes: Axes, law: list[Estimate]) -> None:
    axes.axhline(0, color=SERIES[1], linewidth=0.8)
    if law[0].exact is None:
        return
    errors = np.array([e.value - e.exact for e in law])
    ends = np.array([(e.value - e.low, e.high - e.value) for e in law]).T
    axes.errorbar(np.arange(len(law)), errors, yerr=ends, fmt="o", color=SERIES[0], capsize=2)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _name_outcomes(axes: Axes, law: list[Estimate]) -> None:
    names = [estimate.outcome or "" for estimate in law]
    if len(names) > _MOST_NAMED and all(len(name) <= 3 for name in names):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    axes.set_xticks(np.arange(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0)
