"""Mentored decoding where the ratio q/p leaves the range of floats."""

import numpy as np
import pytest
import torch

import fly_theory as ft
from fly_theory.arrays import Array
from fly_theory.distributions import trusted_inputs

Q = [0.1, 0.4, 0.5]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (np.array([0.6, 0.4, 1e-310]), np.array(Q)),
        (torch.tensor([0.6, 0.4, 1e-310], dtype=torch.float64), torch.tensor(Q, dtype=torch.float64)),
        (torch.tensor([0.6, 0.4, 1e-42]), torch.tensor(Q)),
    ],
    ids=["numpy-float64", "torch-float64", "torch-float32"],
)
def test_the_budget_holds_where_the_target_finds_a_token_nearly_impossible(p: Array, q: Array) -> None:
    rule = ft.rule("mentored:budget=0.1")
    with trusted_inputs():
        out = rule.induced(p, q)
        assert float(out.sum()) == pytest.approx(1, abs=1e-6)
        assert 0 < float(ft.divergence.kl(p, out)) <= 0.1
        assert float(out[0]) < 0.6
