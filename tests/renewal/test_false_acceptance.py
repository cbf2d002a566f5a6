"""Acceptance of wrong and harmless mismatches: closed form, its inverses, and a plain simulation."""

import numpy as np
import pytest

from fly_theory.errors import InvalidInput, ParameterError
from fly_theory.false_acceptance import Mismatches

MODEL = Mismatches(correction=0.3, match=0.95, median=0.2, spread=0.8, separation=1.2)


def test_closed_form():
    wrong, harmless = MODEL.opening(0.3)
    accepted = MODEL.acceptance(0.3, 4)
    assert accepted.wrong == pytest.approx(wrong * (0.95 * 0.7) ** 4)
    assert accepted.harmless == pytest.approx(harmless * 0.95**4)


def test_gate_opens_at_half_the_wrong_mismatches_when_theta_is_their_median():
    assert MODEL.opening(0.2).wrong == pytest.approx(0.5)
    assert MODEL.opening(0.0) == (1, 1)
    assert MODEL.opening(1.0) == (0, 0)


def test_without_separation_the_gate_tells_nothing_and_without_correction_the_window_does_not():
    blind = Mismatches(correction=0, match=0.9, median=0.4, spread=1, separation=0)
    for theta, window in [(0.0, 3), (0.3, 0), (0.8, 7)]:
        assert blind.acceptance(theta, window).wrong == pytest.approx(blind.acceptance(theta, window).harmless)


def test_acceptance_falls_with_theta_and_window_and_broadcasts():
    thetas, windows = np.linspace(0, 1, 21), np.arange(9)
    roc = MODEL.acceptance(thetas[:, None], windows)
    for kept in roc:
        assert kept.shape == (21, 9)
        assert (np.diff(kept, axis=0) <= 0).all()
        assert (np.diff(kept, axis=1) <= 0).all()
    assert (roc.harmless >= roc.wrong).all()


def test_wrong_share():
    accepted = MODEL.acceptance(0.2, 3)
    assert accepted.wrong_share(0.25) == pytest.approx(
        0.25 * accepted.wrong / (0.25 * accepted.wrong + 0.75 * accepted.harmless)
    )
    assert accepted.wrong_share(0) == 0
    assert accepted.wrong_share(1) == 1


@pytest.mark.parametrize("tolerance", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("theta", [0.0, 0.3, 0.6])
def test_window_for_is_the_smallest_that_meets_the_tolerance(tolerance, theta):
    window = MODEL.window_for(tolerance, theta)
    assert MODEL.acceptance(theta, window).wrong <= tolerance
    assert window == 0 or MODEL.acceptance(theta, window - 1).wrong > tolerance


@pytest.mark.parametrize("window", [0, 2, 6])
def test_theta_for_meets_the_tolerance(window):
    for tolerance in (0.5, 0.05, 1e-3):
        theta = MODEL.theta_for(tolerance, window)
        if theta == 0:
            assert MODEL.acceptance(0.0, window).wrong <= tolerance
        else:
            assert MODEL.acceptance(theta, window).wrong == pytest.approx(tolerance)


def test_best_setting_beats_a_grid_under_the_same_tolerance():
    best = MODEL.best(0.01, widest=20)
    assert best.acceptance.wrong <= 0.01 * (1 + 1e-9)
    grid = MODEL.acceptance(np.linspace(0, 1, 400)[:, None], np.arange(21))
    assert best.acceptance.harmless >= grid.harmless[grid.wrong <= 0.01].max() - 1e-12


def test_plain_simulation_of_corrections_agrees():
    rng = np.random.default_rng(11)
    trials, theta, window = 200_000, 0.25, 3
    logit = np.log(0.2 / 0.8)
    for shift, correction, expected in zip((0, 1.2), (0.3, 0), MODEL.acceptance(theta, window), strict=True):
        statistic = 1 / (1 + np.exp(-(logit + 0.8 * (shift + rng.standard_normal(trials)))))
        matched = (rng.random((trials, window)) < 0.95) & (rng.random((trials, window)) >= correction)
        kept = ((statistic >= theta) & matched.all(axis=1)).mean()
        assert abs(kept - expected) < 5 * np.sqrt(expected * (1 - expected) / trials)  # false alarm 6e-7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"correction": 1.5}, r"correction=1\.5"),
        ({"median": 0}, "median=0"),
        ({"spread": 0}, "spread=0"),
        ({"separation": -1}, "separation=-1"),
    ],
)
def test_bad_model_is_named(change, says):
    good = {"correction": 0.3, "median": 0.2, "spread": 1, "separation": 1}
    with pytest.raises(ParameterError, match=says):
        Mismatches(**(good | change))


def test_bad_settings_are_named():
    with pytest.raises(ParameterError, match=r"theta=1\.5"):
        MODEL.acceptance(1.5, 3)
    with pytest.raises(ParameterError, match="window=-1"):
        MODEL.acceptance(0.5, -1)
    with pytest.raises(ParameterError, match=r"window=2\.5"):
        MODEL.acceptance(0.5, 2.5)
    with pytest.raises(InvalidInput, match="tolerance=0"):
        MODEL.window_for(0, 0.3)
    with pytest.raises(InvalidInput, match=r"no window reaches tolerance=0\.01"):
        Mismatches(correction=0, median=0.5, spread=1, separation=1).window_for(0.01, 0.5)
