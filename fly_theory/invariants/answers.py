"""The rule answers."""

from dataclasses import dataclass

from fly_theory.errors import ZeroResidualError
from fly_theory.invariants.base import Case, Invariant, RuleFailure, Violation

__all__ = ["Answers"]


@dataclass(frozen=True)
class Answers(Invariant):
    """Verdict, induced distribution and acceptance come back for every pair, each with the shape it should have.

    A ZeroResidualError is an answer: `MassValid` judges what led to it.
    """

    @property
    def name(self) -> str:
        return "answers"

    def judge(self, case: Case) -> Violation | None:
        try:
            _ = case.verdict, case.out, case.acceptance
        except RuleFailure as failure:
            if not isinstance(failure.__cause__, ZeroResidualError):
                return Violation("the answer", got=str(failure), expected="arrays of the shape of p and q")
        return None
