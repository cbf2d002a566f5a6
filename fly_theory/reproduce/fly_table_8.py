"""FLy, Table 8: how much of the target's accuracy is kept."""

from fly_theory import published
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.reproduce.item import Compared, Finding, Item, printed


def recoveries() -> dict[tuple[str, str], float]:
    """Accuracy with FLy over that of the target alone, in percent, by (target, dataset)."""
    accuracy = {(r["family"], r["system"], r["dataset"]): r["accuracy"] for r in published.table("fly_table8_accuracy")}
    found = {}
    for family, system, dataset in accuracy:
        if system.startswith("FLy"):
            size = system.removeprefix("FLy ")
            (target,) = {s for f, s, _ in accuracy if f == family and s != system and s.endswith(size)}
            ratio = printed(accuracy[family, system, dataset]) / printed(accuracy[family, target, dataset])
            found[target, dataset] = float(100 * ratio)
    return found


def find() -> Finding:
    """Divide, and hold the smallest ratio against the 99 % of the abstract."""
    found = recoveries()
    least = min(found, key=lambda key: found[key])
    values = [Compared(f"{target}, {dataset}, recovery in percent", None, x) for (target, dataset), x in found.items()]
    values.append(Compared("smallest recovery in percent (abstract: above 99)", "> 99", found[least]))
    targets = list(dict.fromkeys(target for target, _ in found))
    datasets = list(dict.fromkeys(dataset for _, dataset in found))
    with style():
        figure = new_figure(TWO_COLUMNS, 2.2)
        ax = figure.subplots()
        ax.axhline(99, color="0.6", linewidth=0.8)
        for shift, (target, colour) in enumerate(zip(targets, SERIES, strict=False)):
            at = [(i + 0.15 * (shift - 1.5), found[target, d]) for i, d in enumerate(datasets) if (target, d) in found]
            ax.plot(*zip(*at, strict=True), "o", color=colour, label=target, markersize=4)
        ax.set_xticks(range(len(datasets)), datasets)
        ax.set(ylabel="accuracy kept, %")
        ax.legend(loc="upper left")
    why = (
        f"Every ratio of printed accuracies is above 99 %; the smallest is {found[least]:.2f} % ({least[0]}, "
        f"{least[1]}). ACP with Llama 3.3 is above 100: a difference of two noisy accuracies, not a gain."
    )
    return Finding("reproduced", why, values, {"recovery": figure})


ITEM = Item("fly-table-8", "Accuracy kept by FLy", "FLy, Table 8 and abstract", find)
