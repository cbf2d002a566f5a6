"""The cluster bootstrap: Student's interval where that is exact, coverage where figures are skewed, and edge cases."""

from fractions import Fraction

import numpy as np
import pytest

from gpu.replaying.bootstrap import bootstrap_interval
from gpu.replaying.estimates import clustered_mean
from gpu.replaying.on_blocks.figures import ratio, ratio_difference


def _mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


@pytest.mark.parametrize("groups", [6, 20, 60])
def test_of_a_calm_mean_it_is_students_interval(groups: int) -> None:
    """Clusters of one size with symmetric values: both ends within 4 % of Student's half-width, with 4,999 draws."""
    values = np.concatenate([x := np.random.default_rng(5).normal(0, 1, groups // 2), -x]) + 3
    clusters = [(float(value) * 4, 4) for value in values]
    _, low, high = clustered_mean([(Fraction(total), count) for total, count in clusters])
    found = bootstrap_interval(_mean, clusters)
    assert found == pytest.approx((low, high), abs=0.04 * (high - low) / 2 + 0.1 * (high - low) / 2 * (groups < 10))


def test_coverage_of_a_skewed_ratio() -> None:
    """Shares of counts that differ by cluster, 20 clusters: nominal 95 %.

    No less than 91 %, with 4.9 binomial standard errors taken off, and no more than 98 % with as many put on: at a true
    coverage between those a false alarm has probability 1e-6.
    """
    rng, trials, hits = np.random.default_rng(6), 800, 0
    for _ in range(trials):
        rates = rng.beta(1, 6, 20)
        counts = rng.poisson(12, 20) + 1
        found = ratio(
            [(float(rng.binomial(n, p)), float(n)) for n, p in zip(counts, rates, strict=True)], low=0, high=1
        )
        assert found is not None
        hits += found.low <= 1 / 7 <= found.high
    margin = 4.9 * np.sqrt(0.09 * 0.91 / trials)
    assert 0.91 - margin < hits / trials < 0.98 + margin


def test_pairing_narrows_a_difference_of_ratios() -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(3, 9, 20).astype(float)
    base = counts * rng.normal(3, 1, 20)
    ours = base + counts * (0.5 + rng.normal(0, 0.01, 20))
    theirs = list(zip(base, counts, strict=True))
    found = ratio_difference(list(zip(ours, counts, strict=True)), theirs)
    alone = ratio(theirs, low=0, high=np.inf)
    assert found.low < 0.5 < found.high
    assert found.high - found.low < (alone.high - alone.low) / 20
    assert (alone.low + alone.high) / 2 == pytest.approx(alone.mean, abs=0.2)


def test_the_same_clusters_give_the_same_interval() -> None:
    clusters = [(1.0, 2.0), (0.5, 3.0), (2.0, 2.0)]
    assert bootstrap_interval(_mean, clusters) == bootstrap_interval(_mean, clusters)


def test_edges() -> None:
    assert ratio([(0.0, 0.0), (0.0, 0.0)], low=0, high=1) is None
    one = ratio([(1.0, 4.0)], low=0, high=1)
    assert (one.mean, one.low, one.high) == (0.25, None, None)
    agreed = ratio([(1.0, 4.0), (2.0, 8.0), (0.5, 2.0)], low=0, high=1)
    assert (agreed.mean, agreed.low, agreed.high) == (0.25, 0.25, 0.25)
    # A single prompt has all that is counted: draws without it define nothing, and the interval is a point.
    alone = ratio([(1.0, 4.0), (0.0, 0.0), (0.0, 0.0)], low=0, high=1)
    assert (alone.mean, alone.low, alone.high) == (0.25, 0.25, 0.25)
    cut = ratio([(1.0, 1.0), (9.0, 9.0), (0.0, 1.0), (5.0, 5.0)], low=0, high=1)
    assert 0 <= cut.low < cut.mean < cut.high <= 1
