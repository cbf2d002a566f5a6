"""Everything that is tried on one verifier, whatever way its laws are found."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fly_theory.conformance import metamorphic, probes
from fly_theory.conformance.cases import Case
from fly_theory.conformance.emitted import Emitted, distance, prefix_law, readable
from fly_theory.conformance.explored import NotExact
from fly_theory.conformance.guard import CallFailed
from fly_theory.conformance.judge import Judge
from fly_theory.conformance.laws import Text
from fly_theory.conformance.scripted import LAST_COIN
from fly_theory.conformance.suite import Suite
from fly_theory.report import Result, Witness, show

__all__ = ["Observations", "observe", "worst_of"]

_EXTRA_IDS = 2
# Uniforms in the order they are drawn; the last one goes on.
_COINS = ((0.0,), (LAST_COIN,), (0.0, LAST_COIN), (LAST_COIN, 0.0))
_WANTED = {
    "same seed, same answer": "the same for the same seed",
    "inputs left as they were": "made without writing to the inputs",
    "coin edges": "tokens that the target gives mass",
    "zero residual": "an error, or a token that the target gives mass",
    "NaN in, error out": "an error",
}


@dataclass
class Observations:
    """What was seen of one verifier.

    emitted : its law on every case
    changed : its law on experiments that were changed in ways that must not matter
    changes : what these changes say
    informing : results that decide nothing
    left_out : number of cases that there was no time for
    """

    emitted: list[Emitted] = field(default_factory=list)
    changed: list[Emitted] = field(default_factory=list)
    changes: list[Result] = field(default_factory=list)
    informing: list[Result] = field(default_factory=list)
    left_out: int = 0


def observe(judge: Judge, cases: list[Case], suite: Suite, deadline: float) -> Observations:
    """Try everything; after the deadline, a reading of time.monotonic(), no further case is begun.

    Raises
    ------
    NotExact, CallFailed
        As the judge does.
    """
    seen = Observations()
    for case in cases:
        if seen.emitted and time.monotonic() > deadline:
            seen.left_out += 1
        else:
            seen.emitted.append(judge.law(case))
    original = next((emitted for emitted in seen.emitted if emitted.case is suite.plain), None)
    seen.changes.extend(_Changes(judge, original or judge.law(suite.plain), seen.changed).results())
    seen.informing.extend(_probes(judge, suite))
    return seen


@dataclass
class _Changes:
    """The metamorphic checks on one case; the laws they find are added to `found`."""

    judge: Judge
    original: Emitted
    found: list[Emitted]

    def results(self) -> Iterator[Result]:
        """One result a check."""
        plain = self.original.case
        yield self._without_drafts()
        yield self._follows("padded vocabulary", metamorphic.widened(plain, _EXTRA_IDS), self.original.law)
        if self._one_width:
            expected = metamorphic.renamed(self.original.law, plain.vocabulary)
            yield self._follows("renamed ids", metamorphic.reversed_ids(plain), expected)
        if plain.candidates is not None:
            name = "repeated candidate"
            yield worst_of(self._follows(name, case, self.original.law) for case in metamorphic.repeated(plain))
        if hasattr(self.judge.verifier, "batch"):
            yield worst_of(self._batches())

    def _without_drafts(self) -> Result:
        name = "K = 0 agrees with K > 0"
        if self.original.case.drafted_goal:
            return Result(name, "not applicable", detail="the goal depends on the draft")
        try:
            return self._follows(name, metamorphic.undrafted(self.original.case), prefix_law(self.original.law, 1))
        except (CallFailed, NotExact) as failed:
            return Result(name, "not applicable", detail=f"with nothing drafted, it {failed}")

    @property
    def _one_width(self) -> bool:
        return len(self.original.case.told(())) == self.original.case.vocabulary

    def _follows(self, name: str, changed: Case, expected: Mapping[Text, Any], judge: Judge | None = None) -> Result:
        found = (judge or self.judge).law(changed, roughly=True)
        self.found.append(found)
        off = distance(found.law, expected)
        broken = found.differs and not self.original.differs
        if not broken and off <= found.radius + self.original.radius:
            return Result(name, "held", 1)
        witness = Witness(
            changed.shown(), "out after the change", readable(found.law, changed), readable(expected, changed)
        )
        return Result(name, "refuted", 1, witness, f"TV {show(off)} apart")

    def _batches(self) -> Iterator[Result]:
        """The first tokens of two requests in one batch, in either order: as if each were alone."""
        first = replace(self.original.case, positions=1)
        second = metamorphic.reversed_ids(first) if self._one_width else first
        alone = [self.judge.law(case, roughly=True) for case in (first, second)]
        batch: Any = self.judge.verifier
        judge = replace(self.judge, verifier=metamorphic.first_of_each(batch.batch))
        for one, other in (alone, alone[::-1]):
            expected: dict[Text, Any] = {
                (a, b + first.vocabulary): mass * other_mass
                for ((a,), mass), ((b,), other_mass) in itertools.product(one.law.items(), other.law.items())
            }
            yield self._follows("requests in a batch", metamorphic.Batch.of(one.case, other.case), expected, judge)


def _probes(judge: Judge, suite: Suite) -> Iterator[Result]:
    plain = suite.plain
    yield _probed("same seed, same answer", list(probes.same_seed(judge, plain)))
    yield _probed("inputs left as they were", list(probes.untouched(judge, plain)))
    yield _probed("coin edges", list(_coin_edges(judge, suite.edges)))
    if plain.candidates is None:
        left = probes.zero_residual(judge, plain)
        if left is None:
            detail = "no rejection was left without mass to redraw from"
            yield Result("zero residual", "not applicable", detail=detail, asked=False)
        else:
            yield _probed("zero residual", [left])
    yield _probed("NaN in, error out", [probes.nan_rows(judge, plain)])


def _coin_edges(judge: Judge, cases: Iterable[Case]) -> Iterator[probes.Found]:
    for case in cases:
        for _, drafts in case.drafts():
            steps = judge.coin_steps(case, drafts)
            for coins in (*_COINS, *steps):
                yield probes.coin_edges(judge, case, drafts, coins)


def _probed(name: str, found: list[probes.Found]) -> Result:
    wrong = [each for each in found if not each.fine]
    if not wrong:
        return Result(name, "held", len(found), detail=found[0].what if len(found) == 1 else "", asked=False)
    witness = Witness(wrong[0].inputs.shown(), "the answer", wrong[0].what, _WANTED[name])
    return Result(name, "refuted", len(found), witness, wrong[0].what, asked=False)


def worst_of(results: Iterable[Result]) -> Result:
    """The first refutation among results of one name, or else the first of them, with the cases of all."""
    found = list(results)
    worst = next((result for result in found if result.outcome == "refuted"), found[0])
    return replace(worst, cases=sum(result.cases for result in found))
