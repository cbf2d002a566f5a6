"""FLy, Tables 4 and 9: mean tokens a round from two probabilities."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from fly_theory import published, renewal
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.renewal import Observed
from fly_theory.reproduce.item import Compared, Finding, Item

# The accuracy claimed for a model of two parameters.
ACCURACY = 0.035


def _compared(table: str, observed: Sequence[Observed]) -> list[Compared]:
    fitted = renewal.fit(observed)
    values = []
    for o, error in zip(observed, fitted.errors, strict=True):
        gate = {None: "theta = 0.3", 1.0: "theta = 0", 0.0: "theta = 1"}[o.gate]
        what = f"{table}, W = {o.window}, {gate}, K = {o.draft_length}: tokens a round"
        values.append(Compared(what, o.tokens, float(o.tokens * (1 + error)), ACCURACY * o.tokens))
    return values


def find() -> Finding:
    """Fit the renewal model to each table, and read the setting left out, theta = 0.6, as a gate."""
    small, large = renewal.fly_table4(), renewal.fly_table9()
    first, second = renewal.fit(small), renewal.fit(large)
    left_out = next(
        row["tau"]
        for row in published.table("fly_table4_ablation")
        if (row["hyperparameter"], row["value"]) == ("theta", 0.6)
    )
    opening = renewal.implied_gate(Observed(left_out, 6, 15), first.match)
    values = [
        *_compared("Table 4", small),
        *_compared("Table 9", large),
        Compared("70B: probability of a match", None, first.match),
        Compared("70B: probability that the gate is open at theta = 0.3", None, first.gate),
        Compared("70B: the same at theta = 0.6, read off its tokens a round", None, opening),
        Compared("405B: probability of a match", None, second.match),
        Compared("405B: probability that the gate is open at theta = 0.3", None, second.gate),
    ]
    with style():
        figure = new_figure(TWO_COLUMNS, 2.3)
        left, right = figure.subplots(1, 2)
        windows, lengths = np.arange(0, 13), np.arange(6, 33)
        for gate, colour, name in (
            (1.0, SERIES[1], "gate off"),
            (None, SERIES[0], "gate at 0.3"),
            (0.0, SERIES[3], "gate shut"),
        ):
            opened = first.gate if gate is None else gate
            curve = [renewal.expected_tokens(first.match, opened, int(w), 15) for w in windows]
            left.plot(windows, curve, color=colour, label=name)
            _points(left, [o for o in small if o.draft_length == 15 and o.gate == gate], "window", colour)
        for fitted, observed, colour, name in ((first, small, SERIES[0], "70B"), (second, large, SERIES[2], "405B")):
            curve = [renewal.expected_tokens(fitted.match, fitted.gate, 6, int(k)) for k in lengths]
            right.plot(lengths, curve, color=colour, label=name)
            _points(right, [o for o in observed if o.window == 6 and o.gate is None], "draft_length", colour)
        left.set(xlabel="window $W$ (70B, $K = 15$)", ylabel="tokens a round", ylim=(8, 17))
        right.set(xlabel="draft length $K$ ($W = 6$)", ylim=(5, 23))
        for ax in (left, right):
            ax.plot([], [], "o", color="black", markersize=3.5, label="published")
            ax.legend(ncols=2)
    worst = 100 * max(abs(first.errors).max(), abs(second.errors).max())
    why = (
        "Matches are taken to be independent, and so are open gates at mismatches; one probability of each is fitted "
        f"to a table. Two numbers a table then give all thirteen values within {worst:.1f} %. A gate that is open at "
        "nine in ten mismatches fits the entropy of the released code, which is high wherever two tokens compete; the "
        "paper's asks for some 35 equally good continuations at Llama's vocabulary."
    )
    return Finding("explained", why, values, {"lengths": figure})


def _points(ax: Axes, observed: Sequence[Observed], x: str, colour: str) -> None:
    ax.plot([getattr(o, x) for o in observed], [o.tokens for o in observed], "o", color=colour, markersize=3.5)


ITEM = Item("fly-tables-4-9", "Tokens a round from two probabilities", "FLy, Tables 4 and 9", find)
