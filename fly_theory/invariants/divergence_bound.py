"""The emitted law stays within a divergence of the target."""

from dataclasses import dataclass

from fly_theory.arrays import Number
from fly_theory.claims import Bound
from fly_theory.divergence import DIVERGENCES
from fly_theory.errors import unknown_name
from fly_theory.invariants.base import Case, Invariant, Violation

__all__ = ["DivergenceBound"]


@dataclass(frozen=True)
class DivergenceBound(Invariant):
    """divergence(p, out) <= limit: a divergence by its name in `fly_theory.divergence`, a limit written `formula`."""

    divergence: str
    limit: Number | Bound
    formula: str

    @property
    def name(self) -> str:
        return f"{self.divergence}(p, out) <= {self.formula}"

    def judge(self, case: Case) -> Violation | None:
        if self.divergence not in DIVERGENCES:
            raise unknown_name(kind="divergence", name=self.divergence, known=DIVERGENCES)
        found = DIVERGENCES[self.divergence](case.p, case.out)
        limit = case.bound(self.limit)
        if case.exceeds(found, limit):
            return Violation(f"{self.divergence}(p, out)", float(found), float(limit), relation="<=")
        return None
