"""Whoever finds the law of what a verifier emits, exactly or from samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fly_theory.conformance.cases import Case, Drafts
from fly_theory.conformance.emitted import Emitted
from fly_theory.conformance.guard import Inputs, Verifier, call
from fly_theory.conformance.laws import Text

__all__ = ["Judge"]


@dataclass(kw_only=True)
class Judge:
    """A verifier, the time limit of a call of it, and the number of calls made for laws."""

    verifier: Verifier
    call_seconds: float
    calls: int = 0

    @property
    def method(self) -> str:
        """How laws are found, for the report."""
        raise NotImplementedError

    def law(self, case: Case, *, roughly: bool = False) -> Emitted:
        """The law of the emitted text; `roughly` says that twice the usual deviation is small enough to look for.

        Raises
        ------
        CallFailed
            When a call fails.
        """
        raise NotImplementedError

    def call(self, case: Case, inputs: Inputs, rng: Any) -> Text:
        """What the verifier emits on these inputs.

        Raises
        ------
        CallFailed
            When the call fails.
        """
        return call(self.verifier, inputs, rng, vocabulary=case.vocabulary, seconds=self.call_seconds)

    def coin_steps(self, case: Case, drafts: Drafts) -> Iterator[tuple[float, ...]]:
        """Uniforms of which one is just what the verifier compares it with, where that is known."""
        return iter(())
