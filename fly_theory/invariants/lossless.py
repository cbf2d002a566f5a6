"""The rule emits the target."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Lossless"]


@dataclass(frozen=True)
class Lossless(Invariant):
    """out = p."""

    @property
    def name(self) -> str:
        return "lossless"

    def judge(self, case: Case) -> Violation | None:
        return Violation("out", values(case.out), values(case.p)) if case.differ(case.out, case.p) else None
