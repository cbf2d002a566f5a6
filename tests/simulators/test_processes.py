"""FLy's match process and false acceptance: simulation inside its stated intervals as often as stated.

False-alarm budget: seeds are fixed; under fresh seeds each assertion on coverage fails with probability 1e-6.
"""

import pytest
from scipy import stats

import fly_theory as ft
import simulators
from fly_theory.errors import ParameterError
from fly_theory.false_acceptance import Mismatches

SEEDS = 200


def least_covered(confidence):
    """How many of SEEDS intervals cover at least, but for a probability of 1e-6."""
    return stats.binom.ppf(1e-6, SEEDS, confidence)


@pytest.mark.parametrize("interval", ["student", "empirical-bernstein"])
@pytest.mark.parametrize(
    "process",
    [
        ft.renewal.iid(0.9, 0.8, 3, 10),
        ft.renewal.iid(0.9, 0.8, 3, 10, following=2),
        ft.renewal.markov(0.95, 0.5, 0.7, 2, 10),
        ft.renewal.iid(0.7, 0.6, 0, 10),
    ],
    ids=["iid", "released", "markov", "no window"],
)
def test_intervals_cover_the_renewal_law_as_often_as_stated(process, interval):
    confidence, covered, cells = 0.9, 0, 0
    for seed in range(SEEDS):
        found = simulators.simulate_process(process, 2_000, seed, confidence=confidence, mean_interval=interval)
        tokens, *law = found.estimates
        assert tokens.label == "tokens a round"
        assert tokens.exact == pytest.approx(float(process.expected_tokens()))
        covered += tokens.covers(tokens.exact)
        cells += sum(e.covers(e.exact) for e in law) / len(law)
    assert covered >= least_covered(confidence)
    assert cells >= least_covered(confidence)
    if interval == "student":
        assert covered < SEEDS  # an interval that never misses at 90 % would be too wide


def test_stopping_early_keeps_the_coverage():
    process, confidence = ft.renewal.iid(0.9, 0.8, 3, 10), 0.9
    covered = stopped = 0
    for seed in range(SEEDS):
        found = simulators.simulate_process(process, 16_000, seed, confidence=confidence, until=0.5)
        covered += found.estimates[0].covers(found.estimates[0].exact)
        stopped += found.trials < 16_000
    assert covered >= least_covered(confidence)
    assert stopped > SEEDS / 2


def test_intervals_cover_false_acceptance_as_often_as_stated():
    model, confidence = Mismatches(correction=0.3, match=0.95, median=0.2, spread=1, separation=1), 0.9
    wrong = harmless = 0
    for seed in range(SEEDS):
        found = simulators.simulate_mismatches(model, 0.3, 3, 2_000, seed, confidence=confidence)
        wrong += found["wrong kept"].covers(found["wrong kept"].exact)
        harmless += found["harmless kept"].covers(found["harmless kept"].exact)
    assert min(wrong, harmless) >= least_covered(confidence)
    assert found["wrong kept"].exact == pytest.approx(float(model.acceptance(0.3, 3).wrong))


@pytest.mark.parametrize(("theta", "window"), [(0.0, 0), (0.0, 4), (1.0, 2), (0.6, 0)])
def test_edges_of_gate_and_window(theta, window):
    model = Mismatches(correction=0.5, median=0.3, spread=1, separation=2)
    found = simulators.simulate_mismatches(model, theta, window, 5_000, 1, confidence=1 - 1e-6)
    for estimate in found.estimates:
        assert estimate.covers(estimate.exact)


def test_bad_settings_are_named():
    model = Mismatches(correction=0.5, median=0.3, spread=1, separation=2)
    with pytest.raises(ParameterError, match="window=-1"):
        simulators.simulate_mismatches(model, 0.5, -1, 100, 0)
    with pytest.raises(ParameterError, match="theta=2"):
        simulators.simulate_mismatches(model, 2, 1, 100, 0)
