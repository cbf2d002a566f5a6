"""Block lengths and cost factors against enumeration, and the published identities."""

import itertools
import math

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.closed_form import expected_tokens, operations_factor, walltime_factor
from fly_theory.errors import InvalidInput


@pytest.mark.parametrize("draft_length", [1, 3, 7])
@pytest.mark.parametrize("a", [0.0, 0.3, 0.92, 1.0])
def test_expected_tokens_by_enumeration(a, draft_length):
    expected = 0.0
    for tape in itertools.product([True, False], repeat=draft_length):
        probability = math.prod(a if kept else 1 - a for kept in tape)
        accepted = next((i for i, kept in enumerate(tape) if not kept), draft_length)
        expected += probability * (accepted + 1)
    assert float(expected_tokens(a, draft_length)) == pytest.approx(expected, abs=1e-12)
    if a < 1:
        assert expected == pytest.approx((1 - a ** (draft_length + 1)) / (1 - a))


def test_corollary_3_9():
    """With one draft token the speed-up is (1 + a)/(1 + c), which exceeds one exactly when a > c."""
    assert float(walltime_factor(0.8, 1, 0.05)) == pytest.approx(1.8 / 1.05)
    assert float(walltime_factor(0.3, 1, 0.3)) == pytest.approx(1.0)


def test_operations_factor():
    a, k, c = 0.7, 4, 0.1
    assert float(operations_factor(a, k, c)) == pytest.approx((1 - a) * (c * k + k + 1) / (1 - a ** (k + 1)))


def test_block_efficiency_names_both_conventions():
    efficiency = ft.block_efficiency([0.5, 0.5, 0.5])
    assert float(efficiency.accepted_per_call) == 0.875
    assert float(efficiency.tokens_per_call) == 1.875
    constant = ft.block_efficiency(np.full((2, 5), 0.8))
    np.testing.assert_allclose(constant.tokens_per_call, expected_tokens(0.8, 5))


def test_waste_splits_into_outside_mass_and_idle_rejections():
    """The two parts of the waste: mass outside the corridor between p and q, and P_rej - TV(out, q)."""
    rng = np.random.default_rng(0)
    for spec in ("min-p:base=0.5", "lenience-resample:l=0.5", "typical", "sample-match:n=2", "gated-cliff:l=0.5"):
        rule = ft.rule(spec)
        for _ in range(50):
            p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
            out = rule.induced(p, q)
            low, high = np.minimum(p, q), np.maximum(p, q)
            outside = (np.maximum(low - out, 0) + np.maximum(out - high, 0)).sum()
            idle = 1 - float(rule.acceptance(p, q)) - np.abs(out - q).sum() / 2
            assert float(ft.waste(p, q, rule)) == pytest.approx(outside + idle, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_tokens(1.2, 3), "acceptance=1.2"),
        (lambda: expected_tokens(0.5, 0), "draft_length=0"),
        (lambda: walltime_factor(0.5, 3, -1), "draft_cost=-1"),
        (lambda: operations_factor(0.5, 3, float("nan")), "draft_operations=nan"),
        (lambda: ft.block_efficiency([]), "keep has shape"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
