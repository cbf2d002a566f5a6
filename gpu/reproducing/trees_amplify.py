"""Lossy paper, Table 7 on captured trees: what accept-set rules cost with a single draft and on EAGLE-style trees."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fly_theory import published
from fly_theory.distributions import softmax, trusted_inputs
from fly_theory.divergence import total_variation
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.reproduce.lossy_table_7 import draw_gaps
from fly_theory.trees import accept_set_law
from gpu.reproducing.lossy_tradeoffs import RULES
from gpu.reproducing.real_traces import read_off, tree_trace

if TYPE_CHECKING:
    from gpu.trace import TreeTrace

__all__ = ["ITEM", "FirstPosition", "first_positions", "specs"]

# A pair of Table 7: the label of its accept-set rule in `RULES`, and the method of Table 5 whose parameters it takes.
PAIRS = {
    "SpecCascade - Min-p sampling": ("SpecCascade", "SpecCascade"),
    "Typical acceptance - eta-sampling": ("typical", "Typical Sampling"),
}
CANDIDATES = (1, 2, 4, 8)


class FirstPosition(NamedTuple):
    """Mean TV to the target at the first position, over contexts and settings.

    drawn, top : by number of candidates, drawn from q with replacement, and the most probable of q in order
    matched : of the target truncated to the allowed set, which is what the rule is compared with
    """

    drawn: tuple[float, ...]
    top: tuple[float, ...]
    matched: float


def specs(pair: str) -> list[str]:
    """The accept-set rule of a pair at the parameters of Table 5."""
    label, method = PAIRS[pair]
    rows = published.table("lossy_table5_eagle3")
    parameters = sorted({row["parameter"] for row in rows if row["method"] == method})
    return [f"{RULES[label]}={parameter:g}" for parameter in parameters]


def find() -> Finding:
    """Replay both accept-set rules of Table 7 on captured trees, beside a single draft in the same contexts."""
    return read_off(tree_trace, replayed)


def replayed(trace: "TreeTrace") -> Finding:
    """TV at the first position by kind and number of candidates, and tokens per call on whole trees."""
    import gpu

    found = {pair: first_positions(trace, specs(pair)) for pair in PAIRS}
    on_trees = gpu.replay(trace, [spec for pair in PAIRS for spec in specs(pair)])
    table = {
        (row["pair"], row["framework"]): row
        for row in published.table("lossy_table7_matched_gap")
        if row["benchmark"] == "Avg"
    }
    values = []
    for pair, at in found.items():
        single, tree = (table[pair, framework] for framework in ("single-draft", "EAGLE-3"))
        points = [f"{row['delta_accuracy_pp']:+.2f} points of accuracy to its matched target" for row in (single, tree)]
        longer = [
            on_trees[spec]["tokens_per_call"].mean - on_trees[spec].baseline["tokens_per_call"].mean
            for spec in specs(pair)
        ]
        values += [
            Compared(f"{pair}: TV(p, out), single draft", points[0], at.drawn[0]),
            Compared(f"{pair}: TV(p, out), {CANDIDATES[-1]} independent drafts", None, at.drawn[-1]),
            Compared(f"{pair}: TV(p, out), the draft's most probable token alone", None, at.top[0]),
            Compared(f"{pair}: TV(p, out), its {CANDIDATES[-1]} most probable, as in a tree", points[1], at.top[-1]),
            Compared(f"{pair}: TV(p, p_A) of the matched target", None, at.matched),
            Compared(
                f"{pair}: tokens per call beyond its matched target, on trees",
                tree["delta_block_efficiency"],
                float(np.mean(longer)),
            ),
        ]
    cascade, typical = found.values()
    why = (
        f"{len(trace)} trees of {trace.nodes} nodes from SmolLM2-135M-Instruct and the same model less one layer; "
        "means over the five settings of Table 5. Candidates in a tree are not drawn but the draft's most probable "
        "tokens, so the output collapses to the first that is allowed: at the first position TV(p, out) is "
        f"{cascade.drawn[0]:.2f} and {typical.drawn[0]:.2f} with a single draft, and {cascade.top[-1]:.2f} and "
        f"{typical.top[-1]:.2f} on the trees, while the matched targets stay at {cascade.matched:.2f} and "
        f"{typical.matched:.2f} whatever is drafted. Number and kind of the candidates have their parts in it: the "
        f"most probable token alone gives {cascade.top[0]:.2f} and {typical.top[0]:.2f}, {CANDIDATES[-1]} independent "
        f"drafts {cascade.drawn[-1]:.2f} and {typical.drawn[-1]:.2f}. The paper's accuracy gaps grow from single "
        "drafts to EAGLE-3 in the same direction; TV is no accuracy, and our pair is a far smaller one."
    )
    return Finding("explained", why, values, {"candidates": _figure(found)})


def first_positions(trace: "TreeTrace", chosen: list[str]) -> FirstPosition:
    """The means over the roots of the trees, and over the rules chosen."""
    drawn, top, matched = [], [], []
    for tree in trace:
        p, q = (softmax(rows[0].double().numpy()) for rows in (tree.target_logits, tree.draft_logits))
        with trusted_inputs():
            for each in map(rule, chosen):
                laws = {
                    drawing: [accept_set_law(each, p, q, n, drawing=drawing) for n in CANDIDATES]
                    for drawing in ("with-replacement", "deterministic")
                }
                drawn.append([total_variation(p, law) for law in laws["with-replacement"]])
                top.append([total_variation(p, law) for law in laws["deterministic"]])
                matched.append(total_variation(p, each.matched_target(p)))
    means = (tuple(np.mean(rows, axis=0).tolist()) for rows in (drawn, top))
    return FirstPosition(*means, float(np.mean(matched)))


def _figure(found: Mapping[str, FirstPosition]) -> Figure:
    with style():
        figure = new_figure(TWO_COLUMNS, 2.6)
        ours, theirs = figure.subplots(1, 2, width_ratios=(1.2, 1))
        for colour, (pair, at) in zip(SERIES, found.items(), strict=False):
            name, target = pair.split(" - ")
            ours.plot(CANDIDATES, at.top, "o-", color=colour, label=f"{name}, top $n$ (tree)")
            ours.plot(CANDIDATES, at.drawn, "s--", color=colour, markersize=3.5, label=f"{name}, $n$ drawn")
            ours.axhline(at.matched, color=colour, linewidth=0.8, linestyle=":", label=f"{target} (matched)")
        ours.set_xscale("log", base=2)
        ours.set_xticks(CANDIDATES, [str(n) for n in CANDIDATES])
        ours.set(xlabel="candidates $n$ for the first position", ylabel="TV(p, out)", ylim=(0, 1))
        ours.set_title("our small pair, mean of five settings")
        ours.legend(loc="upper left", fontsize=6, ncols=2)
        draw_gaps(theirs)
    return figure


ITEM = Item("trees-amplify-trace", "Candidates multiply the loss, on captured trees", "lossy paper, Table 7", find)
