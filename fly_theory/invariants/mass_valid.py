"""The verdict is one."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["MassValid"]


@dataclass(frozen=True)
class MassValid(Invariant):
    """0 <= accepted <= q, residual >= 0, and the residual has mass whenever something is rejected."""

    @property
    def name(self) -> str:
        return "mass-valid"

    def judge(self, case: Case) -> Violation | None:
        accepted, residual = case.verdict
        zero = case.xp.zeros_like(case.q)
        if case.exceeds(zero, accepted):
            return Violation("accepted", values(accepted), values(zero), relation=">=")
        if case.exceeds(accepted, case.q):
            return Violation("accepted", values(accepted), values(case.q), relation="<=")
        if case.exceeds(zero, residual):
            return Violation("residual", values(residual), values(zero), relation=">=")
        rejected = case.xp.sum(case.q - accepted, axis=-1)
        if bool(rejected > case.tolerance) and not bool(case.xp.any(residual > 0)):
            return Violation("residual", values(residual), f"mass, since {values(rejected)} is rejected")
        return None
