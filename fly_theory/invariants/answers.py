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
        row = tuple(case.p.shape)
        try:
            shapes = {
                "accepted": (case.verdict.accepted, row),
                "residual": (case.verdict.residual, row),
                "out": (case.out, row),
                "acceptance": (case.acceptance, ()),
            }
        except RuleFailure as failure:
            if isinstance(failure.__cause__, ZeroResidualError):
                return None
            return Violation("the answer", got=str(failure), expected="a verdict")
        for quantity, (array, expected) in shapes.items():
            got = tuple(getattr(array, "shape", ("no array",)))
            if got != expected:
                return Violation(f"shape of {quantity}", got=got, expected=expected)
        return None
