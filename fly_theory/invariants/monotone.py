"""Loosening a parameter never accepts less."""

import itertools
from dataclasses import dataclass
from typing import ClassVar, Literal

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["MonotoneIn"]


@dataclass(frozen=True)
class MonotoneIn(Invariant):
    """Moving `parameter` in its looser direction never lowers acceptance and never lowers TV(out, p).

    Judged between the rule's own value and the typical ones that the parameter declares.
    """

    parameter: str
    looser: Literal["smaller", "larger"]

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return f"acceptance and TV grow as {self.parameter} gets {self.looser}"

    def judge(self, case: Case) -> Violation | None:
        ordered = case.settings_of(self.parameter, looser=self.looser)
        family = [case.having({self.parameter: value}) for value in ordered]
        for (strict, tight), (loose, wide) in itertools.pairwise(zip(ordered, family, strict=True)):
            inputs = {f"{self.parameter} (tighter, then looser)": (strict, loose)}
            if case.exceeds(tight.acceptance, wide.acceptance):
                return Violation(
                    "acceptance when looser", values(wide.acceptance), values(tight.acceptance), ">=", inputs
                )
            if case.exceeds(tight.total_variation, wide.total_variation):
                return Violation(
                    "TV(out, p) when looser", values(wide.total_variation), values(tight.total_variation), ">=", inputs
                )
        return None
