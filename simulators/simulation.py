"""A simulation: how it is set, how it is run, and what it found."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fly_theory.errors import InvalidInput, ZeroResidualError
from simulators.estimates import MEAN_INTERVALS, Counts, Estimate, MeanInterval
from simulators.tally import Experiment, Progress, looks, tally

__all__ = ["Run", "Settings", "Simulation", "Summary"]

Summary = Callable[[Mapping[str, Counts], float], list[Estimate]]


class Settings(TypedDict, total=False):
    """Settings that every simulation takes.

    confidence : of every interval; 0.99 unless given.
    mean_interval : "student" (the default) or "empirical-bernstein".
    until : stop as soon as the interval of the first estimate is no wider than this; looked at after 1,000 trials,
        2,000, 4,000 and so on.
    batch, progress : as in `simulators.tally`; neither changes a result.
    """

    confidence: float
    mean_interval: MeanInterval
    until: float | None
    batch: int | None
    progress: Progress | None


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a simulation found.

    subject : what was simulated, as a SPEC where it has one.
    trials, seed : trial i of a seed is always the same, however many are run and however they are batched.
    confidence : of every interval on its own.
    looks : how often it was to be asked whether the first estimate is tight enough. Every interval is taken at
        confidence 1 - (1 - confidence) / looks, so that stopping early costs no coverage.
    estimates : the headline figure first.
    counts : how often every outcome of every recorded figure occurred.
    """

    subject: str
    trials: int
    seed: int
    confidence: float
    looks: int
    estimates: tuple[Estimate, ...]
    counts: Mapping[str, Counts]

    def __getitem__(self, label: str) -> Estimate:
        """The estimate with this label, e.g. `acceptance` or `P(kept = 3)`."""
        for estimate in self.estimates:
            if estimate.label == label:
                return estimate
        msg = f"there is no estimate {label!r}; there are {', '.join(repr(e.label) for e in self.estimates)}"
        raise InvalidInput(msg)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        plain = {name: getattr(self, name) for name in ("subject", "trials", "seed", "confidence", "looks")}
        estimates = [dataclasses.asdict(estimate) for estimate in self.estimates]
        return plain | {"estimates": estimates, "counts": {name: c.tolist() for name, c in self.counts.items()}}


@dataclass(frozen=True, kw_only=True)
class Run:
    """How to run any experiment.

    Raises
    ------
    InvalidInput
        For a setting outside what is allowed.
    """

    trials: int
    seed: int
    confidence: float = 0.99
    mean_interval: MeanInterval = "student"
    until: float | None = None
    batch: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            msg = f"confidence={self.confidence!r} is outside (0, 1)"
            raise InvalidInput(msg)
        if self.mean_interval not in MEAN_INTERVALS:
            msg = f"mean_interval={self.mean_interval!r} is not one of {', '.join(map(repr, MEAN_INTERVALS))}"
            raise InvalidInput(msg)
        if self.until is not None and not self.until > 0:
            msg = f"until={self.until!r} is not a width > 0"
            raise InvalidInput(msg)

    def of(self, subject: str, experiment: Experiment, inputs: Any, summary: Summary) -> Simulation:
        """Run an experiment, and sum its counts up in estimates at a confidence.

        Raises
        ------
        ZeroResidualError
            When a trial recorded as its outcome `stuck` that a rule had no token to emit.
        """
        asked = 1 if self.until is None else len(looks(self.trials))
        confidence = 1 - (1 - self.confidence) / asked

        def tight(counts: Mapping[str, Counts]) -> bool:
            return summary(counts, confidence)[0].width <= (self.until or 0)

        counts = tally(
            experiment,
            inputs,
            trials=self.trials,
            seed=self.seed,
            batch=self.batch,
            enough=None if self.until is None else tight,
            progress=self.progress,
        )
        trials = int(next(iter(counts.values())).sum())
        if counts.get("stuck", (0, 0))[1]:
            msg = (
                f"{subject} had no token to emit in {counts['stuck'][1]} of {trials} trials: its residual was all zero"
            )
            raise ZeroResidualError(msg)
        estimates = tuple(summary(counts, confidence))
        return Simulation(subject, trials, self.seed, self.confidence, asked, estimates, counts)
