"""Lossy paper, Figure 4: what truncating the target does to block efficiency, by how draft and target are aligned.

Our construction, since the paper's is not printed. N = 40 candidate tokens of the target have geometrically falling
probabilities. A triplet (m, o, u) of shares says how many of them are of each kind, at ranks drawn at random:

    matching      q(x) = p(x)
    overlapping   q(x) proportional to p(x)^2, with the same total mass: the same ranking, but a sharper draft
    unrelated     q(x) = 0; its mass goes to a twin token that the target never emits

So q sums to one whatever the triplet. Each position of a block draws its ranks anew; its acceptance a averages over
assignments, and block efficiency is (1 - a^(K+1)) / (1 - a) with K = 10.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from fly_theory.closed_form import expected_tokens
from fly_theory.distributions import trusted_inputs
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.rules.base import Rule

RULES = ("truncated-min-p:base=0.1", "truncated-eta:eps=0.02")
CANDIDATES, DECAY, DRAFT_LENGTH = 40, 0.85, 10
ASSIGNMENTS, TENTHS = 128, 10
TRIALS, SEED = 2000, 4

_LEVELS = (-4, -3, -2, -1, -0.5, -0.2, -0.1, 0, 0.1, 0.2, 0.4, 0.6)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Triplet:
    """Shares of matching, overlapping and unrelated candidates, in tenths."""

    matching: int
    overlapping: int
    unrelated: int

    def pairs(self) -> tuple[Floats, Floats]:
        """Target and draft (ASSIGNMENTS, 2 N), one row an assignment of kinds to ranks."""
        rng = np.random.default_rng(SEED)
        falling = DECAY ** np.arange(CANDIDATES)
        falling /= falling.sum()
        kinds = np.repeat([0, 1, 2], np.array([self.matching, self.overlapping, self.unrelated]) * CANDIDATES // TENTHS)
        p, q = np.zeros((2, ASSIGNMENTS, 2 * CANDIDATES))
        p[:, :CANDIDATES] = falling
        for row in q:
            assigned = rng.permutation(kinds)
            row[:CANDIDATES] = np.where(assigned == 2, 0, falling)
            row[CANDIDATES:] = np.where(assigned == 2, falling, 0)
            sharper = np.where(assigned == 1, falling**2, 0)
            if self.overlapping:
                sharper *= falling[assigned == 1].sum() / sharper.sum()
                row[:CANDIDATES] = np.where(assigned == 1, sharper, row[:CANDIDATES])
        return p, q


def efficiency(loose: Rule, p: Floats, q: Floats) -> float:
    """Block efficiency in closed form."""
    with trusted_inputs():
        return float(expected_tokens(float(np.mean(loose.acceptance(p, q))), DRAFT_LENGTH))


def change(spec: str, triplet: Triplet) -> float:
    """Block efficiency with the truncated target less that with the target itself."""
    p, q = triplet.pairs()
    return efficiency(rule(spec), p, q) - efficiency(rule("lossless"), p, q)


def simulated_change(spec: str, triplet: Triplet) -> tuple[float, float]:
    """The same from TRIALS blocks of drawn tokens, and its standard error; both rules see the same draws."""
    p, q = triplet.pairs()
    rng = np.random.default_rng(SEED)
    assignment = rng.integers(ASSIGNMENTS, size=TRIALS * DRAFT_LENGTH)
    cumulative = np.cumsum(q, axis=-1)[assignment]
    drawn = rng.random((len(assignment), 1)) * cumulative[:, -1:]
    tokens = (cumulative <= drawn).sum(axis=-1)
    coins = rng.random(len(assignment))
    lengths = []
    for loose in (rule(spec), rule("lossless")):
        with trusted_inputs():
            keep = loose.verdict(p, q).accepted[assignment, tokens] / q[assignment, tokens]
        kept = np.cumprod((coins < keep).reshape(TRIALS, DRAFT_LENGTH), axis=-1).sum(axis=-1)
        lengths.append(kept)
    differences = lengths[0] - lengths[1]
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(TRIALS))


def simplex() -> list[Triplet]:
    """All triplets in tenths."""
    return [Triplet(TENTHS - o - u, o, u) for o in range(TENTHS + 1) for u in range(TENTHS + 1 - o)]


def find() -> Finding:
    """Sweep the simplex in closed form, and simulate along three of its lines."""
    triplets = simplex()
    swept = {spec: [change(spec, triplet) for triplet in triplets] for spec in RULES}
    values = []
    with style():
        figure = new_figure(TWO_COLUMNS, 4.8)
        axes: Any = figure.subplots(2, 2)
        for column, spec in enumerate(RULES):
            axes[0, column].set_title(spec, loc="left")
            shown = _draw_simplex(axes[0, column], triplets, swept[spec])
            values += _draw_lines(axes[1, column], spec, dict(zip(triplets, swept[spec], strict=True)))
        bar = figure.colorbar(shown, ax=list(axes[0]), location="bottom", aspect=50, spacing="uniform")
        bar.set_label("change of block efficiency")
        axes[1, 0].set_ylabel("change of block efficiency")
        axes[1, 0].legend(loc="lower right")
    why = (
        "Truncation multiplies the target inside the allowed set by 1/p(A) and removes it outside. A matching "
        "candidate can only lose by that, an unrelated one does neither, and an overlapping one gains where the draft "
        "gives it more than the target does: the change is negative at the matching corner, zero at the unrelated one "
        "and largest at the overlapping one. The paper's own pairs are not printed; the construction is stated in the "
        f"source. Points are {TRIALS} simulated blocks, and agree with the closed form within four standard errors."
    )
    return Finding("explained", why, values, {"alignment": figure})


def _draw_simplex(ax: Axes, triplets: list[Triplet], changes: list[float]) -> Any:
    x = [(t.overlapping + t.unrelated / 2) / TENTHS for t in triplets]
    y = [t.unrelated / TENTHS for t in triplets]
    shown = ax.tricontourf(x, y, changes, levels=_LEVELS, cmap="PuOr", norm=TwoSlopeNorm(0, _LEVELS[0], _LEVELS[-1]))
    ax.tricontour(x, y, changes, levels=[0], colors="black", linewidths=0.8)
    ax.scatter(x, y, s=2, color="0.4", linewidths=0)
    ax.set(xticks=[], yticks=[], aspect=0.87)
    ax.spines[:].set_visible(False)
    for name, at, offset, align in (
        ("matching", (0, 0), (0, -9), "center"),
        ("overlapping", (1, 0), (0, -9), "center"),
        ("unrelated", (0.5, 1), (6, -4), "left"),
    ):
        ax.annotate(name, at, xytext=offset, textcoords="offset points", ha=align, fontsize=7)
    return shown


def _draw_lines(ax: Axes, spec: str, changes: dict[Triplet, float]) -> list[Compared]:
    values = []
    ax.axhline(0, color="0.6", linewidth=0.8)
    for unrelated, colour in zip((0, 2, 5), SERIES, strict=False):
        line = [t for t in changes if t.unrelated == unrelated]
        shares = [t.overlapping / TENTHS for t in line]
        ax.plot(shares, [changes[t] for t in line], color=colour, label=f"unrelated {unrelated / TENTHS:g}")
        for triplet in line[:: max(1, len(line) // 2)]:
            estimate, error = simulated_change(spec, triplet)
            ax.errorbar(
                triplet.overlapping / TENTHS, estimate, 2 * error, fmt="o", color=colour, markersize=3, elinewidth=0.8
            )
            where = f"({triplet.matching}, {triplet.overlapping}, {triplet.unrelated})/10"
            values.append(
                Compared(f"{spec}, {where}: simulated against closed form", changes[triplet], estimate, 4 * error)
            )
    ax.set(xlabel="share of overlapping candidates", xlim=(-0.03, 1.03))
    return values


ITEM = Item("lossy-figure-4", "When truncating the target helps the draft", "lossy paper, Figure 4", find)
