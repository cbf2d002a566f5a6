"""Finding: candidates multiply what an allowed-set rule does to the target."""

import numpy as np

from fly_theory.divergence import total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures import ONE_COLUMN, SERIES, new_figure, style
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.rules.accept_set import AcceptSetRule
from fly_theory.trees import position_law, siblingwise

SPECS = ("min-p:base=0.5", "typical:eps=0.09,delta=0.3")
CANDIDATES = 8
ENUMERATED = 4


def closed_form(spec: str, pair: str, candidates: int) -> float:
    """(1 - (1 - q(A))^n) TV(q_A, p): TV to the target when n candidates drawn from q are tried in turn."""
    p, q = example_pair(pair).arrays()
    loose = rule(spec)
    assert isinstance(loose, AcceptSetRule)
    allowed = loose.allowed_set(p)
    kept = float(np.sum(q, where=allowed))
    return (1 - (1 - kept) ** candidates) * float(total_variation(p, np.where(allowed, q / kept, 0)))


def find() -> Finding:
    """Hold the closed form against exact enumeration, and draw it for more candidates and more tokens."""
    p, q = example_pair("golden").arrays()
    values = []
    for spec in SPECS:
        for n in range(1, ENUMERATED + 1):
            law = position_law(siblingwise(rule(spec)), p, q, n, drawing="with-replacement")
            ours = float(total_variation(p, law.induced))
            values.append(
                Compared(
                    f"{spec}, {n} candidates: TV, closed form beside enumeration",
                    closed_form(spec, "golden", n),
                    ours,
                    1e-12,
                )
            )
    lossless = position_law(siblingwise(rule("lossless")), p, q, ENUMERATED, drawing="with-replacement")
    values.append(
        Compared(f"lossless, {ENUMERATED} candidates: TV", 0.0, float(total_variation(p, lossless.induced)), 1e-12)
    )
    with style():
        figure = new_figure(ONE_COLUMN, 2.3)
        ax = figure.subplots()
        numbers = range(1, CANDIDATES + 1)
        for spec, colour in zip(SPECS, SERIES, strict=False):
            for pair, line in (("golden", "o-"), ("smooth", "s--")):
                distances = [closed_form(spec, pair, n) for n in numbers]
                ax.plot(numbers, distances, line, color=colour, label=f"{spec.partition(':')[0]}, {pair} pair")
        ax.set(xlabel="candidates a position", ylabel="TV(out, p)", ylim=(0, None))
        ax.legend(loc="lower right")
    why = (
        "Each further candidate is another chance for the draft to be allowed, and the target speaks only when all "
        "fail: TV(out, p) = (1 - (1 - q(A))^n) TV(q_A, p) grows with n to the distance of the truncated draft. It is "
        "one reason why the lossy paper's gaps grow with EAGLE-3's trees (Table 7). Lossless siblings stay lossless."
    )
    return Finding("explained", why, values, {"candidates": figure})


ITEM = Item("trees-amplify", "Candidates multiply the loss of allowed sets", "finding; lossy paper, Table 7", find)
