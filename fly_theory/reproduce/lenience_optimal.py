"""Finding: under a ceiling on out/p no rule that drafts one token accepts more than lenience."""

import numpy as np
import numpy.typing as npt
from scipy import optimize

from fly_theory.divergence import max_ratio
from fly_theory.example_pairs import example_pair
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item

Floats = npt.NDArray[np.float64]

SETTINGS = (0.2, 0.5, 0.8)
PAIRS, VOCABULARY, SEED = 60, 4, 7
OTHERS = {
    "CoS": [f"cos:w={w}" for w in (0.1, 0.2, 0.3, 0.5, 0.7)],
    "mentored": [f"mentored:budget={b}" for b in (0.01, 0.05, 0.1, 0.2)],
    "gated ceiling": [f"gated-ceiling:base={b},l=0.5" for b in (0.2, 0.5, 0.9)],
    "min-p set": [f"min-p:base={b}" for b in (0.2, 0.3, 0.5)],
    "lenience, redraw from p": [f"lenience-resample:l={l}" for l in (0.3, 0.5, 0.8)],
}


def best_acceptance(p: Floats, q: Floats, ceiling: float) -> float:
    """The largest acceptance of any rule with out <= ceiling p, by linear programming.

    The variables are the kept mass m(x) and the mass R(x, y) that moves from a rejected x to y, for every x and y: so
    what a rejection is redrawn from may depend on the rejected token.
    """
    v = len(p)
    moved = np.kron(np.eye(v), np.ones(v))
    all_mass = np.hstack([np.eye(v), moved])
    emitted = np.hstack([np.eye(v), np.tile(np.eye(v), v)])
    gain = np.concatenate([-np.ones(v), np.zeros(v * v)])
    found = optimize.linprog(gain, A_ub=emitted, b_ub=ceiling * p, A_eq=all_mass, b_eq=q, bounds=(0, None))
    return -float(found.fun)


def find() -> Finding:
    """Compare lenience with the optimum of a linear program on random pairs, and draw acceptance against the ratio."""
    rng = np.random.default_rng(SEED)
    pairs = rng.dirichlet(np.full(VOCABULARY, 0.7), size=(PAIRS, 2))
    values = []
    for l in SETTINGS:
        lenience = rule(f"lenience:l={l}")
        gaps = [best_acceptance(p, q, 1 / l) - float(lenience.acceptance(p, q)) for p, q in pairs]
        what = f"l = {l}: largest gain of any rule under the ceiling 1/l, {PAIRS} pairs"
        values.append(Compared(what, 0.0, float(max(gaps)), 1e-8))
    p, q = example_pair("smooth").arrays()
    with style():
        figure = new_figure(TWO_COLUMNS, 2.6)
        ax = figure.subplots()
        ratios = np.linspace(1, 3.7, 109)
        best = [float(rule(f"lenience:l={1 / ratio}").acceptance(p, q)) for ratio in ratios]
        ax.plot(ratios, best, color=SERIES[0], label="lenience, $\\ell$ = 1 / ratio")
        for (name, specs), colour, marker in zip(OTHERS.items(), SERIES[1:], "sD^vP", strict=False):
            points = [(max_ratio(p, rule(spec).induced(p, q)), rule(spec).acceptance(p, q)) for spec in specs]
            ax.plot(*zip(*points, strict=True), marker, color=colour, label=name, markersize=4, markerfacecolor="none")
        ax.set(xlabel="largest out / p", ylabel="acceptance")
        ax.legend(loc="lower right", ncols=2)
    why = (
        "What is kept of a token is at most q(x), and at most out(x) <= p(x)/l; so no rule accepts more than the sum "
        "of min(q, p/l), which lenience attains. The linear program allows every rule, redraws that depend on the "
        "rejected token included, and finds nothing better. In the figure every other rule lies below the curve of "
        "lenience."
    )
    return Finding("reproduced", why, values, {"acceptance": figure})


ITEM = Item(
    "lenience-optimal", "Lenience accepts most under its ceiling", "finding; lenience of arXiv 2211.17192", find
)
