"""Walks do at one position, in exact fractions, what the naive oracle says."""

from fractions import Fraction

import pytest

import fly_theory as ft
from fly_theory.trees import DRAWINGS, position_law
from tests.oracle import trees as oracle

CASES = {
    "lossless": (oracle.recursive, {}),
    "lenience:l=1/2": (oracle.recursive, {"l": Fraction(1, 2)}),
    "min-p:base=1/4": (oracle.min_p, {"base": Fraction(1, 4)}),
    "threshold-walk:single=1,acc=1": (oracle.thresholds, {"single": 1, "acc": 1}),
    "threshold-walk:single=1/2,acc=3/4": (oracle.thresholds, {"single": Fraction(1, 2), "acc": Fraction(3, 4)}),
}


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("spec", CASES)
def test_positions_equal_the_oracle(spec, drawing):
    verifier, settings = CASES[spec]
    for seed in range(4):
        pair = ft.ContextTreePair.random(4, 0, seed, exact=True)
        p, q = pair.target[0], pair.draft[0]
        for drafts in (1, 2, 3):
            law = position_law(ft.tree_rule(spec), p, q, drafts, drawing=drawing)
            accepted, redrawn = oracle.position_law(verifier, p.tolist(), q.tolist(), drafts, drawing, **settings)
            assert law.accepted.tolist() == accepted
            assert law.redrawn.tolist() == redrawn


def test_one_candidate_is_the_token_rule():
    pair = ft.ContextTreePair.random(5, 0, 3, exact=True)
    p, q = pair.target[0], pair.draft[0]
    for spec in ("lossless", "lenience:l=1/2", "min-p:base=1/4", "sample-match:n=1", "threshold:single=1/2,acc=3/4"):
        law = position_law(ft.tree_rule(spec), p, q, 1, drawing="with-replacement")
        assert law.induced.tolist() == ft.rule(spec).induced(p, q).tolist()
        assert law.acceptance.item() == ft.rule(spec).acceptance(p, q).item()
    both = [
        position_law(ft.tree_rule(f"{name}:single=1/2,acc=3/4"), p, q, 1, drawing="with-replacement").induced.tolist()
        for name in ("threshold", "threshold-walk")
    ]
    assert both[0] == both[1]
