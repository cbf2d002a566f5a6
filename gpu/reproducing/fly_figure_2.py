"""FLy, Figure 2: the pipeline, drawn on a real block."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fly_theory.blocks import Block
from fly_theory.blocks.fly import DeferredWindow, FlyTrace
from fly_theory.entropies import normalised_entropy
from fly_theory.figures import COLOURS, TWO_COLUMNS, new_figure, style
from fly_theory.figures.style import LABEL_FONTS, drawable
from fly_theory.registry import block_rule
from fly_theory.reproduce.item import Compared, Finding, Item
from gpu.reproducing.real_traces import block_of, greedy_trace, read_off

if TYPE_CHECKING:
    from gpu.trace import Trace

__all__ = ["ITEM", "decision_trace"]

_THETA, _WINDOW, _DRAFT_LENGTH = 0.3, 4, 15
_STEPS = {3: "1 draft", 2: "1 target", 1: "2 gate", 0: "3 window", -1: "4 written"}


def find() -> Finding:
    """Draw the block of a greedy trace in which most of the pipeline happens."""
    return read_off(greedy_trace, drawn)


def drawn(trace: "Trace") -> Finding:
    """The block with the most kinds of decisions at its mismatches, and of those the most kept ones."""
    rule = block_rule(f"fly:theta={_THETA},window={_WINDOW}")
    length = min(_DRAFT_LENGTH, trace.draft_length)
    blocks = [block_of(captured, length) for captured in trace]
    decided = [rule.trace(block) for block in blocks]
    shown = max(range(len(blocks)), key=lambda i: (len(_kinds(decided[i])), int(decided[i].kept.sum())))
    block, traced = blocks[shown], decided[shown]
    drafts = [trace.decode([int(token)]) for token in block.tokens]
    targets = [trace.decode([int(token)]) for token in block.target.argmax(axis=-1)]
    values = [
        Compared("mismatches in the block", None, int((~traced.match).sum())),
        Compared("of them with an open gate", None, int((~traced.match & traced.gate).sum())),
        Compared("of these with a clear window", None, int((traced.verdict & ~traced.match).sum())),
        Compared("tokens written", None, 1 + int(traced.kept.sum())),
    ]
    why = (
        f"The four steps of the published figure on block {shown} of a greedy trace of SmolLM2-135M-Instruct and the "
        f"same model less one layer, under {rule.spec}: draft against target, entropy gate, deferred window, and what "
        "is written. The first mismatch that fails ends the round; later ones are judged all the same in the figure."
    )
    return Finding("explained", why, values, {"pipeline": decision_trace(rule, block, drafts, targets)})


def _kinds(traced: FlyTrace) -> set[tuple[bool, bool]]:
    """What happens at the mismatches: whether the gate is open, and if so whether the window is clear."""
    missed = np.flatnonzero(~traced.match)
    return {(bool(traced.gate[j]), bool(traced.verdict[j])) for j in missed}


def decision_trace(rule: DeferredWindow, block: Block, drafts: Sequence[str], targets: Sequence[str]) -> Figure:
    """Draw a block step by step: draft and target tokens, the gate and the window at mismatches, what is written."""
    traced, entropy = rule.trace(block), normalised_entropy(block.judging)
    last = int(traced.kept.sum())
    with style():
        figure = new_figure(TWO_COLUMNS, 1.7)
        ax = figure.subplots()
        for j in range(block.draft_length):
            match, kept = bool(traced.match[j]), j < last
            faded = 1.0 if j <= last else 0.45
            _box(ax, j, 3, COLOURS["draft"], 0.25 if match else 0.9, faded)
            _write(ax, j, 3, drafts[j], alpha=faded)
            _box(ax, j, 2, COLOURS["target"], 0.18 if match else 0.55, faded)
            _write(ax, j, 2, targets[j], alpha=faded)
            if not match:
                opened = bool(traced.gate[j])
                _write(ax, j, 1, f"{abs(entropy[j]):.2f} {'≥' if opened else '<'} θ", alpha=faded)
                _write(ax, j, 0, _window(traced, j) if opened else "–", alpha=faded)
            if kept:
                _box(ax, j, -1, COLOURS["target"] if match else COLOURS["draft"], 0.25 if match else 0.9, 1)
                _write(ax, j, -1, drafts[j])
        _box(ax, last, -1, COLOURS["target"], 0.55, 1)
        _write(ax, last, -1, targets[last])
        for y, name in _STEPS.items():
            ax.text(-0.65, y, name, ha="right", va="center", fontsize=7)
        ax.set(xlim=(-2.0, block.draft_length + 0.1), ylim=(-1.55, 3.55), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    return figure


def _window(traced: FlyTrace, j: int) -> str:
    if not traced.boundary[j]:
        return "too late"
    return "clear" if traced.window[j] else "not clear"


def _box(ax: Axes, x: float, y: float, colour: str, strength: float, faded: float) -> None:
    ax.bar(x, 0.8, 0.96, bottom=y - 0.4, color=colour, alpha=strength * faded, linewidth=0)


def _write(ax: Axes, x: float, y: float, token: str, **settings: Any) -> None:
    shown = token.replace("\n", "↵").strip() or "␣"
    shown = shown if drawable(shown) else "?"
    size = min(6.5, 52 / len(shown))
    ax.text(
        x, y, shown, ha="center", va="center", family=list(LABEL_FONTS), fontsize=size, parse_math=False, **settings
    )


ITEM = Item("fly-figure-2", "The pipeline of FLy on a real block", "FLy, Figure 2", find)
