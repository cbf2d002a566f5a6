"""The rule emits a stated law."""

from dataclasses import dataclass, field

from fly_theory.claims import Bound
from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Induces"]


@dataclass(frozen=True)
class Induces(Invariant):
    """out = law(p, q), the law being written `formula`."""

    formula: str
    law: Bound = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"out = {self.formula}"

    def judge(self, case: Case) -> Violation | None:
        law = case.bound(self.law)
        return Violation("out", values(case.out), values(law)) if case.differ(case.out, law) else None
