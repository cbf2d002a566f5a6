"""The rule accepts as much as its ceiling allows."""

from dataclasses import dataclass

from fly_theory.arrays import Number
from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["AcceptsMost"]


@dataclass(frozen=True)
class AcceptsMost(Invariant):
    """The acceptance is sum min(q, factor * p), the most that any rule with out <= factor * p reaches."""

    factor: Number
    formula: str = ""

    @property
    def name(self) -> str:
        return f"accepts most under {self.formula or self.factor} p"

    def judge(self, case: Case) -> Violation | None:
        most = case.xp.sum(case.xp.minimum(case.q, case.bound(self.factor) * case.p), axis=-1)
        if case.differ(case.acceptance, most):
            return Violation("acceptance", values(case.acceptance), values(most))
        return None
