"""The emitted law stays under a multiple of the target."""

from dataclasses import dataclass

from fly_theory.arrays import Number
from fly_theory.claims import Bound
from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Ceiling"]


@dataclass(frozen=True)
class Ceiling(Invariant):
    """out(x) <= factor * p(x) for every token x; the factor is a number, or a function of (p, q) written `formula`.

    An infinite factor promises nothing.
    """

    factor: Number | Bound
    formula: str = ""

    @property
    def name(self) -> str:
        return f"ceiling {self.formula or self.factor}"

    def judge(self, case: Case) -> Violation | None:
        factor = case.bound(self.factor)
        if not bool(case.xp.isfinite(factor)):
            return None
        limit = factor * case.p
        return (
            Violation("out", values(case.out), values(limit), relation="<=") if case.exceeds(case.out, limit) else None
        )
