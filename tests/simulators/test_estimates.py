"""Intervals: against scipy, and their coverage computed exactly by summing over all outcomes."""

import numpy as np
import pytest
from scipy import stats

from simulators.estimates import clopper_pearson, mean, rate, rates


@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999999])
def test_clopper_pearson_is_the_exact_binomial_interval(confidence):
    for trials in (1, 7, 50):
        low, high = clopper_pearson(np.arange(trials + 1), trials, confidence)
        for successes in range(trials + 1):
            exact = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
            assert (low[successes], high[successes]) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_clopper_pearson_covers_at_least_as_often_as_stated():
    trials, confidence = 40, 0.95
    low, high = clopper_pearson(np.arange(trials + 1), trials, confidence)
    for p in np.linspace(0, 1, 201):
        covered = (low <= p) & (p <= high)
        assert stats.binom.pmf(np.arange(trials + 1), trials, p)[covered].sum() >= confidence - 1e-12


def test_rates_take_names_exact_values_and_one_confidence():
    found = rates("token", np.array([3, 0, 7]), 0.9, outcomes="abc", exact=[0.25, 0.05, 0.7])
    assert [e.label for e in found] == ["P(token = a)", "P(token = b)", "P(token = c)"]
    assert [e.value for e in found] == [0.3, 0, 0.7]
    assert [e.exact for e in found] == [0.25, 0.05, 0.7]
    assert found[1].low == 0
    assert {e.method for e in found} == {"Clopper-Pearson"}
    assert rate("yes", np.array([6, 4]), 0.9).label == "yes"
    assert rate("yes", np.array([6, 4]), 0.9, exact=0.5).exact == 0.5


def sample(seed=5, size=300):
    values = np.random.default_rng(seed).integers(0, 6, size)
    return values, np.bincount(values, minlength=6)


def test_student_interval_is_that_of_the_raw_sample():
    values, counts = sample()
    found = mean("length", range(6), counts, 0.95, interval="student")
    half = stats.t.ppf(0.975, 299) * values.std(ddof=1) / np.sqrt(300)
    assert (found.value, found.low, found.high) == pytest.approx(
        (values.mean(), values.mean() - half, values.mean() + half)
    )
    assert found.method == "Student"


def test_empirical_bernstein_interval_is_the_theorem():
    values, counts = sample()
    found = mean("length", range(6), counts, 0.95, interval="empirical-bernstein")
    # Maurer & Pontil, Theorem 4, for values in [0, 1] and each side at half of the 5 %
    scaled, delta = values / 5, 0.025
    half = np.sqrt(2 * scaled.var(ddof=1) * np.log(2 / delta) / 300) + 7 * np.log(2 / delta) / (3 * 299)
    assert found.high - found.value == pytest.approx(5 * half)
    assert found.method == "empirical Bernstein"
    assert found.width > mean("length", range(6), counts, 0.95, interval="student").width


@pytest.mark.parametrize("interval", ["student", "empirical-bernstein"])
def test_intervals_of_means_stay_in_the_range_of_the_values(interval):
    found = mean("length", (2, 3, 7), np.array([1, 0, 1]), 0.99, interval=interval)
    assert (found.low, found.high) == (2, 7)


def test_mapping_keeps_low_below_high():
    calls = mean("calls", (1, 2, 3), np.array([5, 9, 6]), 0.9, interval="student")
    per_call = calls.mapped("tokens per call", lambda c: 6 / c, exact=3.0)
    assert (per_call.low, per_call.value, per_call.high) == (6 / calls.high, 6 / calls.value, 6 / calls.low)
    assert per_call.covers(6 / calls.value)
    assert per_call.exact == 3.0
