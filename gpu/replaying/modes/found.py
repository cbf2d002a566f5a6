"""What a replay found of failure modes: how often, how much of the divergence, and where at worst."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu.replaying.cases import Case
from gpu.replaying.estimates import Estimate, clustered_mean
from gpu.replaying.modes.mode import Mode
from gpu.replaying.tally import TV_EDGES, Tally

__all__ = ["ModeResult", "commonest", "mode_results"]


@dataclass(frozen=True)
class ModeResult:
    """One failure mode of one rule, or of the pair.

    Attributes
    ----------
    mode
        What was looked for.
    rate
        Share of the positions where it is found, or how often it is in a round of a block rule; with its interval.
    explained
        Share of the divergence (of `Mode.of`, in general) that it explains, with its interval; modes overlap, so
        that shares do not add up to one. None where the mode explains nothing or there is only rounding to explain.
    worst
        Where it explains most, worst first.
    """

    mode: Mode
    rate: Estimate
    explained: Estimate | None
    worst: tuple[Case, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "mode": self.mode.name,
            "rate": self.rate.to_json(),
            "explained": None if self.explained is None else self.explained.to_json(),
            "worst": [case.to_json() for case in self.worst],
        }


def mode_results(tally: Tally, modes: Iterable[Mode], look: Callable[[int, int], Case]) -> tuple[ModeResult, ...]:
    """The modes counted in a tally, those first that explain most, then those found most often.

    `look` reads a position of a block again.
    """
    results = [
        ModeResult(
            mode=mode,
            rate=_share(tally, mode.found, mode.per),
            explained=_share(tally, mode.explained, mode.of) if mode.of else None,
            worst=tuple(
                look(worst.block, worst.position)
                for worst in tally.worst.get(mode.explained, ())
                if worst.value >= TV_EDGES[0]
            ),
        )
        for mode in modes
        if mode.found in tally.measures
    ]
    return tuple(sorted(results, key=lambda result: (-_mean(result.explained), -result.rate.mean)))


def commonest(results: Sequence[ModeResult], count: int = 3) -> list[ModeResult]:
    """The modes found most often, of those found at all."""
    found = [result for result in results if result.rate.mean > 0]
    return sorted(found, key=lambda result: (-result.rate.mean, -_mean(result.explained)))[:count]


def _share(tally: Tally, part: str, whole: str | None) -> Estimate | None:
    """The sum of one value over that of another, or over its count: a share, its interval cut to [0, 1]."""
    clusters = [
        (totals[part].sum, totals[whole].sum if whole else totals[part].finite)
        for totals in tally.prompts.values()
        if part in totals
    ]
    counted = sum(totals[part].finite for totals in tally.prompts.values() if part in totals)
    if whole and sum(total for _, total in clusters) < counted * TV_EDGES[0]:
        return None
    mean, low, high = clustered_mean(clusters)
    if low is not None and high is not None:
        low, high = max(low, 0.0), max(mean, min(high, 1.0))
    return Estimate(mean, low, high, finite_mean=mean)


def _mean(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None else estimate.mean
