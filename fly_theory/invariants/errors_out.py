"""Bad input is an error, not an answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import Array
from fly_theory.errors import InvalidInput, ZeroResidualError
from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["ErrorsOut"]

Row = npt.NDArray[np.float64]

_ALMOST_ONE = Fraction(10**9 - 1, 10**9)


@dataclass(frozen=True)
class ErrorsOut(Invariant):
    """NaN, a negative entry or a row that does not sum to one is an InvalidInput, in p and in q alike; a rejection
    without residual is a ZeroResidualError. Nothing of this ever becomes a distribution. Judged on float64 arrays.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "errors on bad input and empty residuals"

    def judge(self, case: Case) -> Violation | None:
        p, q = (np.array(values(x), dtype=np.float64) for x in (case.p, case.q))
        for fault, bad_p, bad_q in _faults(p, q):
            try:
                out = case.rule.induced(bad_p, bad_q)
            except InvalidInput:
                continue
            except Exception as error:
                return Violation(
                    "the error", f"{type(error).__name__}: {error}", "InvalidInput", inputs={"with": fault}
                )
            return Violation("out", values(out), "an error", inputs={"with": fault})
        return self._empty_residual(case)

    def _empty_residual(self, case: Case) -> Violation | None:
        accepted, residual = case.verdict
        rejected = case.xp.sum(case.q - accepted, axis=-1)
        if not bool(rejected > case.tolerance) or bool(case.xp.any(residual > 0)):
            return None
        tokens = np.flatnonzero(
            [drafted > kept for kept, drafted in zip(values(accepted), values(case.q), strict=True)]
        )
        uniforms = case.array([[_ALMOST_ONE, 0]] * len(tokens))
        asked: dict[str, Callable[[], Array]] = {
            "out": lambda: case.rule.induced(case.p, case.q),
            "sample": lambda: case.rule.sample(case.p, case.q, tokens, uniforms),
        }
        for quantity, ask in asked.items():
            try:
                answer = ask()
            except ZeroResidualError:
                continue
            return Violation(quantity, values(answer), "ZeroResidualError", inputs={"residual": values(residual)})
        return None


def _faults(p: Row, q: Row) -> Iterator[tuple[str, Row, Row]]:
    for fault, spoil in (
        ("NaN at token 0", lambda x: np.where(np.arange(len(x)) == 0, np.nan, x)),
        ("-1 at token 0", lambda x: np.where(np.arange(len(x)) == 0, -1, x)),
        ("twice its mass", lambda x: 2 * x),
    ):
        yield f"p with {fault}", spoil(p), q
        yield f"q with {fault}", p, spoil(q)
