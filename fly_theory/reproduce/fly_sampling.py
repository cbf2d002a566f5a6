"""Finding: FLy as released is lossy at temperature > 0 before it forgives anything."""

from dataclasses import replace

import numpy as np

from fly_theory.blocks.fly_released import FlyReleased
from fly_theory.figures import ONE_COLUMN, SERIES, new_figure, style
from fly_theory.joint_law import joint_law, target_law
from fly_theory.pairs import MarkovPair
from fly_theory.reproduce.item import Compared, Finding, Item

SHUT = FlyReleased(theta=1.1, window=6, temperature=1)
DRAFT_LENGTH = 3


def distance(rule: FlyReleased, probability: float, length: int) -> float:
    """TV of `length` tokens to the target, when the target gives its likelier token this probability throughout."""
    row = [probability, 1 - probability]
    pair = MarkovPair([row, row], [[1.0, 0.0], [1.0, 0.0]], start=[1, 0])
    return float(abs(joint_law(rule, pair, DRAFT_LENGTH, length) - target_law(pair, length)).sum() / 2)


def find() -> Finding:
    """Compare the exact law of the released code, gate shut, with the closed form p (1 - p)."""
    at = np.linspace(0.5, 1, 11)
    values = [
        Compared(
            f"p(d) = {p:.2f}: TV of one token, closed form beside exact law", p * (1 - p), distance(SHUT, p, 1), 1e-12
        )
        for p in at
    ]
    single = replace(SHUT, samples=1)
    worst = max(distance(single, p, length) for p in at for length in (1, 4))
    values.append(Compared("one draw instead of two: largest TV", 0.0, worst, 1e-12))
    with style():
        figure = new_figure(ONE_COLUMN, 2.3)
        ax = figure.subplots()
        grid = np.linspace(0.5, 1, 101)
        ax.plot(grid, grid * (1 - grid), color=SERIES[0], label="$p(d)\\,(1 - p(d))$, one token")
        for length, colour in ((1, SERIES[0]), (2, SERIES[1]), (4, SERIES[2])):
            distances = [distance(SHUT, p, length) for p in at]
            ax.plot(at, distances, "o", color=colour, label=f"exact, {length} token{'s' if length > 1 else ''}")
        ax.set(xlabel="target probability of the greedy draft, $p(d)$", ylabel="TV to the target", ylim=(0, None))
        ax.legend(loc="lower left")
    why = (
        "At temperature > 0 the released code drafts greedily, draws two tokens from the target at each position and "
        "counts the draft a match if either equals it. With the gate shut it emits the draft with probability 1 - (1 "
        "- p)^2 instead of p: TV = p (1 - p), up to 1/4 a token, and a ratio of 2 - p. With one draw it is lossless."
    )
    return Finding("explained", why, values, {"two-draws": figure})


ITEM = Item(
    "fly-sampling", "Released FLy samples with a bias", "finding; released code of FLy at temperature > 0", find
)
