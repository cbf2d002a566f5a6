"""The rule is a function."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fly_theory.invariants.base import Case, Invariant, Violation, values

__all__ = ["Pure"]


@dataclass(frozen=True)
class Pure(Invariant):
    """Asked twice, the rule answers the same, and it leaves p and q as they were. Judged on writable float64 arrays."""

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "pure"

    def judge(self, case: Case) -> Violation | None:
        p, q = (np.array(values(x), dtype=np.float64) for x in (case.p, case.q))
        first, second = case.at(p, q), case.at(p, q)
        before = values(p), values(q)
        answers = [_answers(each) for each in (first, second)]
        if (values(p), values(q)) != before:
            return Violation("(p, q) after the call", (values(p), values(q)), before)
        for quantity, once in answers[0].items():
            if answers[1][quantity] != once:
                return Violation(f"{quantity} when asked again", answers[1][quantity], once)
        return None


def _answers(case: Case) -> dict[str, Any]:
    drafted = np.flatnonzero(case.q > 0)
    emitted = case.sample(drafted, np.full((len(drafted), 2), 0.5))
    return {"out": values(case.out), "acceptance": values(case.acceptance), "sample": values(emitted)}
