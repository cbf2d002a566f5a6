"""How numpy functions and functions of single numbers become functions of exact arrays."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fly_theory.errors import ExactnessError
from fly_theory.exact.array import ExactArray, objects, operand
from fly_theory.exact.reals import as_number

__all__ = ["all_integers", "elementwise", "exact_array", "lifted", "together", "values_of", "wrap"]


def values_of(x: Any) -> npt.NDArray[Any]:
    """Exact numbers as an object array, masks and integers as they are."""
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biu":
        return np.asarray(x)
    found = operand(x)
    if found is NotImplemented:
        msg = f"{x!r} is a {type(x).__name__}, not an array or a number"
        raise ExactnessError(msg)
    return np.asarray(found)


def wrap(values: Any) -> Any:
    """Numbers as an exact array, masks and integers as a numpy array."""
    if isinstance(values, np.ndarray | np.generic) and values.dtype.kind in "biu":
        return np.asarray(values)
    return ExactArray(objects(values))


def exact_array(values: npt.NDArray[Any]) -> ExactArray:
    """Numbers, Fractions, texts, integers or bools as an exact array.

    Raises
    ------
    ExactnessError
        For floats, saying what to write instead.
    """
    numbers = values.astype(np.int64) if values.dtype.kind == "b" else values
    return ExactArray(objects(np.frompyfunc(as_number, 1, 1)(numbers.astype(object))))


def all_integers(values: npt.NDArray[Any]) -> bool:
    """Whether an object array holds only ints and bools."""
    return all(isinstance(value, int) for value in values.flat)


def together(*arrays: Any) -> list[npt.NDArray[Any]]:
    """Operands of one kind: numpy masks or integers (with Python scalars), or else exact numbers."""
    if any(isinstance(x, np.ndarray | np.generic) for x in arrays):
        if not any(isinstance(x, ExactArray) for x in arrays):
            return [np.asarray(x) for x in arrays]
        for x in arrays:
            operand(x)
    return [values_of(x) for x in arrays]


def lifted(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A numpy function whose first `count` arguments are arrays of one kind, made to take exact ones."""

    @functools.wraps(function, assigned=("__name__",))
    def on_arrays(*arguments: Any, **options: Any) -> Any:
        return wrap(function(*together(*arguments[:count]), *arguments[count:], **options))

    return on_arrays


def elementwise(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function of `count` exact numbers, applied to each element."""
    apply = np.frompyfunc(function, count, 1)

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def on_arrays(*arrays: Any) -> ExactArray:
        return ExactArray(objects(apply(*map(values_of, arrays))))

    return on_arrays
