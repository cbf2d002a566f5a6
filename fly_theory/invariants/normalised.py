"""The induced distribution is one."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Normalised"]


@dataclass(frozen=True)
class Normalised(Invariant):
    """out >= 0 and sum out = 1."""

    @property
    def name(self) -> str:
        return "normalised"

    def judge(self, case: Case) -> Violation | None:
        zero, total = case.xp.zeros_like(case.out), case.xp.sum(case.out, axis=-1)
        if case.exceeds(zero, case.out):
            return Violation("out", values(case.out), values(zero), relation=">=")
        if case.differ(total, case.array(1)):
            return Violation("sum of out", values(total), 1)
        return None
