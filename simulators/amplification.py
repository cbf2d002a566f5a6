"""Figure: several drafts a position multiply what lossy rules do to the target, beside the published gaps."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import fly_theory as ft
from fly_theory.divergence import total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures.style import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.reproduce.lossy_table_7 import draw_gaps
from fly_theory.trees import TreeRule, amplify, branching, position_law
from simulators.estimates import Counts
from simulators.rules import simulate

__all__ = ["amplification_figure"]

_RULES = ("min-p:base=0.25", "min-p:base=0.5", "lenience:l=0.5", "threshold-walk:single=0.5,acc=0.75", "lossless")
_DRAFTS = (1, 2, 3, 4, 5, 6)
_SIMULATED = (1, 4)
_DEPTHS = (1, 2, 3, 4)
_TEXT = 4


def amplification_figure(*, trials: int = 100_000, seed: int = 0) -> Figure:
    """Four panels: TV by candidates, TV by depth, the collapse of top-k candidates, and Table 7 of the published gaps.

    The first three are exact on the golden pair; in the first, open circles are simulations of `trials` rounds. The
    last is as printed in the paper: accuracy of an accept-set rule minus that of its matched truncated target, with a
    single draft and with the trees of EAGLE-3.

    Raises
    ------
    InvalidInput
        For trials or a seed outside what simulations take.
    """
    p, q = example_pair("golden").arrays()
    with style():
        drawn = new_figure(TWO_COLUMNS, 4.6)
        by_drafts, by_depth, top_k, gaps = drawn.subplots(2, 2).flat
        _draw_by_drafts(by_drafts, p, q, trials, seed)
        _draw_by_depth(by_depth, p, q)
        _draw_top_k(top_k, p, q)
        draw_gaps(gaps)
    return drawn


def _draw_by_drafts(axes: Axes, p: np.ndarray, q: np.ndarray, trials: int, seed: int) -> None:
    for colour, spec in zip(SERIES, _RULES, strict=False):
        rule = ft.tree_rule(spec)
        exact = [total_variation(p, _law(rule, p, q, drafts)) for drafts in _DRAFTS]
        axes.plot(_DRAFTS, exact, color=colour, label=spec)
        seen = [_simulated(rule, p, q, drafts, trials, seed) for drafts in _SIMULATED]
        axes.plot(_SIMULATED, seen, "o", markersize=5, fillstyle="none", color=colour)
    axes.plot([], [], "o", markersize=5, fillstyle="none", color="black", label="simulated")
    axes.set_title("candidates drawn with replacement, one position")
    axes.set_xlabel("candidates $n$")
    axes.set_ylabel("TV(out, $p$)")
    axes.set_ylim(-0.01, 0.48)
    axes.legend(ncols=2, loc="upper left", fontsize=6)


def _law(rule: TreeRule, p: np.ndarray, q: np.ndarray, drafts: int) -> np.ndarray:
    return position_law(rule, p, q, drafts, drawing="with-replacement").induced


def _simulated(rule: TreeRule, p: np.ndarray, q: np.ndarray, drafts: int, trials: int, seed: int) -> float:
    found = simulate(rule, (p, q), trials, seed, parents=branching([drafts]))
    first: Counts = found.counts["first token"]
    return float(total_variation(p, first / first.sum()))


def _draw_by_depth(axes: Axes, p: np.ndarray, q: np.ndarray) -> None:
    rule = ft.tree_rule(_RULES[0])
    for colour, drafts in zip(SERIES, (1, 2, 4), strict=False):
        found = [
            amplify(rule, p, q, drafts=drafts, drawing="with-replacement", depth=depth, length=_TEXT)
            for depth in _DEPTHS
        ]
        axes.plot(_DEPTHS, [x.to_target for x in found], "o-", color=colour, label=f"$n$ = {drafts}, to $p$")
        axes.plot(_DEPTHS, [x.to_matched for x in found], ":", color=colour, label=f"$n$ = {drafts}, to $p_A$")
    axes.set_title(f"{_RULES[0]}, texts of {_TEXT} tokens")
    axes.set_xlabel("depth of the tree")
    axes.set_ylabel("TV of the text")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, 1)
    axes.legend(ncols=3, loc="lower right", fontsize=6)


def _draw_top_k(axes: Axes, p: np.ndarray, q: np.ndarray) -> None:
    """Output laws of the accept-set rule, against those of lossless verification, with the draft's top k."""
    rule, tokens = ft.tree_rule(_RULES[0]), np.arange(len(p))
    laws = {"target $p$": p}
    for k in (1, 2, 3):
        laws[f"top {k}"] = position_law(rule, p, q, k, drawing="deterministic").induced
    width = 0.8 / len(laws)
    for i, (name, law) in enumerate(laws.items()):
        axes.bar(tokens + (i - (len(laws) - 1) / 2) * width, law, width, color=SERIES[i], label=name)
    axes.set_title(f"{_RULES[0]}, the draft's top $k$")
    axes.set_xticks(tokens, [f"{token}\n$q$ = {q[token]:g}" for token in tokens])
    axes.set_ylabel("probability")
    axes.legend(fontsize=6)
