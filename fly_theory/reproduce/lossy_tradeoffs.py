"""Lossy paper, Figures 3, 5, 6 and 7: trade-offs drawn from Tables 4 and 5."""

from typing import Any

from matplotlib.figure import Figure

from fly_theory import published
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.reproduce.summaries import BENCHMARKS

FAMILIES = {
    "collaborative": (
        "lossy_table4_single_draft",
        "SD Baseline",
        {"lenience": "Lenience-based relaxation", "CoS": "CoS"},
    ),
    "truncation": (
        "lossy_table4_single_draft",
        "SD Baseline",
        {
            "min-p target": "Min-p Smpl. + tokenwise SpD",
            "SpecCascade": "Cascade",
            "η target": "η Smpl. + tokenwise SpD",
            "typical": "Medusa",
        },
    ),
    "eagle-3": (
        "lossy_table5_eagle3",
        "Baseline",
        {
            "min-p target": "Min-p Smpl. + SD",
            "SpecCascade": "SpecCascade",
            "η target": "η Sampl. + SD",
            "typical": "Typical Sampling",
            "lenience": "Lenience",
        },
    ),
}
# The same colour and marker for a method in every panel and figure.
LOOKS = {
    label: {"color": colour, "marker": marker}
    for label, colour, marker in zip(
        ("lenience", "CoS", "min-p target", "SpecCascade", "η target", "typical"), SERIES, "v^sDop", strict=False
    )
}


def find() -> Finding:
    """Draw each table, and count the settings that gain length without losing accuracy."""
    values, figures = [], {}
    for name, (table, baseline, methods) in FAMILIES.items():
        rows = published.table(table)
        base = {row["benchmark"]: row for row in rows if row["method"] == baseline}
        for label, method in methods.items():
            settings = [row for row in rows if row["method"] == method]
            faster = [row for row in settings if _gain(row, base, "block_efficiency") > 0]
            safe = [row for row in faster if _gain(row, base, "accuracy_percent") >= 0]
            values.append(
                Compared(f"{name}, {label}: settings faster than the baseline, of {len(settings)}", None, len(faster))
            )
            values.append(Compared(f"{name}, {label}: those that lose no accuracy", None, len(safe)))
        figures[name] = _draw(rows, base, methods)
    why = (
        "The figures are drawn from the printed tables; lines connect the settings of a method in sweep order, stars "
        "are the lossless baselines. Figures 3 and 6 are Table 4, Figure 7 is Table 5, and Figure 5 is the horizontal "
        "spread."
    )
    return Finding("reproduced", why, values, figures)


def _gain(row: dict[str, Any], base: dict[str, dict[str, Any]], column: str) -> float:
    return float(row[column] - base[row["benchmark"]][column])


def _draw(rows: list[dict[str, Any]], base: dict[str, dict[str, Any]], methods: dict[str, str]) -> Figure:
    with style():
        figure = new_figure(TWO_COLUMNS, 4.4)
        for ax, benchmark in zip(figure.subplots(2, 2).flat, BENCHMARKS, strict=True):
            for label, method in methods.items():
                chosen = [row for row in rows if (row["method"], row["benchmark"]) == (method, benchmark)]
                points = [row["block_efficiency"] for row in chosen], [row["accuracy_percent"] for row in chosen]
                ax.plot(*points, **LOOKS[label], label=label, linewidth=0.8, markersize=3.5)
            start = base[benchmark]
            ax.plot(start["block_efficiency"], start["accuracy_percent"], "*k", markersize=8, label="lossless")
            ax.set_title(benchmark, loc="left")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=len(methods) + 1)
        figure.supxlabel("block efficiency", fontsize=8)
        figure.supylabel("accuracy, %", fontsize=8)
    return figure


ITEM = Item("lossy-tradeoffs", "Length against accuracy", "lossy paper, Figures 3, 5, 6, 7 from Tables 4 and 5", find)
