"""Published tau values explained by two probabilities."""

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput
from fly_theory.renewal import Observed


def test_nine_values_of_table_4_within_3_1_percent():
    observed = ft.renewal.fly_table4()
    match, gate, errors = ft.renewal.fit(observed)
    assert len(observed) == 9
    assert abs(errors).max() <= 0.031
    assert match == pytest.approx(0.9265, abs=1e-3)
    assert gate == pytest.approx(0.91, abs=5e-3)


def test_four_values_of_table_9_within_1_4_percent():
    observed = ft.renewal.fly_table9()
    match, gate, errors = ft.renewal.fit(observed)
    assert len(observed) == 4
    assert abs(errors).max() <= 0.014
    assert match == pytest.approx(0.910, abs=1e-3)
    assert gate == pytest.approx(0.79, abs=5e-3)


def test_observations_are_the_package_data():
    taus = {o.tokens for o in ft.renewal.fly_table4()}
    assert taus == {15.59, 13.27, 12.61, 11.96, 12.76, 9.89, 9.04, 15.6, 18.56}
    assert {o.gate for o in ft.renewal.fly_table4()} == {None, 0.0, 1.0}


def test_fit_recovers_the_probabilities_of_its_own_predictions():
    settings = [(w, k) for w in (0, 3, 6) for k in (8, 15)]
    for match, gate in [(0.8, 0.3), (0.93, 0.95), (0.6, 0.5)]:
        made = [Observed(float(ft.renewal.expected_tokens(match, gate, w, k)), w, k) for w, k in settings]
        found = ft.renewal.fit(made)
        assert (found.match, found.gate) == pytest.approx((match, gate), abs=1e-6)
        assert abs(found.errors).max() < 1e-7


@pytest.mark.parametrize("over", ["match", "gate"])
def test_profile_touches_the_minimum_at_the_fit(over):
    observed = ft.renewal.fly_table4()
    found = ft.renewal.fit(observed)
    least = (found.errors**2).sum()
    here = getattr(found, over)
    values = np.clip(here + np.linspace(-0.02, 0.02, 5), 0, 1)
    profile = ft.renewal.profile(observed, over, values)
    assert profile.objective[2] == pytest.approx(least, rel=1e-6)
    assert profile.best_other[2] == pytest.approx(found.gate if over == "match" else found.match, abs=1e-4)
    assert (profile.objective >= least * (1 - 1e-9)).all()
    assert (np.diff(profile.objective)[:2] < 0).all()
    assert (np.diff(profile.objective)[2:] > 0).all()


def test_a_gate_that_explains_theta_0_6_lies_between_those_of_0_3_and_1():
    match, gate, _ = ft.renewal.fit(ft.renewal.fly_table4())
    implied = ft.renewal.implied_gate(Observed(12.2, 6, 15), match)
    assert 0.5 < implied < gate
    assert ft.renewal.expected_tokens(match, implied, 6, 15) == pytest.approx(12.2)


def test_bad_observations_are_named():
    with pytest.raises(InvalidInput, match="1 observations, 1 with an unknown gate"):
        ft.renewal.fit([Observed(5.0, 2, 8)])
    with pytest.raises(InvalidInput, match="2 observations, 0 with an unknown gate"):
        ft.renewal.fit([Observed(5.0, 2, 8, 1.0), Observed(4.0, 2, 8, 0.0)])
    with pytest.raises(InvalidInput, match=r"tokens=0\.0"):
        ft.renewal.fit([Observed(5.0, 2, 8), Observed(0.0, 2, 9)])
    with pytest.raises(InvalidInput, match="over='theta'"):
        ft.renewal.profile(ft.renewal.fly_table9(), "theta", [0.5])
    with pytest.raises(InvalidInput, match="no gate explains 99 tokens"):
        ft.renewal.implied_gate(Observed(99, 6, 15), 0.9)
