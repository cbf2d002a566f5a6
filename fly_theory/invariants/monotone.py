"""Loosening a parameter never accepts less."""

import itertools
from dataclasses import dataclass
from typing import ClassVar, Literal

from fly_theory.arrays import as_fraction
from fly_theory.errors import InvalidInput
from fly_theory.invariants.base import Case, Invariant, Violation, values
from fly_theory.parameters import parameters

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
        declared = {p.name: p.typical for p in parameters(type(case.rule))}
        if self.parameter not in declared:
            known = ", ".join(declared) or "none"
            msg = f"{case.rule.spec} declares no parameter {self.parameter!r}; it declares {known}"
            raise InvalidInput(msg)
        settings = {getattr(case.rule, self.parameter), *declared[self.parameter]}
        ordered = sorted(settings, key=as_fraction, reverse=self.looser == "smaller")
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
