"""From totals by prompt to means with intervals that respect that positions of one prompt are not independent."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from scipy.special import stdtrit

from gpu.replaying.measures import BASELINE, LEAST, MATCHED, MEASURES, MOST, Measure
from gpu.replaying.tally import Tally

__all__ = ["CONFIDENCE", "Estimate", "Figures", "clustered_mean", "difference", "estimate", "plain"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over positions (or blocks), and the interval it lies in.

    Attributes
    ----------
    mean
        Infinite when a value is.
    low, high
        Interval of the mean at `CONFIDENCE`; None when there are fewer than two prompts or the mean is infinite.
    largest
        The largest value met.
    finite_mean
        Mean over the finite values; None when there is none.
    infinite_share
        Share of the values that are infinite.
    certified
        Where tokens are unseen or only summed: what the mean over these positions surely lies between, whatever the
        unseen tokens are. `mean` then stands in the middle (at the lower end where the upper one is infinite), and
        `low` and `high` allow for both this and the sampling of prompts.
    """

    mean: float
    low: float | None
    high: float | None
    largest: float | None = None
    finite_mean: float | None = None
    infinite_share: float = 0.0
    certified: tuple[float, float] | None = None

    def plus(self, shift: float) -> "Estimate":
        """The estimate of the finite quantity shifted by a constant."""
        moved = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("infinite_share", "certified")}
        between = self.certified and (self.certified[0] + shift, self.certified[1] + shift)
        return Estimate(
            **{name: None if value is None else value + shift for name, value in moved.items()}, certified=between
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        document = asdict(self)
        low, high = document.pop("low"), document.pop("high")
        return document | {"interval": None if low is None else [low, high]}


# Estimates by the name of what is measured; None where a figure is not identified by the trace.
Figures = Mapping[str, Estimate | None]


def plain(figures: Figures) -> dict[str, Any]:
    """Figures as plain values."""
    return {name: None if estimate is None else estimate.to_json() for name, estimate in figures.items()}


def estimate(tally: Tally, name: str, measures: Mapping[str, Measure] = MEASURES) -> Estimate:
    """The mean of one of the `measures`, its interval cut to where the measure can lie."""
    if f"{LEAST}{name}" in tally.measures:
        return _between(*(_estimate(tally, f"{end}{name}", measures) for end in (LEAST, "", MOST)))
    return _estimate(tally, name, measures)


def _between(least: Estimate, middle: Estimate, most: Estimate) -> Estimate:
    high = most.high if most.mean < math.inf or least.low is None else math.inf
    return replace(middle, low=least.low, high=high, certified=(least.mean, most.mean))


def _estimate(tally: Tally, name: str, measures: Mapping[str, Measure]) -> Estimate:
    totals = [totals[name] for totals in tally.prompts.values() if name in totals]
    finite, infinite = sum(total.finite for total in totals), sum(total.infinite for total in totals)
    if infinite:
        mean = clustered_mean([(total.sum, total.finite) for total in totals])[0] if finite else None
        return Estimate(math.inf, None, None, math.inf, mean, infinite / (finite + infinite))
    mean, low, high = clustered_mean([(total.sum, total.finite) for total in totals])
    measure = measures[reduce(str.removeprefix, (LEAST, MOST, MATCHED, BASELINE), name)]
    if low is not None and high is not None:
        low, high = max(low, min(measure.low, mean)), min(high, max(measure.high, mean))
    return Estimate(mean, low, high, max(total.largest for total in totals), mean)


def difference(tally: Tally, reference: Tally, name: str, reference_name: str | None = None) -> Estimate:
    """The mean of a finite measure minus that of another rule on the same blocks, with its own interval.

    `reference_name` is what the measure is called there, if it has another name.
    """
    theirs = reference_name or name
    if f"{LEAST}{name}" in tally.measures:
        least = _difference(tally, reference, f"{LEAST}{name}", f"{MOST}{theirs}")
        most = _difference(tally, reference, f"{MOST}{name}", f"{LEAST}{theirs}")
        return _between(least, _difference(tally, reference, name, theirs), most)
    return _difference(tally, reference, name, theirs)


def _difference(tally: Tally, reference: Tally, name: str, theirs: str) -> Estimate:
    pairs = [(totals[name], reference.prompts[prompt][theirs]) for prompt, totals in tally.prompts.items()]
    mean, low, high = clustered_mean([(ours.sum - theirs.sum, ours.finite) for ours, theirs in pairs])
    return Estimate(mean, low, high, finite_mean=mean)


def clustered_mean(clusters: Iterable[tuple[Fraction, Fraction | int]]) -> tuple[float, float | None, float | None]:
    """Pooled mean of clusters given as (sum, count), with its interval; no interval for a single cluster.

    Any other total may stand for the count: the mean is then the ratio of both totals.

    The variance is the cluster-robust one of a ratio, G/(G-1) sum_g (S_g - n_g mean)^2 / n^2 over the G clusters, and
    the quantile that of Student's t with G - 1 degrees of freedom (exact for normal clusters of equal size).
    """
    clusters = [(total, count) for total, count in clusters if count]
    n = sum(count for _, count in clusters)
    mean = sum((total for total, _ in clusters), start=Fraction(0)) / n
    if len(clusters) < 2:
        return float(mean), None, None
    freedom = len(clusters) - 1
    spread = math.fsum(float(total - count * mean) ** 2 for total, count in clusters)
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt((freedom + 1) / freedom * spread) / float(n)
    return float(mean), float(mean) - half, float(mean) + half
