"""Lossy paper, Figure 2: what collaborative and truncating rules do to one pair."""

import numpy as np

from fly_theory.divergence import max_ratio, total_variation
from fly_theory.example_pairs import example_pair
from fly_theory.figures import diagram
from fly_theory.registry import rule
from fly_theory.reproduce.item import Compared, Finding, Item
from fly_theory.rules.accept_set import AcceptSetRule

COLLABORATIVE = ("cos:w=0.5", "lenience:l=0.5")
TRUNCATING = ("min-p:base=0.3", "typical:eps=0.09,delta=0.3")


def find() -> Finding:
    """Draw both panels from closed forms, and check what each is to show."""
    p, q = example_pair("smooth").arrays()
    values = []
    for spec in COLLABORATIVE:
        ratio = float(max_ratio(p, rule(spec).induced(p, q)))
        stated = "at most 2" if spec.startswith("lenience") else "no ceiling"
        values.append(Compared(f"{spec}: largest out/p (ceiling p/l)", stated, ratio))
    for spec in TRUNCATING:
        loose = rule(spec)
        assert isinstance(loose, AcceptSetRule)
        allowed = loose.allowed_set(p)
        kept = float(np.sum(q, where=allowed))
        law = np.where(allowed, q / kept, 0)
        distance = float(total_variation(p, loose.induced(p, q)))
        closed_form = kept * float(total_variation(law, p))
        values += [
            Compared(f"{spec}: share of the draft that is kept, q(A)", None, kept),
            Compared(f"{spec}: TV(out, p), ours from the arrays, theirs q(A) TV(q_A, p)", closed_form, distance, 1e-12),
        ]
    why = (
        "The paper's pair is not printed, so the panels are drawn on a pair of the same shape. Each shows what it "
        "does in the paper: CoS is the same mixture everywhere and leaves the ceiling; lenience is cut at p/l; the "
        "truncating rules follow the draft inside the allowed set, the more so the more of the draft the set lets "
        "through."
    )
    figures = {
        "collaborative": diagram(p, q, [rule(spec) for spec in COLLABORATIVE], titles=COLLABORATIVE),
        "truncation": diagram(p, q, [rule(spec) for spec in TRUNCATING], titles=TRUNCATING),
    }
    return Finding("explained", why, values, figures)


ITEM = Item("lossy-figure-2", "Distributions that loose rules induce", "lossy paper, Figure 2", find)
