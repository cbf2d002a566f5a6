"""Laws from samples, for verifiers that only samples can follow: tested as they come, stopped when clear."""

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import beta

from fly_theory.conformance.cases import Case
from fly_theory.conformance.emitted import Emitted, prefix_law
from fly_theory.conformance.judge import Judge
from fly_theory.conformance.laws import Text
from fly_theory.conformance.numbers import ratio
from fly_theory.conformance.scripted import Seeded
from fly_theory.conformance.sequential import Tally, detectable_tv, samples_for
from fly_theory.report import Estimate

__all__ = ["Sampled", "chance_at", "measured"]

# Samples are looked at after so many, then in rounds that grow by a quarter.
_ROUND = 256


@dataclass(kw_only=True)
class Sampled(Judge):
    """A verifier judged by samples.

    chance : false-alarm budget of each law
    resolution : the TV that a law is sampled long enough to find
    deadline : when to stop, as a reading of time.monotonic()
    detectable : the TV that was in reach on the case where it was worst, those looked at roughly left aside
    """

    seed: int
    chance: float
    resolution: float
    deadline: float = math.inf
    detectable: float = 0.0
    out_of_time: bool = False
    _rng: Seeded = field(init=False)

    def __post_init__(self) -> None:
        self._rng = Seeded(self.seed)

    @property
    def method(self) -> str:
        return "samples"

    def law(self, case: Case, *, roughly: bool = False) -> Emitted:
        """The law of the emitted text, give or take `radius`; `differs` is the answer of the sequential test.

        Raises
        ------
        CallFailed
            When a call fails.
        """
        tally = Tally(case.goal_law, case.positions)
        wanted = samples_for(tally, self.resolution * (2 if roughly else 1), self.chance)
        drafts = list(case.drafts())
        weights = np.array([float(weight) for weight, _ in drafts])
        handed = [case.inputs(tokens).floats() for _, tokens in drafts]
        goal = functools.cache(lambda text: tuple(map(float, case.goal(text))))
        lengths, longest, looks, differs = 0, case.draft_length + 1, 0, False
        while tally.total < wanted and not (differs and self._is_measured(tally, looks)):
            if time.monotonic() > self.deadline and tally.total:
                self.out_of_time = True
                break
            size = min(max(_ROUND, tally.total // 4), wanted - tally.total)
            which = self._rng.generator.choice(len(drafts), size=size, p=weights / weights.sum())
            emitted = [self.call(case, handed[i].copy(), self._rng) for i in which]
            lengths += sum(map(len, emitted))
            longest = max(longest, *map(len, emitted))
            tally.add([self._complete(case, tokens, goal) for tokens in emitted])
            looks += 1
            differs = differs or tally.log_evidence >= -math.log(self.chance)
        if not (differs or roughly):
            self.detectable = max(self.detectable, detectable_tv(tally, tally.total, self.chance))
        self.calls += tally.total
        chance = chance_at(looks, self.chance)
        found = measured(case, tally, chance, differs=differs)
        rate_radius = (longest - 1) * math.sqrt(math.log(2 / chance) / (2 * tally.total))
        return replace(found, tokens_per_call=lengths / tally.total, rate_radius=rate_radius)

    def _is_measured(self, tally: Tally, looks: int) -> bool:
        """Whether the interval of the TV leaves zero out."""
        return tally.tv > tally.radius(chance_at(looks, self.chance))

    def _complete(self, case: Case, emitted: Text, goal: Callable[[Text], Any]) -> Text:
        """The text that starts with an emission, continued with draws from the goal law."""
        text = emitted[: case.positions]
        while case.is_possible(text) and text not in case.goal_law:
            text = (*text, self._rng.choice(goal(text)))
        return text


def chance_at(look: int, chance: float) -> float:
    """The share of a chance that goes to one look; over all looks they sum to it, so one may stop at any of them."""
    return chance / (look * (look + 1)) if look else chance


def measured(case: Case, tally: Tally, chance: float, *, differs: bool) -> Emitted:
    """A tally as a law with intervals that hold but for this chance each."""
    law, radius, tv = tally.frequencies(), tally.radius(chance), tally.tv
    interval = Estimate(tv, max(0.0, tv - radius), min(1.0, tv + radius))
    return Emitted(case, law, radius, None, None, interval, _ratio(case, law, tally.total, chance), differs)


def _ratio(case: Case, law: Mapping[Text, float], samples: int, chance: float) -> Estimate:
    """The largest out(x)/p(x) of one token given the tokens before it that is certain, but for this chance.

    An interval of Clopper and Pearson for each token, the chance shared among all of them; the one whose lower end is
    largest is taken.
    """
    found = [Estimate(1.0, 1.0, 1.0)]
    level = chance / (2 * case.positions * len(law))
    for i in range(1, case.positions + 1):
        out, target = prefix_law(law, i), prefix_law(case.goal_law, i)
        before, target_before = prefix_law(law, i - 1), prefix_law(case.goal_law, i - 1)
        for text, share in out.items():
            if len(text) == i and target_before.get(text[:-1]):
                hits, tries = round(share * samples), round(before[text[:-1]] * samples)
                low = float(beta.ppf(level, hits, tries - hits + 1))
                high = float(beta.ppf(1 - level, hits + 1, tries - hits)) if hits < tries else 1.0
                right = float(target.get(text, 0) / target_before[text[:-1]])
                found.append(Estimate(*(float(ratio(value, right)) for value in (hits / tries, low, high))))
    return max(found, key=lambda estimate: (estimate.low, estimate.value))
