"""A perfect draft changes nothing."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["FixedPoint"]


@dataclass(frozen=True)
class FixedPoint(Invariant):
    """With q = p every draft token is accepted and out = p. The q of the pair is not looked at."""

    @property
    def name(self) -> str:
        return "accepts everything at p = q"

    def judge(self, case: Case) -> Violation | None:
        equal = case.at(case.p, case.p)
        inputs = {"q": values(case.p)}
        if case.differ(equal.acceptance, case.array(1)):
            return Violation("acceptance", values(equal.acceptance), 1, inputs=inputs)
        if case.differ(equal.out, case.p):
            return Violation("out", values(equal.out), values(case.p), inputs=inputs)
        return None
