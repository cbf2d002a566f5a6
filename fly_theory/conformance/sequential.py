"""A test of counts against a known law that may be looked at after every sample.

The evidence against the law is the likelihood of the counts under a mixture of alternatives, over that under the law.
Under the law it is a nonnegative martingale that starts at one, so it ever exceeds 1/a with probability at most a
(Ville's inequality): stopping as soon as it does keeps the false-alarm budget a, however often one looks. The mixture
is over Dirichlet laws around the tested one at several widths, and over how many tokens of the text are looked at, so
that large and small deviations, early and late in the text, are all found soon.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from fly_theory.conformance.laws import Text

__all__ = ["Tally", "detectable_tv", "log_evidence", "samples_for"]

Floats = npt.NDArray[np.float64]

# Widths of the alternatives: how many samples a prior of theirs weighs.
_WIDTHS = (4.0, 32.0, 256.0, 2048.0, 16384.0)
# Deviations counted as detectable are found with this many standard deviations to spare (power about 0.95).
_SPARE = 1.645
_MOST_SAMPLES = 10_000_000


def log_evidence(counts: Floats, law: Floats) -> float:
    """Log of the evidence that counts (cells,) do not follow `law` (cells,); inf where one is impossible."""
    if np.any(counts[law == 0] > 0):
        return math.inf
    counts, law = counts[law > 0], law[law > 0]
    total, likelihood = counts.sum(), float(counts @ np.log(law))
    widths = np.array(_WIDTHS)[:, None]
    mixed = (gammaln(counts + widths * law) - gammaln(widths * law)).sum(axis=1)
    mixed += gammaln(widths[:, 0]) - gammaln(widths[:, 0] + total)
    return float(logsumexp(mixed) - math.log(len(_WIDTHS)) - likelihood)


class Tally:
    """Counts of texts, tested against the law they should follow by their first 1, 2, ... tokens."""

    def __init__(self, law: Mapping[Text, Any], positions: int) -> None:
        self.texts = list(law)
        self.law: Floats = np.array([float(mass) for mass in law.values()])
        self.counts: Floats = np.zeros(len(law))
        self.impossible: dict[Text, int] = {}
        self._index = {text: i for i, text in enumerate(self.texts)}
        self._merge = [_merge_by_prefix(self.texts, i) for i in range(1, positions + 1)]

    def add(self, texts: Sequence[Text]) -> None:
        """Count some more samples."""
        for text in texts:
            if text in self._index:
                self.counts[self._index[text]] += 1
            else:
                self.impossible[text] = self.impossible.get(text, 0) + 1

    @property
    def total(self) -> int:
        """Number of samples."""
        return int(self.counts.sum()) + sum(self.impossible.values())

    @property
    def log_evidence(self) -> float:
        """Log of the evidence against the law."""
        return math.inf if self.impossible else self._log_evidence(self.counts)

    @property
    def tv(self) -> float:
        """Total variation between the frequencies and the law."""
        outside = sum(self.impossible.values()) / self.total
        return float(np.abs(self.counts / self.total - self.law).sum() + outside) / 2

    def frequencies(self) -> dict[Text, float]:
        """Relative frequency of every text seen."""
        seen = {**dict(zip(self.texts, self.counts.tolist(), strict=True)), **self.impossible}
        return {text: count / self.total for text, count in seen.items() if count}

    def radius(self, chance: float) -> float:
        """How far in TV the true law is from the frequencies at most, but for this chance (Weissman et al. 2003)."""
        cells = len(self.texts) + len(self.impossible)
        return min(1.0, math.sqrt((cells * math.log(2) + math.log(1 / chance)) / (2 * max(self.total, 1))))

    def _log_evidence(self, counts: Floats) -> float:
        views = [log_evidence(merge @ counts, merge @ self.law) for merge in self._merge]
        return float(logsumexp(views) - math.log(len(views)))

    @functools.cached_property
    def _balanced(self) -> tuple[Floats, float]:
        """A direction in which a deviation of given TV is hard to see: mass moved between halves of the texts."""
        half = np.zeros(len(self.law), dtype=bool)
        for i in np.argsort(-self.law, kind="stable"):
            half[i] = self.law[half].sum() + self.law[i] <= 0.5 or not half.any()
        share = float(self.law[half].sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            direction = np.where(half, self.law / share, -self.law / (1 - share))
        return direction, min(share, 1 - share)

    def sees(self, tv: float, samples: int, chance: float) -> bool:
        """Whether a law that far in TV is found after that many samples, but for the chance of a false alarm."""
        if samples * tv < 3:  # fewer than 19 in 20 experiments hold a deviating sample
            return False
        direction, room = self._balanced
        if tv >= room:
            return True
        deviating = self.law + tv * direction
        spare = _SPARE * 2 * tv * math.sqrt(samples)
        return self._log_evidence(samples * deviating) - spare >= math.log(1 / chance)


def samples_for(tally: Tally, tv: float, chance: float) -> int:
    """The number of samples after which a law that far in TV is found, with power about 0.95."""
    samples = 64
    while samples < _MOST_SAMPLES and not tally.sees(tv, samples, chance):
        samples = samples * 5 // 4
    return samples


def detectable_tv(tally: Tally, samples: int, chance: float) -> float:
    """The smallest TV that is found after that many samples, with power about 0.95."""
    low, high = 0.0, 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if tally.sees(middle, samples, chance) else (middle, high)
    return high


def _merge_by_prefix(texts: Sequence[Text], positions: int) -> Floats:
    """The matrix (prefixes, texts) that sums counts of texts into counts of their first tokens."""
    prefixes = {text[:positions]: None for text in texts}
    index = {prefix: i for i, prefix in enumerate(prefixes)}
    merge = np.zeros((len(prefixes), len(texts)))
    for column, text in enumerate(texts):
        merge[index[text[:positions]], column] = 1
    return merge
