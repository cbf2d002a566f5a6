"""Finding: hierarchical verification with its running cap is block verification, and its other caps are lossy."""

import numpy as np

from fly_theory.blocks import tokenwise
from fly_theory.figures import SERIES, TWO_COLUMNS, new_figure, style
from fly_theory.joint_law import expected_lengths, joint_law, target_law
from fly_theory.pairs import MarkovPair
from fly_theory.registry import block_rule, rule
from fly_theory.reproduce.item import Compared, Finding, Item

NAMES = ("token", "block", "hierarchical", "hierarchical-naive", "hierarchical-mincap", "hierarchical-uncapped")
PAIRS, VOCABULARY, DRAFT_LENGTH, LENGTH, SEED = 12, 3, 3, 4, 9


def find() -> Finding:
    """Exact lengths and joint laws of all variants on random Markov pairs."""
    rng = np.random.default_rng(SEED)
    pairs = [
        MarkovPair(target, draft, start=np.full(VOCABULARY, 1 / VOCABULARY))
        for target, draft in rng.dirichlet(np.ones(VOCABULARY), size=(PAIRS, 2, VOCABULARY))
    ]
    rules = {name: tokenwise(rule("lossless")) if name == "token" else block_rule(name) for name in NAMES}
    lengths = {name: [expected_lengths(r, pair, DRAFT_LENGTH) for pair in pairs] for name, r in rules.items()}
    kept = {name: float(np.mean([found.kept for found in lengths[name]])) for name in NAMES}
    distance = {
        name: max(
            float(abs(joint_law(r, pair, DRAFT_LENGTH, LENGTH) - target_law(pair, LENGTH)).sum() / 2) for pair in pairs
        )
        for name, r in rules.items()
    }
    apart = max(float(abs(a.law - b.law).max()) for a, b in zip(lengths["block"], lengths["hierarchical"], strict=True))
    values = [Compared("hierarchical and block: largest distance of length laws", 0.0, apart, 1e-12)]
    values += [Compared(f"{name}: drafts kept, mean of {PAIRS} pairs", None, kept[name]) for name in NAMES]
    for name in NAMES:
        lossless = name not in ("hierarchical-mincap", "hierarchical-uncapped")
        what = f"{name}: largest TV of {LENGTH} tokens to the target"
        values.append(Compared(what, 0.0 if lossless else None, distance[name], 1e-12 if lossless else None))
    with style():
        figure = new_figure(TWO_COLUMNS, 2.0)
        left, right = figure.subplots(1, 2, sharey=True)
        places = np.arange(len(NAMES))[::-1]
        left.barh(places, [kept[name] for name in NAMES], color=SERIES[0])
        right.barh(places, [distance[name] for name in NAMES], color=SERIES[1])
        left.set_yticks(places, NAMES)
        left.set(xlabel=f"draft tokens kept of {DRAFT_LENGTH}")
        right.set(xlabel=f"largest TV of {LENGTH} tokens to the target")
    why = (
        "The prefix factor of hierarchical verification (arXiv 2601.05724) with its running cap is the b of block "
        "verification (arXiv 2403.10444), so kept lengths and residuals coincide, although longer blocks are reported "
        "for it. The variants that do keep more are lossy, or pay with one target call for each redrawn token."
    )
    return Finding("explained", why, values, {"variants": figure})


ITEM = Item(
    "hierarchical-is-block", "Hierarchical is block verification", "finding; arXiv 2601.05724, 2403.10444", find
)
