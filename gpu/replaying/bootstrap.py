"""The cluster bootstrap: intervals of a function of sums when whole prompts are drawn again.

Bias-corrected and accelerated (Efron 1987), with percentiles widened as for Student's t: percentile intervals of G
clusters are too narrow by sqrt((G-1)/G) and by the normal quantile in place of t (Hesterberg 2015, "expanded
percentiles"). For a mean of normal clusters that gives Student's interval back.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from gpu.replaying.estimates import CONFIDENCE

__all__ = ["DRAWS", "bootstrap_interval"]

DRAWS = 4999
_SEED = 0

# A function of sums (..., S), one value (...,); NaN where the sums do not define it.
Statistic = Callable[[np.ndarray], np.ndarray]


def bootstrap_interval(statistic: Statistic, clusters: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Interval of statistic(sum of the clusters) at `CONFIDENCE`, from the sums of each cluster (G, S).

    The same clusters give the same interval, and all statistics on G clusters share their draws. None for fewer than
    two clusters; of zero width when no draw changes the statistic.
    """
    sums = np.asarray(clusters, dtype=np.float64)
    groups = len(sums)
    if groups < 2:
        return None
    value = float(statistic(sums.sum(axis=0)))
    drawn = statistic(_draws(groups) @ sums)
    drawn = np.sort(drawn[~np.isnan(drawn)])
    rounding = 1e-12 * max(1.0, abs(value))
    if not len(drawn) or drawn[-1] - drawn[0] <= rounding:
        return value, value
    below, tied = np.mean(drawn < value - rounding), np.mean(np.abs(drawn - value) <= rounding)
    bias = ndtri(np.clip(below + tied / 2, 1 / (2 * len(drawn)), 1 - 1 / (2 * len(drawn))))
    without = statistic(sums.sum(axis=0) - sums)
    skew = np.nanmean(without) - without[~np.isnan(without)]
    spread = np.sum(skew**2)
    acceleration = np.sum(skew**3) / (6 * spread**1.5) if spread > 0 else 0.0
    reach = np.sqrt(groups / (groups - 1)) * stdtrit(groups - 1, (1 + CONFIDENCE) / 2)
    ends = bias + np.array([-reach, reach])
    low, high = np.quantile(drawn, ndtr(bias + ends / (1 - acceleration * ends)))
    return float(low), float(high)


@functools.lru_cache(maxsize=4)
def _draws(groups: int) -> np.ndarray:
    """How often each cluster is drawn, (DRAWS, G)."""
    generator = np.random.Generator(np.random.Philox(_SEED))
    return generator.multinomial(groups, np.full(groups, 1 / groups), size=DRAWS).astype(np.float64)
