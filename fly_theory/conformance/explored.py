"""Laws by exact execution, and the uniforms that two decisions were seen to share on the way."""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from fly_theory.conformance.cases import Case, Drafts
from fly_theory.conformance.emitted import Emitted, distance, largest_ratio
from fly_theory.conformance.exploration import Draws, Leaf, Opaque, explore
from fly_theory.conformance.guard import CallFailed, Inputs
from fly_theory.conformance.judge import Judge
from fly_theory.conformance.laws import ROUNDING, Text
from fly_theory.conformance.scripted import Scripted
from fly_theory.conformance.sharing import shared_uniform
from fly_theory.report import Estimate

__all__ = ["Explored", "NotExact", "Sighting"]


class NotExact(Exception):
    """A verifier cannot be executed exactly; the message says why."""


@dataclass(frozen=True)
class Sighting:
    """A uniform that two decisions share, described in a phrase, and the drafts it was seen on."""

    case: Case
    drafts: Drafts
    what: str


@dataclass(kw_only=True)
class Explored(Judge):
    """A verifier executed exactly: on rows of rationals, or on float64 rows (`floats`), where laws are rounded.

    shared : the uniforms seen so far that two decisions share
    """

    floats: bool = False
    coin_bits: int | None = None
    shared: list[Sighting] = field(default_factory=list)

    @property
    def method(self) -> str:
        """How laws are found, for the report."""
        return "exact execution, float64 rows" if self.floats else "exact execution"

    def law(self, case: Case, *, roughly: bool = False) -> Emitted:
        """The law of the emitted text, which is found exactly even when asked for roughly.

        Raises
        ------
        NotExact
            When uniforms are used in a way that only samples can follow, or answers do not depend on them alone.
        CallFailed
            When a call fails that can occur, and fails on float64 rows as well.
        """
        law: dict[Text, Any] = {}
        tokens_per_call, rounded, calls = Fraction(0), self.floats or case.rounding > 0, 0
        for weight, drafts in case.drafts():
            leaves = self.leaves(case, drafts)
            calls += len(leaves)
            for leaf in leaves:
                mass = weight * leaf.probability
                tokens_per_call += mass * len(leaf.value)
                rounded |= leaf.rounded
                for text, share in case.completed(leaf.value).items():
                    law[text] = law.get(text, Fraction(0)) + mass * share
        self.calls += calls
        tv = distance(law, case.goal_law)
        if not rounded:
            largest = largest_ratio(law, case.goal_law, case.positions)
            return Emitted(case, law, Fraction(0), tokens_per_call, Fraction(0), tv, largest, tv > 0)
        radius = float(max(ROUNDING, case.rounding))
        about = Estimate(float(tv), max(0.0, float(tv) - radius), float(tv) + radius)
        floats = {text: float(mass) for text, mass in law.items()}
        largest = float(largest_ratio(law, case.goal_law, case.positions, least=radius))
        return Emitted(case, floats, radius, float(tokens_per_call), radius, about, largest, tv > radius)

    def leaves(self, case: Case, drafts: Drafts) -> list[Leaf[Text]]:
        """Every way the verifier can go on these drafts."""
        inputs = case.inputs(drafts)
        if self.floats:
            inputs = inputs.floats()
        before = _global_generators()
        try:
            found = explore(lambda draws: self._run(case, inputs, draws), coin_bits=self.coin_bits)
            again = self._run(case, inputs, Draws((), self.coin_bits))
        except Opaque as opaque:
            raise NotExact(str(opaque)) from None
        if again != found[0].value or not _same_generators(before, _global_generators()):
            msg = "answers do not depend on rng alone"
            raise NotExact(msg)
        label = shared_uniform(found)
        if label is not None:
            self.shared.append(Sighting(case, drafts, label))
        return [leaf for leaf in found if leaf.value]

    def coin_steps(self, case: Case, drafts: Drafts) -> Iterator[tuple[float, ...]]:
        """Uniforms of which one is just what the verifier compares it with."""
        found = {
            (*leaf.coins[:i], float(step), *leaf.coins[i + 1 :])
            for leaf in self.leaves(case, drafts)
            for i, steps in enumerate(leaf.edges)
            for step in steps
        }
        yield from sorted(found)

    def _run(self, case: Case, inputs: Inputs, draws: Draws) -> Text:
        try:
            return self.call(case, inputs.copy(), draws)
        except CallFailed as failed:
            nothing: Text = ()
            leaf = draws.leaf(nothing)
            if leaf.rounded and leaf.probability < ROUNDING:
                return ()
            try:
                self._confirm(case, inputs, leaf)
            except CallFailed as again:  # what was interrupted may raise from then on: a half-made import, a held lock
                raise again if failed.raised else failed from None
            raise NotExact(failed.what) from failed

    def _confirm(self, case: Case, inputs: Inputs, leaf: Leaf[Text]) -> None:
        """Repeat a failed call on float64 rows and uniforms; raises CallFailed if it fails again."""
        concrete = inputs if self.floats else inputs.floats()
        self.call(case, concrete.copy(), Scripted(leaf.coins, leaf.choices))


def _global_generators() -> Sequence[Any]:
    """The states of the global generators a verifier might draw from instead of `rng`."""
    torch = sys.modules.get("torch")
    return (
        random.getstate(),
        np.random.get_state(legacy=True),  # noqa: NPY002
        torch.get_rng_state().numpy() if torch is not None else 0,
    )


def _same_generators(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return (
        before[0] == after[0]
        and all(np.array_equal(old, new) for old, new in zip(before[1], after[1], strict=True))
        and bool(np.array_equal(before[2], after[2]))
    )
