"""Intervals of clustered means: against the textbook formula, their coverage, and where there is none."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from gpu.replaying.estimates import clustered_mean, difference, estimate
from gpu.replaying.tally import Tally


def _tally(clusters: list[np.ndarray], name: str = "accepted_per_call") -> Tally:
    tally = Tally()
    for prompt, values in enumerate(clusters):
        for number, value in enumerate(values.tolist()):
            tally.add(prompt, number, {name: [value], "tv": [0.0]})
    return tally


def test_the_interval_is_that_of_the_cluster_robust_ratio() -> None:
    rng = np.random.default_rng(0)
    clusters = [rng.normal(3, 1, size) for size in (1, 4, 2, 7, 3)]
    pooled = np.concatenate(clusters)
    mean, groups = pooled.mean(), len(clusters)
    scores = np.array([(cluster - mean).sum() for cluster in clusters])
    error = np.sqrt(groups / (groups - 1) * (scores**2).sum()) / len(pooled)
    low, high = stats.t.interval(0.95, groups - 1, loc=mean, scale=error)
    found = estimate(_tally(clusters), "accepted_per_call")
    assert [found.mean, found.low, found.high] == pytest.approx([mean, low, high], rel=1e-12)


def test_one_prompt_has_no_interval() -> None:
    found = estimate(_tally([np.array([1.0, 2.0, 4.0])]), "accepted_per_call")
    assert (found.mean, found.low, found.high) == (pytest.approx(7 / 3), None, None)


def test_an_interval_stays_where_the_measure_can_lie() -> None:
    found = estimate(_tally([np.array([1.0, 1.0]), np.array([0.5]), np.array([1.0])], "acceptance"), "acceptance")
    assert found.high == 1
    assert found.low is not None
    assert 0 <= found.low < found.mean


def test_an_infinite_value_makes_the_mean_infinite_and_is_counted_apart() -> None:
    found = estimate(_tally([np.array([1.0, np.inf]), np.array([3.0, 2.0])], "kl"), "kl")
    assert (found.mean, found.largest, found.low) == (np.inf, np.inf, None)
    assert (found.finite_mean, found.infinite_share) == (2.0, 0.25)
    nowhere_finite = estimate(_tally([np.array([np.inf])], "kl"), "kl")
    assert (nowhere_finite.mean, nowhere_finite.finite_mean, nowhere_finite.infinite_share) == (np.inf, None, 1.0)


def test_the_interval_of_a_difference_uses_the_pairing() -> None:
    rng = np.random.default_rng(1)
    base = [rng.normal(3, 2, 4) for _ in range(8)]
    better = [cluster + 0.5 + rng.normal(0, 0.01, 4) for cluster in base]
    found = difference(_tally(better), _tally(base), "accepted_per_call")
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.5 < found.high
    alone = estimate(_tally(better), "accepted_per_call")
    assert alone.low is not None
    assert alone.high is not None
    assert found.high - found.low < (alone.high - alone.low) / 20


def _covered(sizes: list[int], trials: int, seed: int, *, respect_clusters: bool) -> float:
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        clusters = [rng.normal(0, 1) + rng.normal(0, 1, size) for size in sizes]
        parts = clusters if respect_clusters else [np.array([value]) for cluster in clusters for value in cluster]
        _, low, high = clustered_mean([(Fraction(float(part.sum())), len(part)) for part in parts])
        hits += low <= 0 <= high
    return hits / trials


def test_coverage() -> None:
    # Exact for normal clusters of equal size. False alarm 1e-6: 4.9 standard errors of sqrt(.95 * .05 / 3000).
    assert _covered([4] * 6, 3000, 2, respect_clusters=True) == pytest.approx(0.95, abs=0.0195)


def test_coverage_of_unequal_clusters() -> None:
    # Nominal 95 %, approximate here: no less than 90 %, the binomial scatter of 4.9 standard errors taken off.
    assert _covered([1, 2, 3, 4, 5, 6] * 2, 2000, 3, respect_clusters=True) > 0.90 - 0.033


def test_intervals_that_ignore_the_clusters_would_be_wrong() -> None:
    assert _covered([8] * 6, 500, 4, respect_clusters=False) < 0.75
