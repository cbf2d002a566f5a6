"""The array of the exact interpreter."""

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fly_theory.errors import ExactnessError, ShapeError
from fly_theory.exact.reals import Number, as_number, is_number, power, to_fraction

__all__ = ["ExactArray", "objects", "operand", "rational"]


class _Rational:
    """The dtype of exact arrays."""

    def __repr__(self) -> str:
        return "rational"


rational = _Rational()


class ExactArray:
    """An immutable array of rationals, read through the Python array API; make one with `ft.exact`.

    Elements come out as Fractions (`item`, `tolist`). Comparisons give boolean numpy arrays, token ids are integer
    numpy arrays. log, exp and sqrt may give irrational elements, which can be compared (certified, or UndecidableError)
    but have no exact value. Floats and arrays of other kinds are refused.
    """

    is_exact: ClassVar[bool] = True
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("_values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    # -- shape and kind ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def ndim(self) -> int:
        return self._values.ndim

    @property
    def size(self) -> int:
        return self._values.size

    @property
    def dtype(self) -> _Rational:
        return rational

    @property
    def device(self) -> Literal["cpu"]:
        return "cpu"

    @property
    def mT(self) -> "ExactArray":
        """The array with its last two axes exchanged."""
        return ExactArray(np.matrix_transpose(self._values))

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from fly_theory.exact import namespace

        return namespace

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> "Iterator[ExactArray]":
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> "ExactArray":
        return ExactArray(objects(self._values[index]))

    # -- out of exact arithmetic -------------------------------------------------------------------------------------

    def item(self) -> Fraction:
        """The only element, as a Fraction.

        Raises
        ------
        ExactnessError
            When it is irrational.
        ShapeError
            When there is more than one element.
        """
        return to_fraction(self._only("item()"))

    def tolist(self) -> Any:
        """The elements as (nested lists of) Fractions."""
        return np.frompyfunc(to_fraction, 1, 1)(self._values).tolist() if self.ndim else self.item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[np.floating[Any]]:
        if dtype is None or np.dtype(dtype).kind != "f":
            msg = "numpy has no exact numbers: write np.asarray(x, dtype=float) to round, or x.tolist() for Fractions"
            raise ExactnessError(msg)
        return self._values.astype(dtype)

    def __float__(self) -> float:
        return float(self._only("float"))

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self._only("bool") != 0)

    def _only(self, wanted: str) -> Number:
        if self.size != 1:
            msg = f"{wanted} needs an array with one element; this one has shape {self.shape}"
            raise ShapeError(msg)
        return self._values.item()

    def __repr__(self) -> str:
        if not self.ndim:
            return f"exact({self._values})"
        return f"exact({np.array2string(self._values, separator=', ', formatter={'all': str}, prefix='exact(')})"

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def _binary(self, operation: Callable[[Any, Any], Any], other: Any, *, reflected: bool = False) -> Any:
        values = operand(other)
        if values is NotImplemented:
            return values
        left, right = (values, self._values) if reflected else (self._values, values)
        try:
            return ExactArray(objects(operation(left, right)))
        except ZeroDivisionError as error:
            msg = "division by zero; exact arithmetic has no inf or nan: write x / xp.where(y != 0, y, 1)"
            raise ExactnessError(msg) from error

    def _compare(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        values = operand(other)
        return values if values is NotImplemented else np.asarray(operation(self._values, values), dtype=bool)

    def __add__(self, other: Any) -> Any:
        return self._binary(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._binary(operator.add, other, reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._binary(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary(operator.sub, other, reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary(operator.mul, other, reflected=True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary(operator.truediv, other, reflected=True)

    def __pow__(self, other: Any) -> Any:
        return self._binary(np.frompyfunc(power, 2, 1), other)

    def __rpow__(self, other: Any) -> Any:
        return self._binary(np.frompyfunc(power, 2, 1), other, reflected=True)

    def __matmul__(self, other: Any) -> Any:
        return self._binary(operator.matmul, other)

    def __neg__(self) -> "ExactArray":
        return ExactArray(objects(-self._values))

    def __pos__(self) -> "ExactArray":
        return self

    def __abs__(self) -> "ExactArray":
        return ExactArray(objects(abs(self._values)))

    def __lt__(self, other: Any) -> Any:
        return self._compare(np.less, other)

    def __le__(self, other: Any) -> Any:
        return self._compare(np.less_equal, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(np.greater, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(np.greater_equal, other)

    def __eq__(self, other: object) -> Any:
        return self._compare(np.equal, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(np.not_equal, other)


def objects(values: Any) -> npt.NDArray[Any]:
    """Numbers as an object array; operations on 0-d object arrays return the bare element."""
    if isinstance(values, np.ndarray):
        return values
    array = np.empty((), dtype=object)
    array[()] = values
    return array


def operand(value: Any) -> Any:
    """What stands beside an exact array in an operation, as an object array; NotImplemented for foreign objects.

    Raises
    ------
    ExactnessError
        For a float, a bool, or an array of another kind, saying what to write instead.
    """
    if isinstance(value, ExactArray):
        return value._values
    if isinstance(value, np.ndarray | np.generic):
        hint = "write xp.astype(x, p.dtype)" if value.dtype.kind in "biu" else "make it exact with ft.exact"
        msg = f"a numpy array of {value.dtype} met an exact array; {hint}"
        raise ExactnessError(msg)
    if hasattr(value, "__array_namespace__") or hasattr(value, "__array__"):
        msg = f"a {type(value).__module__}.{type(value).__name__} met an exact array; make it exact with ft.exact"
        raise ExactnessError(msg)
    return objects(as_number(value)) if is_number(value) else NotImplemented
