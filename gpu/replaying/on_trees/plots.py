"""The plot of the report: what tokens per call cost on trees."""

from matplotlib.figure import Figure

from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from gpu.replaying.estimates import Estimate
from gpu.replaying.on_trees.result import TreeReplay

__all__ = ["tokens_against_divergence"]


def tokens_against_divergence(replay: TreeReplay) -> Figure | None:
    """Tokens per call against the TV of the first token; arrows lead from lossless verification of p_A to its rule.

    None where no rule has both figures.
    """
    drawn = [
        (number, result)
        for number, result in enumerate(replay, start=1)
        if result["tv"] is not None and result["tokens_per_call"] is not None
    ]
    if not drawn:
        return None
    with style():
        figure = new_figure(TWO_COLUMNS, 3.0)
        ax = figure.subplots()
        places: dict[tuple[float, float], list[int]] = {}
        for number, result in drawn:
            colour, tv, kept = SERIES[number % len(SERIES)], result["tv"], result["tokens_per_call"]
            if result.baseline is not None:
                start = (result.baseline["tv"].mean, result.baseline["tokens_per_call"].mean)
                ax.plot(*start, "o", color=colour, fillstyle="none", markersize=4)
                ax.annotate(
                    "", (tv.mean, kept.mean), start, arrowprops={"arrowstyle": "->", "color": colour, "lw": 0.6}
                )
            ax.errorbar(tv.mean, kept.mean, xerr=_bar(tv), yerr=_bar(kept), color=colour, elinewidth=0.5, capsize=1.2)
            ax.plot(tv.mean, kept.mean, "o", color=colour, markersize=4)
            places.setdefault((round(tv.mean, 3), round(kept.mean, 2)), []).append(number)
        for place, numbers in places.items():
            label = ", ".join(map(str, numbers))
            ax.annotate(label, place, xytext=(5, 4), textcoords="offset points", fontsize=6.5)
        ax.set(xlabel="mean TV(p, out) of the first token", ylabel="tokens per target call")
        ax.set_xlim(left=min(-0.02, ax.get_xlim()[0]))
    return figure


def _bar(estimate: Estimate) -> list[list[float]] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return [[max(estimate.mean - estimate.low, 0)], [max(estimate.high - estimate.mean, 0)]]
