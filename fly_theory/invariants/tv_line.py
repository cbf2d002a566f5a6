"""The rule is as close to the target as its rejections allow."""

from dataclasses import dataclass

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["OnTheLine"]


@dataclass(frozen=True)
class OnTheLine(Invariant):
    """TV(out, p) = TV(p, q) - P_rej, the least any rule with this rejection probability reaches.

    Yin et al. 2024 (arXiv 2411.00841), Theorems 4 and 5.
    """

    @property
    def name(self) -> str:
        return "on the TV line"

    def judge(self, case: Case) -> Violation | None:
        line = case.distance(case.p, case.q) - (1 - case.acceptance)
        if case.differ(case.total_variation, line):
            return Violation("TV(out, p)", values(case.total_variation), values(line))
        return None
