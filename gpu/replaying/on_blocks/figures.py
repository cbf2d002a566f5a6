"""From the counts of block rules to their figures: ratios of sums over all blocks, with intervals by prompt."""

from collections.abc import Sequence

import numpy as np

from gpu.replaying.bootstrap import bootstrap_interval
from gpu.replaying.estimates import Estimate
from gpu.replaying.on_blocks.measures import BLOCK_FIGURES
from gpu.replaying.tally import Tally

__all__ = ["Count", "block_figure", "block_gain", "ratio", "ratio_difference"]

# By prompt: an exact sum, and the sum it is divided by.
Count = tuple[float, float]


def block_figure(tally: Tally, name: str) -> Estimate | None:
    """A figure of `BLOCK_FIGURES`; None where the rule has none, or nothing to divide by was met."""
    figure = BLOCK_FIGURES[name]
    if not {figure.numerator, figure.denominator} <= tally.measures:
        return None
    return ratio(_counts(tally, figure.numerator, figure.denominator), low=figure.low, high=figure.high)


def block_gain(tally: Tally, lossless: Tally) -> Estimate | None:
    """Tokens per call more than the token-level lossless rule makes of the same blocks, draft by draft."""
    theirs = [
        (
            float(totals["accepted_per_call"].sum) + totals["accepted_per_call"].finite,
            totals["accepted_per_call"].finite,
        )
        for totals in (lossless.prompts[prompt] for prompt in sorted(tally.prompts))
    ]
    return ratio_difference(_counts(tally, "emitted", "calls"), theirs)


def ratio(counts: Sequence[Count], *, low: float, high: float) -> Estimate | None:
    """A ratio of sums, its interval cut to where it can lie; None when nothing was counted below the line."""
    value = float(_ratio(np.sum(counts, axis=0)))
    if np.isnan(value):
        return None
    interval = bootstrap_interval(_ratio, counts)
    if interval is None:
        return Estimate(value, None, None, finite_mean=value)
    ends = max(interval[0], min(low, value)), min(interval[1], max(high, value))
    return Estimate(value, *ends, finite_mean=value)


def ratio_difference(ours: Sequence[Count], theirs: Sequence[Count]) -> Estimate | None:
    """A ratio of sums minus another over the same prompts, which are drawn again together."""
    counts = [(*a, *b) for a, b in zip(ours, theirs, strict=True)]
    value = float(_difference(np.sum(counts, axis=0)))
    if np.isnan(value):
        return None
    low, high = bootstrap_interval(_difference, counts) or (None, None)
    return Estimate(value, low, high, finite_mean=value)


def _counts(tally: Tally, numerator: str, denominator: str) -> list[Count]:
    by_prompt = (tally.prompts[prompt] for prompt in sorted(tally.prompts))
    return [(float(totals[numerator].sum), float(totals[denominator].sum)) for totals in by_prompt]


def _ratio(sums: np.ndarray) -> np.ndarray:
    above, below = sums[..., 0], sums[..., 1]
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _difference(sums: np.ndarray) -> np.ndarray:
    return _ratio(sums[..., :2]) - _ratio(sums[..., 2:])
