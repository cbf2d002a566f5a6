"""The Python array API over exact arrays: what `array_namespace(x)` gives for an `ExactArray`.

Booleans and integers (masks, token ids) are numpy arrays and stay so; everything else is exact. Functions follow the
standard; those whose results are not numbers of exact arithmetic are absent, and asking for one says so.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fly_theory.errors import ExactnessError
from fly_theory.exact import reals
from fly_theory.exact.array import ExactArray, objects, rational
from fly_theory.exact.lifting import all_integers, elementwise, exact_array, lifted, together, values_of, wrap
from fly_theory.exact.reals import ONE, ZERO

__array_api_version__ = "2024.12"

bool = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
newaxis = None
e = ExactArray(objects(reals.exp(ONE)))

Axis = int | tuple[int, ...] | None


class _NoSuchOperation(ExactnessError, AttributeError):
    """Both errors at once, so that `hasattr` and `getattr` with a default work on the namespace."""


def __getattr__(name: str) -> NoReturn:
    msg = f"exact arithmetic has no {name!r}; fly_theory.exact.namespace lists what it has"
    raise _NoSuchOperation(msg)


# -- constants and constructors --------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """An exact array of Fractions, texts and numbers; integers and bools become numpy arrays unless `dtype=rational`.

    Raises
    ------
    ExactnessError
        For floats, saying what to write instead.
    """
    if not isinstance(obj, ExactArray | np.ndarray):
        obj = np.asarray(_unwrapped(obj), dtype=object)
        if dtype is None and all_integers(obj):
            obj = np.asarray(obj.tolist())
    if dtype is None:
        dtype = obj.dtype if obj.dtype is rational or obj.dtype.kind in "biu" else rational
    return astype(obj, dtype)


def _unwrapped(obj: Any) -> Any:
    """Nested lists whose leaves may be exact arrays."""
    if isinstance(obj, list | tuple):
        return [_unwrapped(entry) for entry in obj]
    return obj._values.tolist() if isinstance(obj, ExactArray) else obj


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """Convert between exact numbers, integers and bools; nothing is rounded.

    Raises
    ------
    ExactnessError
        Towards or from floats, and for exact numbers that are not integers towards integers.
    """
    if dtype is rational:
        return x if isinstance(x, ExactArray) else exact_array(x)
    kind = np.dtype(dtype).kind
    if kind not in "biu":
        msg = (
            f"an exact array cannot become {dtype}; exact arithmetic has no floats (np.asarray(x, dtype=float) rounds)"
        )
        raise ExactnessError(msg)
    if not isinstance(x, ExactArray):
        return np.asarray(x, dtype=dtype)
    values = x != 0 if kind == "b" else np.frompyfunc(_integer, 1, 1)(x._values)
    return np.asarray(values, dtype=dtype)


def _integer(number: Any) -> int:
    value = reals.to_fraction(number)
    if value.denominator != 1:
        msg = f"{value} is not an integer; exact arrays are never rounded"
        raise ExactnessError(msg)
    return value.numerator


def full(shape: int | tuple[int, ...], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one value, of the kind `asarray` gives it."""
    return broadcast_to(asarray(fill_value, dtype=dtype), shape)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """`full` with the shape and dtype of x."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


def zeros(shape: int | tuple[int, ...], *, dtype: Any = rational, device: Any = None) -> Any:
    """`full` of zeros, exact unless said otherwise."""
    return full(shape, 0, dtype=dtype)


def ones(shape: int | tuple[int, ...], *, dtype: Any = rational, device: Any = None) -> Any:
    """`full` of ones, exact unless said otherwise."""
    return full(shape, 1, dtype=dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros with the shape and dtype of x."""
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones with the shape and dtype of x."""
    return full_like(x, 1, dtype=dtype)


def arange(start: int, /, stop: int | None = None, step: int = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Integers; exact numbers with `dtype=rational`."""
    return astype(np.arange(start, stop, step) if stop is not None else np.arange(start), dtype or int64)


# -- elementwise -----------------------------------------------------------------------------------------------------

log = elementwise(reals.log, 1)
exp = elementwise(reals.exp, 1)
sqrt = elementwise(reals.sqrt, 1)
pow = elementwise(reals.power, 2)
log1p = elementwise(lambda x: reals.log(1 + x), 1)
expm1 = elementwise(lambda x: reals.exp(x) - 1, 1)
log2 = elementwise(lambda x: reals.log(x) / reals.log(reals.as_number(2)), 1)

add = lifted(np.add, 2)
subtract = lifted(np.subtract, 2)
multiply = lifted(np.multiply, 2)
negative = lifted(np.negative, 1)
positive = lifted(np.positive, 1)
abs = lifted(np.absolute, 1)
square = lifted(np.square, 1)
minimum = lifted(np.minimum, 2)
maximum = lifted(np.maximum, 2)
equal = lifted(np.equal, 2)
not_equal = lifted(np.not_equal, 2)
less = lifted(np.less, 2)
less_equal = lifted(np.less_equal, 2)
greater = lifted(np.greater, 2)
greater_equal = lifted(np.greater_equal, 2)
logical_and = lifted(np.logical_and, 2)
logical_or = lifted(np.logical_or, 2)
logical_xor = lifted(np.logical_xor, 2)
logical_not = lifted(np.logical_not, 1)


def divide(x1: Any, x2: Any, /) -> ExactArray:
    """x1 / x2, exact."""
    return asarray(x1, dtype=rational) / asarray(x2, dtype=rational)  # type: ignore[no-any-return]


def sign(x: Any, /) -> Any:
    """-1, 0 or 1."""
    return astype(x > 0, x.dtype) - astype(x < 0, x.dtype)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x held between `min` and `max`, either of which may be absent."""
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """x1 where the condition holds, else x2."""
    return wrap(np.where(np.asarray(condition), *together(x1, x2)))


def isfinite(x: Any, /) -> npt.NDArray[np.bool_]:
    """False only at plus and minus infinity."""
    return np.logical_not(isinf(x))


def isinf(x: Any, /) -> npt.NDArray[np.bool_]:
    """True only at plus and minus infinity."""
    return np.asarray(
        np.frompyfunc(lambda number: isinstance(number, reals.Infinite), 1, 1)(values_of(x)), dtype=np.bool_
    )


def isnan(x: Any, /) -> npt.NDArray[np.bool_]:
    """False: there is no NaN in exact arithmetic."""
    return np.zeros(x.shape, dtype=np.bool_)


# -- along axes ------------------------------------------------------------------------------------------------------


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Sum; 0 where there is nothing to add."""
    values = values_of(x)
    start = ZERO if values.dtype == object else 0
    return wrap(np.sum(values, axis=axis, keepdims=keepdims, initial=start))


def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Product; 1 where there is nothing to multiply."""
    values = values_of(x)
    start = ONE if values.dtype == object else 1
    return wrap(np.prod(values, axis=axis, keepdims=keepdims, initial=start))


def mean(x: ExactArray, /, *, axis: Axis = None, keepdims: Any = False) -> ExactArray:
    """Arithmetic mean."""
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    return sum(x, axis=axis, keepdims=keepdims) / int(np.prod([x.shape[i] for i in axes]))  # type: ignore[no-any-return]


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Running sums; `include_initial` puts a zero in front."""
    return _cumulative(np.cumsum, x, axis, zeros_like, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Any:
    """Running products; `include_initial` puts a one in front."""
    return _cumulative(np.cumprod, x, axis, ones_like, include_initial)


def _cumulative(
    function: Callable[..., Any], x: Any, axis: int | None, start: Callable[..., Any], include_initial: Any
) -> Any:
    axis = 0 if axis is None else axis
    running = wrap(function(values_of(x), axis=axis))
    if not include_initial:
        return running
    first = np.take(values_of(start(x)), [0], axis=axis) if x.shape[axis] else values_of(start(x))
    return concat([wrap(first), running], axis=axis)


max = lifted(np.max, 1)
min = lifted(np.min, 1)
argmax = lifted(np.argmax, 1)
argmin = lifted(np.argmin, 1)
any = lifted(np.any, 1)
all = lifted(np.all, 1)
count_nonzero = lifted(np.count_nonzero, 1)


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> npt.NDArray[np.int64]:
    """Indices that sort x; equal elements keep their order."""
    values = values_of(x)
    return np.argsort(-values if descending else values, axis=axis, kind="stable")


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """x in order."""
    return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements of x at `indices` along an axis."""
    return wrap(np.take_along_axis(values_of(x), np.asarray(indices), axis=axis))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The slices of x at `indices` along an axis."""
    return wrap(np.take(values_of(x), np.asarray(indices), axis=axis))


# -- shapes ----------------------------------------------------------------------------------------------------------

reshape = lifted(np.reshape, 1)
broadcast_to = lifted(np.broadcast_to, 1)
flip = lifted(np.flip, 1)
roll = lifted(np.roll, 1)
squeeze = lifted(np.squeeze, 1)
matrix_transpose = lifted(np.matrix_transpose, 1)
matmul = lifted(np.matmul, 2)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Arrays one after the other along an axis."""
    return wrap(np.concat(together(*arrays), axis=axis))


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Arrays one after the other along a new axis."""
    return wrap(np.stack(together(*arrays), axis=axis))


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    """x with a new axis of length one."""
    return wrap(np.expand_dims(values_of(x), axis))


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """x with its axes reordered."""
    return wrap(np.transpose(values_of(x), axes))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """x with some axes moved."""
    return wrap(np.moveaxis(values_of(x), source, destination))


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Arrays stretched to one shape."""
    return [wrap(x) for x in np.broadcast_arrays(*map(values_of, arrays))]
