"""Lossy paper, Figure 8: how lenience interpolates between target and draft, and where its ceiling cuts."""

import numpy as np
import numpy.typing as npt

from fly_theory.divergence import total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures import COLOURS, SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.rules.base import Rule

Floats = npt.NDArray[np.float64]

STRENGTHS = (0.2, 0.4, 0.6, 0.8)
PAIRS, VOCABULARY, SEED = 2000, 12, 8
_ROUNDING = 1e-12


def strength(loose: Rule, p: Floats, q: Floats) -> Floats:
    """The weight (...,) of the target where the draft gives too little: rejected mass over TV(p, q)."""
    distance = np.asarray(total_variation(p, q))
    weight: Floats = np.zeros_like(distance)
    np.divide(1 - loose.acceptance(p, q), distance, out=weight, where=distance > 0)
    return weight


def closed_form(l: float, p: Floats, q: Floats) -> Floats:
    """Lenience's output: cut at p/l above it, the draft up to it, and between target and draft below p."""
    weight = strength(rule(f"lenience:l={l}"), p, q)[..., None]
    return np.where(q > p, np.minimum(q, p / l), weight * p + (1 - weight) * q)


def find() -> Finding:
    """Hold the closed form against the rule on random pairs, and draw both panels."""
    rng = np.random.default_rng(SEED)
    p, q = rng.dirichlet(np.full(VOCABULARY, 0.6), size=(2, PAIRS))
    values = []
    for l in STRENGTHS:
        error = float(abs(rule(f"lenience:l={l}").induced(p, q) - closed_form(l, p, q)).max())
        values.append(Compared(f"l = {l}: largest distance from the closed form, {PAIRS} pairs", 0.0, error, _ROUNDING))
    error = float(abs(rule("cos:w=0.5").induced(p, q) - (p + q) / 2).max())
    values.append(Compared(f"CoS w = 0.5: largest distance from the mixture, {PAIRS} pairs", 0.0, error, _ROUNDING))
    with style():
        figure = new_figure(TWO_COLUMNS, 2.5)
        left, right = figure.subplots(1, 2)
        target, draft = example_pair("smooth").arrays()
        path = np.linspace(0, 1, 101)[:, None]
        drafts = (1 - path) * target + path * draft
        distances = np.asarray(total_variation(target, drafts))
        for l, colour in zip(STRENGTHS, SERIES, strict=False):
            left.plot(
                distances, strength(rule(f"lenience:l={l}"), target, drafts), color=colour, label=f"$\\ell$ = {l}"
            )
        left.set(xlabel="TV(p, q)", ylabel="weight of the target, $P_\\mathrm{rej}$ / TV(p, q)", ylim=(-0.02, 1))
        left.legend(loc="upper left")
        ratio = draft / target
        order = np.argsort(ratio)
        for spec, colour, name in (
            ("cos:w=0.5", SERIES[1], "CoS, $w$ = 0.5"),
            ("lenience:l=0.5", SERIES[0], "lenience, $\\ell$ = 0.5"),
        ):
            out = rule(spec).induced(target, draft) / target
            right.plot(ratio[order], out[order], "o-", color=colour, label=name)
        right.axhline(2, color=COLOURS["ceiling"], linestyle=(0, (4, 2)), linewidth=0.9, label="ceiling 1/$\\ell$")
        right.axline((1, 1), slope=1, color="0.8", linewidth=0.8, zorder=0, label="out = q")
        right.set(xlabel="q / p of a token", ylabel="out / p", xlim=(0, None), ylim=(0, 2.6))
        right.legend(loc="lower right")
    why = (
        "(a) Where the draft gives a token too little, lenience emits a mixture whose weight on the target is the "
        "rejected mass over TV(p, q): zero while the draft stays below p/l everywhere, then growing with the "
        "divergence. (b) Where it gives too much, the output follows the draft up to the ceiling p/l; CoS goes on "
        "along its straight line. The closed form equals the rule on random pairs. The paper prints no values of this "
        "figure."
    )
    return Finding("explained", why, values, {"lenience": figure})


ITEM = Item("lossy-figure-8", "Interpolation strength and ceiling of lenience", "lossy paper, Figure 8", find)
