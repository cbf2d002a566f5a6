"""Lossy paper, Table 4: is the parameter of CoS the weight of the draft or of the target?"""

import numpy as np
from scipy import optimize

from fly_theory import published
from fly_theory.closed_form import expected_tokens
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.reproduce.summaries import BENCHMARKS

# The paper does not print its draft length; the largest block efficiency of Table 4 is 10.26.
DRAFT_LENGTH = 10


def predicted(baseline: float, draft_weight: float) -> float:
    """Block efficiency at a weight of the draft, from that at weight 0, if all positions had one TV(p, q)."""

    def excess(acceptance: float) -> float:
        return float(expected_tokens(acceptance, DRAFT_LENGTH)) - baseline

    distance = 1 - float(optimize.brentq(excess, 0.0, 1.0))
    return float(expected_tokens(1 - (1 - draft_weight) * distance, DRAFT_LENGTH))


def find() -> Finding:
    """Predict block efficiency under both readings, and compare."""
    table = published.table("lossy_table4_single_draft")
    base = {row["benchmark"]: row["block_efficiency"] for row in table if row["method"] == "SD Baseline"}
    cos = {(row["benchmark"], row["parameter"]): row for row in table if row["method"] == "CoS"}
    values = []
    errors: dict[str, list[float]] = {"draft": [], "target": []}
    for (benchmark, weight), row in cos.items():
        for reading, draft_weight in (("draft", weight), ("target", 1 - weight)):
            ours = predicted(base[benchmark], draft_weight)
            values.append(
                Compared(f"{benchmark}, {weight:g} as weight of the {reading}: BE", row["block_efficiency"], ours)
            )
            errors[reading].append(ours - row["block_efficiency"])
    typical = {reading: float(np.sqrt(np.mean(np.square(e)))) for reading, e in errors.items()}
    with style():
        figure = new_figure(TWO_COLUMNS, 2.1)
        grid = np.linspace(0, 1, 51)
        for ax, benchmark in zip(figure.subplots(1, 4, sharex=True), BENCHMARKS, strict=True):
            ax.plot(grid, [predicted(base[benchmark], w) for w in grid], color=SERIES[0], label="weight of the draft")
            ax.plot(
                grid, [predicted(base[benchmark], 1 - w) for w in grid], color=SERIES[1], label="weight of the target"
            )
            weights = [w for b, w in cos if b == benchmark]
            ax.plot(weights, [cos[benchmark, w]["block_efficiency"] for w in weights], "ko", label="published")
            ax.axhline(base[benchmark], color="0.6", linewidth=0.8, linestyle=":", label="lossless")
            ax.set_title(benchmark, loc="left")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=4)
        figure.supxlabel("parameter of CoS", fontsize=8)
        figure.supylabel("block efficiency", fontsize=8)
    why = (
        "With draft weight w, CoS accepts 1 - (1 - w) TV(p, q), so block efficiency grows with w from that of the "
        "lossless baseline, and accuracy falls. All four benchmarks do so from 0.2 to 0.8, which settles it: the "
        "parameter is the weight of the draft. From the baseline alone, with K = 10 and one TV for all positions, the "
        f"draft reading predicts block efficiency with a typical error of {typical['draft']:.2f}, the target reading "
        f"{typical['target']:.2f}. A spread of TV over contexts, which this leaves out, would lower the prediction "
        "where it is too high."
    )
    return Finding("explained", why, values, {"direction": figure})


ITEM = Item("lossy-cos-direction", "Whose weight the parameter of CoS is", "lossy paper, Table 4", find)
