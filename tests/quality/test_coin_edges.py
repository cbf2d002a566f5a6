"""Uniforms at the ends of their interval and on grids, residuals without mass."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from tests.quality.verifiers import first_rejection, fractions, ratio_test, residual

inclusive = first_rejection(lambda p, q, x, rng: rng.random() <= p[x] / q[x], residual)
strict = first_rejection(ratio_test, residual)


def test_inclusive_test_accepts_a_token_without_mass_at_zero():
    report = ft.conformance(inclusive, length=1)
    assert report.verdict == "lossless"
    edges = report["coin edges"]
    assert (edges.outcome, edges.asked) == ("refuted", False)
    assert edges.detail == "with uniforms 0: emits token 0, which the target gives no mass"
    assert ft.conformance(strict, length=1)["coin edges"].outcome == "held"


def test_inverse_cdf_that_includes_its_steps_draws_a_token_without_mass_at_zero():
    def redraw(p, q, x, rng):
        reached, u = 0, rng.random()
        left = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
        for v, mass in enumerate(left):
            reached += mass
            if u * sum(left) <= reached:
                return v
        raise AssertionError

    edges = ft.conformance(first_rejection(ratio_test, redraw), length=1)["coin edges"]
    assert edges.outcome == "refuted"
    assert "emits token 0" in edges.detail


@pytest.mark.parametrize(("bits", "tv"), [(8, Fraction(1, 256)), (3, Fraction(1, 8)), (1, Fraction(1, 2))])
def test_inclusive_test_on_a_grid_is_biased_by_its_step(bits, tv):
    p, q = fractions("0 1"), fractions("1 0")
    report = ft.conformance(inclusive, q, target=p, length=1, coin_bits=bits)
    assert report.tv == tv
    assert ft.conformance(strict, q, target=p, length=1, coin_bits=bits).verdict == "lossless"
    assert ft.conformance(inclusive, q, target=p, length=1).verdict == "lossless"


def test_accept_probability_on_a_grid():
    p, q = fractions("3/10 7/10"), fractions("1 0")
    report = ft.conformance(inclusive, q, target=p, length=1, coin_bits=4)
    assert report["lossless"].witness.got[0] == Fraction(int(0.3 * 16) + 1, 16)


def token_zero(p, q, x, rng):
    left = np.maximum(p - q, 0)
    return rng.choice(left) if left.sum() > 0 else 0


def last_token(p, q, x, rng):
    left = np.maximum(p - q, 0)
    return rng.choice(left) if left.sum() > 0 else len(left) - 1


def uniform(p, q, x, rng):
    return rng.choice([max(a - b, 1e-38) for a, b in zip(p, q, strict=True)])


def the_target(p, q, x, rng):
    left = np.maximum(p - q, 0)
    return rng.choice(left if left.sum() > 0 else p)


@pytest.mark.parametrize(
    ("redraw", "outcome", "said"),
    [
        (residual, "held", "gave rng.choice the weights"),
        (token_zero, "refuted", "emits token 0"),
        (last_token, "refuted", "emits token 3"),
        (uniform, "refuted", "emits token 0"),
        (the_target, "held", "emits token 1"),
    ],
)
def test_what_comes_out_of_a_residual_without_mass(redraw, outcome, said):
    report = ft.conformance(first_rejection(ratio_test, redraw), length=1)
    result = report["zero residual"]
    assert (result.outcome, result.asked) == (outcome, False)
    assert said in result.detail
