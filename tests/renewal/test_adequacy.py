"""Whether match tapes are independent: the likelihood-ratio test and the predictions next to what was observed.

False-alarm budget of the statistical assertions: seeds are fixed; under fresh seeds each would fail with probability
below 1e-4 (stated at each).
"""

import numpy as np
import pytest
from scipy import stats

import fly_theory as ft
from fly_theory.errors import InvalidInput, ShapeError


def tapes(rng, rounds, length, after_match, after_mismatch, gate):
    matches = np.zeros((rounds, length), dtype=bool)
    hit = np.full(rounds, after_mismatch / (1 - after_match + after_mismatch))
    for i in range(length):
        matches[:, i] = rng.random(rounds) < hit
        hit = np.where(matches[:, i], after_match, after_mismatch)
    return matches, rng.random((rounds, length)) < gate


def test_p_values_are_uniform_when_matches_are_independent():
    rng = np.random.default_rng(7)
    p_values = [ft.renewal.adequacy(*tapes(rng, 200, 10, 0.8, 0.8, 0.7), window=3).p_value for _ in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-5  # false alarm 1e-5


def test_clustered_mismatches_are_told_and_the_chain_predicts_what_is_observed():
    rng = np.random.default_rng(8)
    matches, gates = tapes(rng, 40_000, 12, 0.95, 0.4, 0.8)
    result = ft.renewal.adequacy(matches, gates, window=3)
    assert result.p_value < 1e-12
    assert result.after_match == pytest.approx(0.95, abs=0.01)  # over 10 standard errors
    assert result.after_mismatch == pytest.approx(0.4, abs=0.02)  # over 6 standard errors
    assert result.gate == pytest.approx(0.8, abs=0.02)
    assert abs(result.markov - result.observed) < 5 * result.standard_error  # about 1e-6
    assert abs(result.iid - result.observed) > 5 * result.standard_error  # it is 11 of them away


def test_statistic_is_the_g_test_of_the_transition_table():
    rng = np.random.default_rng(9)
    matches, gates = tapes(rng, 300, 8, 0.9, 0.7, 0.5)
    before, after = matches[:, :-1].ravel(), matches[:, 1:].ravel()
    table = [[(before & after).sum(), (before & ~after).sum()], [(~before & after).sum(), (~before & ~after).sum()]]
    g = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    result = ft.renewal.adequacy(matches, gates, window=2)
    assert result.statistic == pytest.approx(g.statistic, rel=1e-10)
    assert result.p_value == pytest.approx(g.pvalue, rel=1e-9)


def test_bad_tapes_are_named():
    with pytest.raises(ShapeError, match=r"matches \(3, 4\) and gates \(3, 5\)"):
        ft.renewal.adequacy(np.ones((3, 4)), np.ones((3, 5)), window=2)
    with pytest.raises(InvalidInput, match="9 positions come after a match and 0 after a mismatch"):
        ft.renewal.adequacy(np.ones((3, 4)), np.ones((3, 4)), window=2)
