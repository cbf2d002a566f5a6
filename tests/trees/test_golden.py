"""The golden values of tree verifiers on the base pair, as fractions where the rule can be read exactly."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.trees import optimal_acceptance, position_law, transport_acceptance
from fly_theory.trees.k_seq import smallest_rho

P, Q = ft.exact(["1/2", "3/10", "3/20", "1/20"]), ft.exact(["1/5", "1/10", "3/10", "2/5"])
FLOATS = [np.asarray(x, dtype=float) for x in (P, Q)]


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


@pytest.mark.parametrize(("drafts", "acceptance", "rho"), [(2, 0.6719, 1.573), (3, 0.7865, 1.955)])
def test_k_seq(drafts, acceptance, rho):
    law = position_law(ft.tree_rule("k-seq"), *FLOATS, drafts, drawing="with-replacement")
    assert float(law.acceptance) == pytest.approx(acceptance, abs=5e-5)
    assert float(smallest_rho(*FLOATS, drafts)) == pytest.approx(rho, abs=5e-4)
    assert np.allclose(law.induced, FLOATS[0], atol=1e-12)


@pytest.mark.parametrize(
    ("drafts", "drawing", "optimum"),
    [
        (2, "with-replacement", Fraction(71, 100)),
        (3, "with-replacement", Fraction(857, 1000)),
        (2, "without-replacement", Fraction(29, 35)),
        (3, "without-replacement", Fraction(1)),
        (3, "deterministic", Fraction(7, 10)),
    ],
)
def test_optimum(drafts, drawing, optimum):
    assert optimal_acceptance(P, Q, drafts, drawing=drawing).item() == optimum
    assert transport_acceptance(*FLOATS, drafts, drawing=drawing) == pytest.approx(float(optimum), abs=1e-9)


@pytest.mark.parametrize(("drafts", "tv"), [(1, "0.21"), (2, "0.294"), (4, "0.34104")])
def test_accept_set_forgets_the_target(drafts, tv):
    law = position_law(ft.tree_rule("min-p:base=0.25"), P, Q, drafts, drawing="with-replacement")
    assert ft.divergence.total_variation(P, law.induced).item() == Fraction(tv)


def test_top_two_of_the_eagle_issue():
    p, drawn = ft.exact(["6/10", "2/10", "1/10", "1/10"]), ft.exact(["5/10", "4/10", "1/20", "1/20"])
    law = position_law(ft.tree_rule("lossless"), p, drawn, 2, drawing="deterministic")
    assert law.accepted.tolist() == [Fraction(6, 10), Fraction(2, 10), 0, 0]
    assert law.induced.tolist() == p.tolist()
