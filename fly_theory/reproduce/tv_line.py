"""Finding: no rule is below the TV line, and who is on it."""

import numpy as np

from fly_theory.closed_form import waste
from fly_theory.divergence import total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item

ON = (
    "lossless",
    "lenience:l=0.5",
    "gated-ceiling:base=0.5,l=0.5",
    "cos:w=0.5",
    "mentored:budget=0.1",
    "cactus:delta=0.1",
)
OFF = (
    "lenience-substituted:l=0.5",
    "lenience-resample:l=0.5",
    "cos-contrastive:mu=0.1",
    "cascade-token-v3:alpha=0.5",
    "min-p:base=0.5",
    "typical:eps=0.09,delta=0.3",
    "truncated-min-p:base=0.5",
)
PAIRS, VOCABULARY, SEED = 2000, 8, 6
_ROUNDING = 1e-9


def find() -> Finding:
    """Measure the waste of every rule on random pairs: its largest and smallest distance above the line."""
    rng = np.random.default_rng(SEED)
    p, q = rng.dirichlet(np.full(VOCABULARY, 0.6), size=(2, PAIRS))
    values = []
    for spec in (*ON, *OFF):
        above = waste(p, q, rule(spec))
        values.append(
            Compared(f"{spec}: largest distance below the line", 0.0, max(0.0, -float(above.min())), _ROUNDING)
        )
        if spec in ON:
            values.append(Compared(f"{spec}: largest distance above the line", 0.0, float(above.max()), _ROUNDING))
        else:
            values.append(Compared(f"{spec}: largest distance above the line", None, float(above.max())))
    target, draft = example_pair("smooth").arrays()
    distance = float(total_variation(target, draft))
    with style():
        figure = new_figure(TWO_COLUMNS, 2.9)
        ax = figure.subplots()
        ax.plot([0, distance], [distance, 0], color="0.6", linewidth=0.9, label="the TV line")
        for specs, marker, start in ((ON, "o", 0), (OFF, "s", 0)):
            for spec, colour in zip(specs, SERIES[start:], strict=False):
                point = (
                    1 - rule(spec).acceptance(target, draft),
                    total_variation(target, rule(spec).induced(target, draft)),
                )
                ax.plot(*point, marker, color=colour, label=spec, markersize=5, markerfacecolor="none")
        ax.set(xlabel="rejection probability", ylabel="TV(out, p)", xlim=(-0.02, 1), ylim=(-0.02, None))
        figure.legend(loc="outside right upper", fontsize=6.5)
    why = (
        "TV(out, p) >= TV(p, q) - P_rej for every rule (Yin et al. 2024, Theorems 4 and 5), with equality exactly "
        "when no draft is rejected that the lossless rule keeps, and a rejected one is redrawn only where the target "
        f"lacks mass. On {PAIRS} random pairs the collaborative rules (circles) are on the line; rules with an allowed "
        "set, and lenience with another residual, are above it (squares): they give up closeness to the target for "
        "nothing."
    )
    return Finding("reproduced", why, values, {"line": figure})


ITEM = Item("tv-line", "The TV line and who is on it", "finding; bound of Yin et al. 2024, arXiv 2411.00841", find)
