"""Divergences against scipy, against each other, and at zeros."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy import special

import fly_theory as ft
from fly_theory.errors import ParameterError
from tests.strategies import pairs

d = ft.divergence


@given(pairs())
def test_against_scipy(pair):
    p, out = pair
    assert float(d.total_variation(p, out)) == pytest.approx(np.abs(p - out).sum() / 2, abs=1e-15)
    assert float(d.kl(p, out)) == pytest.approx(special.rel_entr(p, out).sum(), abs=1e-12)
    assert float(d.reverse_kl(p, out)) == pytest.approx(special.rel_entr(out, p).sum(), abs=1e-12)
    js = (special.rel_entr(p, (p + out) / 2).sum() + special.rel_entr(out, (p + out) / 2).sum()) / 2
    assert float(d.js(p, out)) == pytest.approx(js, abs=1e-12)
    assert float(d.hellinger(p, out)) == pytest.approx(
        np.linalg.norm(np.sqrt(p) - np.sqrt(out)) / np.sqrt(2), abs=1e-12
    )


@given(pairs())
def test_orderings(pair):
    p, out = pair
    tv, kl, js, hellinger = (float(f(p, out)) for f in (d.total_variation, d.kl, d.js, d.hellinger))
    assert 0 <= tv <= 1 + 1e-12
    assert 0 <= js <= np.log(2) + 1e-12
    assert hellinger**2 <= tv + 1e-12
    assert tv <= np.sqrt(2) * hellinger + 1e-12
    assert tv <= np.sqrt(kl / 2) + 1e-7
    assert float(d.max_ratio(p, out)) >= 1 - 1e-12
    assert float(d.chi2(p, out)) >= float(d.reverse_kl(p, out)) - 1e-9


@given(pairs())
def test_renyi_family(pair):
    p, out = pair
    orders = [0, 0.25, 0.5, 0.9, 1, 2, 8, float("inf")]
    values = [float(d.renyi(p, out, alpha=a)) for a in orders]
    assert all(b >= a - 1e-9 or a == b for a, b in itertools.pairwise(values)), values
    assert values[4] == float(d.kl(p, out))
    assert values[7] == pytest.approx(np.log(float(d.max_ratio(out, p))), abs=1e-9)
    if np.isfinite(values[5]):
        assert np.expm1(values[5]) == pytest.approx(float(d.chi2(out, p)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "p", "out", "value"),
    [
        ("kl", [0.5, 0.5], [1.0, 0.0], np.inf),
        ("kl", [1.0, 0.0], [0.5, 0.5], np.log(2)),
        ("reverse_kl", [1.0, 0.0], [0.5, 0.5], np.inf),
        ("chi2", [1.0, 0.0], [0.5, 0.5], np.inf),
        ("chi2", [0.5, 0.5], [1.0, 0.0], 1.0),
        ("max_ratio", [1.0, 0.0], [0.5, 0.5], np.inf),
        ("max_ratio", [0.5, 0.5], [1.0, 0.0], 2.0),
        ("js", [1.0, 0.0], [0.0, 1.0], np.log(2)),
        ("hellinger", [1.0, 0.0], [0.0, 1.0], 1.0),
        ("total_variation", [1.0, 0.0], [0.0, 1.0], 1.0),
    ],
)
def test_at_zeros(name, p, out, value):
    assert float(getattr(d, name)(p, out)) == pytest.approx(value)


def test_batches_broadcast():
    p, out = np.full((4, 1, 3), 1 / 3), np.tile(np.eye(3), (1, 1, 1))
    for function in d.DIVERGENCES.values():
        assert function(p, out).shape == (4, 3)


def test_renyi_refuses_negative_orders():
    with pytest.raises(ParameterError, match="alpha=-1"):
        d.renyi([0.5, 0.5], [0.5, 0.5], alpha=-1)
