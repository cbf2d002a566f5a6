"""Lossy paper, Table 7: differences of the means of Tables 2 and 3, and the same from the detail of Tables 4 and 5."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes

from fly_theory import published
from fly_theory.figures import SERIES
from fly_theory.reproduce import lossy_table_2, lossy_table_3
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.reproduce.summaries import cells, gaps, means_of_settings

TABLES = (
    ("single-draft", "lossy_table2_single_draft_mean", "lossy_table4_single_draft", lossy_table_2.NAMES),
    ("EAGLE-3", "lossy_table3_eagle3_mean", "lossy_table5_eagle3", lossy_table_3.NAMES),
)


def from_means() -> list[Compared]:
    """Every cell beside the difference of two printed means."""
    return list(gaps({key: value for f, means, _, _ in TABLES for key, value in cells(means, f).items()}))


def from_detail() -> list[Compared]:
    """Every cell beside the difference of two means over the settings."""
    detail = {}
    for framework, means, settings, names in TABLES:
        exact = means_of_settings(means, settings, names)
        for key, value in zip(cells(means, framework), exact, strict=True):
            detail[key] = Fraction(value.ours)
    return list(gaps(detail))


def amplification(detail: list[Compared]) -> list[Compared]:
    """How many times larger the average accuracy gap is with EAGLE-3, beside what the caption says."""
    gap = {value.what: value.ours for value in detail}
    values = []
    for pair, stated in (("SpecCascade - Min-p sampling", 4), ("Typical acceptance - η-sampling", 20)):
        ratio = gap[f"{pair}, EAGLE-3, Avg, Δaccuracy"] / gap[f"{pair}, single-draft, Avg, Δaccuracy"]
        values.append(Compared(f"{pair}: gap with EAGLE-3 over single-draft (caption)", stated, ratio, 0.5))
    return values


def find() -> Finding:
    """Take the differences twice: of the printed means, and of the means recomputed from the settings."""
    means = [replace(value, what=f"{value.what} (from Tables 2, 3)") for value in from_means()]
    caption = amplification(from_detail())
    detail = [replace(value, what=f"{value.what} (from Tables 4, 5)") for value in from_detail()]
    off = sum(value.agrees is False for value in detail)
    why = (
        f"All {len(means)} cells are differences of Tables 2 and 3, up to rounding. From the settings of Tables 4 and "
        f"5, {off} of {len(detail)} cells come out otherwise, all of them block efficiencies of single drafts, because "
        "Table 2 is not the mean of Table 4 there. The gain of SpecCascade on INCLUDE changes its sign."
    )
    return Finding("explained", why, [*means, *detail, *caption])


def draw_gaps(axes: Axes) -> None:
    """Draw the printed gaps in accuracy of the two accept-set rules to their matched targets, by benchmark."""
    rows = [row for row in published.table("lossy_table7_matched_gap") if row["benchmark"] != "Avg"]
    groups = list(dict.fromkeys((row["pair"], row["benchmark"]) for row in rows))
    pairs = list(dict.fromkeys(pair for pair, _ in groups))
    at = np.array([i + 0.8 * pairs.index(pair) for i, (pair, _) in enumerate(groups)])
    for i, (framework, label) in enumerate((("single-draft", "single draft"), ("EAGLE-3", "EAGLE-3 tree"))):
        gap = {(r["pair"], r["benchmark"]): r["delta_accuracy_pp"] for r in rows if r["framework"] == framework}
        axes.bar(at + 0.4 * (i - 0.5), [gap[group] for group in groups], 0.4, color=SERIES[i], label=label)
    axes.axhline(0, color="0.35", linewidth=0.6)
    axes.set_xticks(at, [benchmark for _, benchmark in groups], rotation=45, ha="right")
    for pair in pairs:
        middle = np.mean([x for x, group in zip(at, groups, strict=True) if group[0] == pair])
        axes.text(middle, 3.3, pair.replace(" - ", "\n− "), ha="center", va="top", fontsize=6)
    axes.set_ylim(-9.5, 3.5)
    axes.set_title("published: accept set − matched target (Table 7)")
    axes.set_ylabel("accuracy, points")
    axes.legend(loc="lower left", fontsize=6)


ITEM = Item(
    "lossy-table-7", "Gaps of loose rules to their matched baselines", "lossy paper, Table 7 from Tables 2 to 5", find
)
