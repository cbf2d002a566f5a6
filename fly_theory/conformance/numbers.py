"""Rationals that pass for the entries of a numpy array, so that a verifier written for floats runs on exact rows.

A verifier divides by zero and gets inf or nan, as it would from numpy; it mixes in Python floats, and a float such as
0.3 stands for the decimal it prints as. Only a float with more digits than that, the result of a logarithm say, makes
the result a float again: whoever reads it knows that it is rounded.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Exact", "as_rational", "exact_array", "is_rounded", "ratio", "read_number"]

_DIGITS = 12


def is_rounded(value: Any) -> bool:
    """Whether a number carries rounding errors: a float that is no decimal of at most twelve digits."""
    return isinstance(value, float | np.floating) and float(f"{float(value):.{_DIGITS}g}") != float(value)


def as_rational(value: Any) -> Fraction:
    """The rational a finite number means: a float of few digits is that decimal, any other its binary value.

    Raises
    ------
    TypeError, ValueError, OverflowError
        For something that is no number, for NaN, and for infinities.
    """
    if isinstance(value, Fraction | str):
        return value if type(value) is Fraction else Fraction(value)
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    value = float(value)
    return Fraction(value) if is_rounded(value) else Fraction(f"{value:.{_DIGITS}g}")


def read_number(value: Any) -> Fraction | float | None:
    """An operand that arithmetic understands: a rational where it is one, else a float; None for anything else."""
    if isinstance(value, Fraction):
        return value if type(value) is Fraction else Fraction(value)
    if isinstance(value, int | np.integer | np.bool_):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        value = float(value)
        return value if is_rounded(value) or not math.isfinite(value) else as_rational(value)
    return None


def ratio(part: Any, whole: Any) -> Any:
    """part / whole, where x/0 is inf and 0/0 is 1: how much larger one probability is than another."""
    if whole == 0:
        return math.inf if part > 0 else 1
    return part / whole


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    on_fractions, on_floats = getattr(Fraction, name), getattr(float, name)

    def operate(self: "Exact", other: Any) -> Any:
        number = read_number(other)
        if number is None:
            return NotImplemented
        if isinstance(number, float):
            return on_floats(float(self), number)
        return Exact(on_fractions(self, number))

    operate.__name__ = name
    return operate


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    on_fractions = getattr(Fraction, name)

    def compare(self: "Exact", other: Any) -> Any:
        number = read_number(other)
        return NotImplemented if number is None else on_fractions(self, number)

    compare.__name__ = name
    return compare


def _divide(part: Fraction, whole: Fraction) -> Any:
    if not whole:
        return math.copysign(math.inf, part) if part else math.nan
    return Exact(Fraction.__truediv__(part, whole))


class Exact(Fraction):
    """A rational with the manners of a numpy float: see the module."""

    __slots__ = ()

    __add__, __radd__ = _arithmetic("__add__"), _arithmetic("__radd__")
    __sub__, __rsub__ = _arithmetic("__sub__"), _arithmetic("__rsub__")
    __mul__, __rmul__ = _arithmetic("__mul__"), _arithmetic("__rmul__")
    __lt__, __le__ = _comparison("__lt__"), _comparison("__le__")
    __gt__, __ge__ = _comparison("__gt__"), _comparison("__ge__")
    __eq__ = _comparison("__eq__")
    __hash__ = Fraction.__hash__

    def __truediv__(self, other: Any) -> Any:
        number = read_number(other)
        if number is None:
            return NotImplemented
        return float(self) / number if isinstance(number, float) else _divide(self, number)

    def __rtruediv__(self, other: Any) -> Any:
        number = read_number(other)
        if number is None:
            return NotImplemented
        if isinstance(number, float):
            return number / float(self) if self != 0 else number * math.inf
        return _divide(number, self)

    def __pow__(self, power: Any) -> Any:
        result = Fraction.__pow__(self, power)
        return Exact(result) if isinstance(result, Fraction) else result

    def __neg__(self) -> "Exact":
        return Exact(Fraction.__neg__(self))

    def __pos__(self) -> "Exact":
        return self

    def __abs__(self) -> "Exact":
        return Exact(Fraction.__abs__(self))

    # numpy calls these on the entries of an array of objects.
    def log(self) -> float:
        """Natural logarithm, as a float; -inf at 0."""
        return math.log(self) if self > 0 else (-math.inf if self == 0 else math.nan)

    def exp(self) -> float:
        """Exponential, as a float."""
        return math.exp(self)

    def sqrt(self) -> float:
        """Square root, as a float."""
        return math.sqrt(self) if self >= 0 else math.nan


def exact_array(rows: Iterable[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """A numpy array of objects with this shape, its entries `Exact`, from rationals in row-major order."""
    array = np.empty(math.prod(shape), dtype=object)
    for i, value in enumerate(rows):
        array[i] = Exact(value)
    return array.reshape(shape)
