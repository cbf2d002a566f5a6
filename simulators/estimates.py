"""Estimates with intervals, all computed from integer counts, so that they depend on nothing but the counts.

Rates carry Clopper-Pearson intervals, whose coverage is at least what is stated for every number of trials. Means carry
Student intervals, right in the limit of many trials, or empirical-Bernstein ones (Maurer & Pontil 2009, arXiv
0907.3740, Theorem 4), wider and right for every number of trials of a figure with a known range.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

__all__ = [
    "MEAN_INTERVALS",
    "Counts",
    "Estimate",
    "Interval",
    "MeanInterval",
    "clopper_pearson",
    "mean",
    "rate",
    "rates",
]

Counts = np.ndarray[Any, np.dtype[np.int64]]
MeanInterval = Literal["student", "empirical-bernstein"]
MEAN_INTERVALS = {"student": "Student", "empirical-bernstein": "empirical Bernstein"}


class Interval(NamedTuple):
    """Both ends of a two-sided interval, or of an array of them."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Estimate:
    """A figure, its estimate, and the interval that covers the true value with probability `confidence`.

    name : what is estimated; with an `outcome`, the probability that it has this outcome.
    exact : the true value, where it is known.
    """

    name: str
    outcome: str | None
    value: float
    low: float
    high: float
    method: str
    confidence: float
    exact: float | None = None

    @property
    def label(self) -> str:
        """The name, or `P(name = outcome)`."""
        return self.name if self.outcome is None else f"P({self.name} = {self.outcome})"

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low

    def covers(self, value: float) -> bool:
        """Whether `value` lies in the interval."""
        return self.low <= value <= self.high

    def mapped(self, name: str, monotone: Callable[[float], float], *, exact: float | None = None) -> "Estimate":
        """The estimate of a monotone function of this figure; its interval covers whenever this one does."""
        low, high = sorted((monotone(self.low), monotone(self.high)))
        return replace(self, name=name, value=monotone(self.value), low=low, high=high, exact=exact)


def clopper_pearson(successes: Counts, trials: int, confidence: float) -> Interval:
    """Intervals (...,) for probabilities after `successes` (...,) in `trials` independent trials."""
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = stats.beta.ppf(tail, np.maximum(successes, 1), failures + 1)
    high = stats.beta.ppf(1 - tail, successes + 1, np.maximum(failures, 1))
    return Interval(np.where(successes > 0, low, 0.0), np.where(failures > 0, high, 1.0))


def rates(
    name: str, counts: Counts, confidence: float, *, outcomes: Iterable[Any] | None = None, exact: Any = None
) -> list[Estimate]:
    """The rate of each outcome (0, 1, ... unless named) from how often it occurred; each interval covers by itself."""
    trials = int(counts.sum())
    low, high = clopper_pearson(counts, trials, confidence)
    return [
        Estimate(
            name,
            str(outcome),
            int(counts[i]) / trials,
            float(low[i]),
            float(high[i]),
            "Clopper-Pearson",
            confidence,
            None if exact is None else float(exact[i]),
        )
        for i, outcome in enumerate(range(len(counts)) if outcomes is None else outcomes)
    ]


def rate(name: str, counts: Counts, confidence: float, *, exact: float | None = None) -> Estimate:
    """The rate of a yes from the counts (2,) of no and yes."""
    found = rates(name, counts, confidence, exact=None if exact is None else (1 - exact, exact))[1]
    return replace(found, outcome=None)


def mean(
    name: str,
    values: Sequence[float],
    counts: Counts,
    confidence: float,
    *,
    interval: MeanInterval,
    exact: float | None = None,
) -> Estimate:
    """The mean of a figure from how often it took each of all its possible values."""
    at, trials = np.asarray(values, dtype=np.float64), int(counts.sum())
    value = float(counts @ at) / trials
    variance = float(counts @ (at - value) ** 2) / (trials - 1)
    low, high = float(at.min()), float(at.max())
    if interval == "student":
        half = float(stats.t.ppf((1 + confidence) / 2, trials - 1)) * (variance / trials) ** 0.5
    else:
        log = float(np.log(4 / (1 - confidence)))
        half = (2 * variance * log / trials) ** 0.5 + 7 * (high - low) * log / (3 * (trials - 1))
    ends = max(low, value - half), min(high, value + half)
    return Estimate(name, None, value, *ends, MEAN_INTERVALS[interval], confidence, exact)
