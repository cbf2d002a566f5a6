"""The numbers that `check` judges a rule in: exact ones, or float64 with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fly_theory.arrays import Array
from fly_theory.errors import ExactnessError
from fly_theory.exact import exact
from fly_theory.interpreters import Interpreter
from fly_theory.invariants import FLOAT_TOLERANCE

__all__ = ["EXACT", "Arithmetic", "most_exact"]

T = TypeVar("T")


@dataclass(frozen=True)
class Arithmetic:
    """A kind of numbers: what it is called, and how (nested) Fractions become arrays of it."""

    description: str
    array: Callable[[Any], Array]

    @property
    def is_exact(self) -> bool:
        """Whether nothing is rounded."""
        return self is EXACT

    def written(self, fractions: Any) -> str:
        """Python code for an array that `Invariant.examine` reads in this arithmetic; float64 code uses `np`."""
        return (
            _nested(fractions, lambda x: f'"{x}"')
            if self.is_exact
            else f"np.array({_nested(fractions, str)}, dtype=float)"
        )


EXACT = Arithmetic("exact", exact)


def most_exact(rule: Any, attempt: Callable[[Arithmetic], T]) -> tuple[Arithmetic, T]:
    """What `attempt` gives in exact arithmetic, or in float64 when the rule cannot be read exactly."""
    reason = rule.unreadable.get(Interpreter.EXACT)
    if reason is None:
        try:
            return EXACT, attempt(EXACT)
        except ExactnessError as error:
            reason = str(error)
    description = f"float64 within {FLOAT_TOLERANCE:g}, not exact: {reason}"
    float64 = Arithmetic(description, lambda fractions: np.array(fractions, dtype=np.float64))
    return float64, attempt(float64)


def _nested(fractions: Any, write: Callable[[Any], str]) -> str:
    if isinstance(fractions, tuple | list):
        return f"[{', '.join(_nested(entry, write) for entry in fractions)}]"
    return write(fractions)
