"""The rule answers."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fly_theory.errors import ZeroResidualError
from fly_theory.invariants.base import Case, Invariant, RuleFailure, Violation, values

__all__ = ["Answers"]

_ALMOST_ONE = Fraction(999, 1000)
# Coins that keep, that reject, and that redraw from either end.
_COINS = ((0, 0), (Fraction(1, 2), Fraction(1, 2)), (_ALMOST_ONE, 0), (_ALMOST_ONE, _ALMOST_ONE))
_WANTED = "arrays of the shape of p and q"
_WRITTEN = ", written against the array API: xp = array_namespace(p, q), then xp.minimum, xp.where, xp.sum, xp.astype"


@dataclass(frozen=True)
class Answers(Invariant):
    """Verdict, induced distribution, acceptance and sample come back for every pair, in the shape they should have.

    A ZeroResidualError is an answer where the verdict has no residual: `MassValid` judges what led to it.
    """

    @property
    def name(self) -> str:
        return "answers"

    def judge(self, case: Case) -> Violation | None:
        try:
            _ = case.verdict, case.out, case.acceptance
            drafted = np.flatnonzero([mass > 0 for mass in values(case.q)])
            tokens = np.tile(drafted, (len(_COINS), 1))
            case.sample(tokens, case.array([[coins] * len(drafted) for coins in _COINS]))
        except RuleFailure as failure:
            if not (isinstance(failure.__cause__, ZeroResidualError) and _has_no_residual(case)):
                misread = case.is_exact and isinstance(failure.__cause__, TypeError | AttributeError)
                return Violation("the answer", str(failure), _WANTED + _WRITTEN if misread else _WANTED)
        return None


def _has_no_residual(case: Case) -> bool:
    return not bool(case.xp.any(case.verdict.residual > 0))
