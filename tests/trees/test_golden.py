"""The golden values of tree verifiers on the base pair, as fractions where the rule can be read exactly."""

from fractions import Fraction

import pytest

import fly_theory as ft
from fly_theory.trees import position_law

P, Q = ft.exact(["1/2", "3/10", "3/20", "1/20"]), ft.exact(["1/5", "1/10", "3/10", "2/5"])


@pytest.mark.parametrize(
    ("drafts", "drawing", "acceptance"),
    [
        (1, "with-replacement", Fraction(1, 2)),
        (2, "with-replacement", Fraction(13, 20)),
        (3, "with-replacement", Fraction(151, 200)),
        (2, "without-replacement", Fraction(207, 280)),
        (3, "without-replacement", Fraction(29, 30)),
        (1, "deterministic", Fraction(1, 20)),
        (2, "deterministic", Fraction(1, 5)),
        (3, "deterministic", Fraction(7, 10)),
    ],
)
def test_recursive_rejection(drafts, drawing, acceptance):
    law = position_law(ft.tree_rule("lossless"), P, Q, drafts, drawing=drawing)
    assert law.acceptance.item() == acceptance
    assert law.induced.tolist() == P.tolist()


@pytest.mark.parametrize(("drafts", "tv"), [(1, "0.21"), (2, "0.294"), (4, "0.34104")])
def test_accept_set_forgets_the_target(drafts, tv):
    law = position_law(ft.tree_rule("min-p:base=0.25"), P, Q, drafts, drawing="with-replacement")
    assert ft.divergence.total_variation(P, law.induced).item() == Fraction(tv)
