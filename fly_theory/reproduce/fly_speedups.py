"""FLy, Tables 2 and 3: what speed-up over tokens a round says about the time of a round."""

from typing import Any

from fly_theory import published
from fly_theory.cost import fly_table1
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.reproduce.item import Compared, Finding, Item

_DRAFT_LENGTHS = {"L31 70B": ("L3-70B", 15), "L31 405B": ("L3-405B", 25)}
_FASTEST, _SLOWEST = 1, 7


def rows() -> list[dict[str, Any]]:
    """Every cell of Tables 2 and 3, means left out, with the round time it implies in steps of the target."""
    cells = [*published.table("fly_table2_ood"), *published.table("fly_table3_id")]
    return [row | {"steps": row["tau"] / row["speedup"]} for row in cells if row["dataset"] != "Mean"]


def find() -> Finding:
    """Compare the round times of FLy with that of Table 1: the draft length is the same in all of them."""
    found, values = rows(), []
    for target, (name, length) in _DRAFT_LENGTHS.items():
        table1 = fly_table1(name, accelerated=True)
        steps = table1(length) / float(table1.step)
        implied = {
            f"T={r['temperature']:g} {r['dataset']}": r["steps"]
            for r in found
            if (r["target"], r["method"]) == (target, "FLy")
        }
        for setting, x in implied.items():
            values.append(
                Compared(f"{target}, FLy, {setting}: round time in target steps (Table 1)", steps, x, 0.1 * steps)
            )
    with style():
        figure = new_figure(TWO_COLUMNS, 2.8)
        ax = figure.subplots()
        for steps in range(_FASTEST, _SLOWEST):
            ax.plot([0, 26], [0, 26 / steps], color="0.85", linewidth=0.7, zorder=0)
            end = min(25.4, 6.6 * steps)
            ax.annotate(str(steps), (end, end / steps), color="0.5", fontsize=6)
        methods = list(dict.fromkeys(row["method"] for row in found))
        for method, colour, marker in zip(methods, SERIES, "oXsD^v", strict=False):
            chosen = [row for row in found if row["method"] == method]
            points = [row["tau"] for row in chosen], [row["speedup"] for row in chosen]
            ax.plot(*points, marker, color=colour, label=method, markersize=4, markerfacecolor="none")
        ax.set(xlabel="tokens a round", ylabel="speed-up", xlim=(0, 26), ylim=(0, 7))
        ax.legend(loc="upper left")
    large = [row["steps"] for row in found if (row["target"], row["method"]) == ("L31 405B", "FLy")]
    why = (
        "A verifier with a fixed draft length spends the same time on every round, so tokens a round over speed-up, "
        "the round time in target steps, is one number (grey lines). For FLy with 405B and K = 25 it runs from "
        f"{min(large):.2f} to {max(large):.2f} steps, where Table 1 gives 2.81: no cost a round explains MGSM and NIAH "
        "together. Speed-up and tokens a round must have been measured under different conditions (context length, "
        "lookup hits), which the paper does not state."
    )
    return Finding("not reproducible here", why, values, {"times": figure})


ITEM = Item("fly-speedups", "What speed-ups say about the time of a round", "FLy, Tables 1 to 3", find)
