"""The emitted law stays on a set of tokens."""

from dataclasses import dataclass, field

from fly_theory.claims import Bound
from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["SupportWithin"]


@dataclass(frozen=True)
class SupportWithin(Invariant):
    """out(x) > 0 only where allowed(p, q) is True; the set is described by `what`."""

    what: str
    allowed: Bound = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"support within {self.what}"

    def judge(self, case: Case) -> Violation | None:
        limit = case.xp.where(case.bound(self.allowed), case.xp.ones_like(case.p), case.xp.zeros_like(case.p))
        return (
            Violation("out", values(case.out), values(limit), relation="<=") if case.exceeds(case.out, limit) else None
        )
