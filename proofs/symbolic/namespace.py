"""The array API functions that rules use, over `SymbolicArray`."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import z3

from fly_theory.errors import SymbolicError
from proofs.symbolic import terms
from proofs.symbolic.array import SymbolicArray, VocabularySize, elementwise
from proofs.symbolic.sums import sum_over
from proofs.symbolic.terms import Term, choose
from proofs.symbolic.world import Kind, World

bool = "bool"
int32 = int64 = "int"
float32 = float64 = "real"


class _NotThere(SymbolicError, AttributeError):
    """A function that symbols lack; also an AttributeError, as whoever probes a module expects."""


def __getattr__(name: str) -> NoReturn:
    msg = (
        f"proofs cannot read xp.{name}; declare the rule unreadable by Interpreter.SYMBOLIC, "
        "or write it with where, sum and max"
    )
    raise _NotThere(msg)


# -- creation and types ------------------------------------------------------------------------------------------------


def asarray(x: Any, *, dtype: Any = None, device: World, copy: Any = None) -> SymbolicArray:
    """A number as a symbolic constant; symbols stay what they are."""
    return x if isinstance(x, SymbolicArray) else elementwise(lambda a: a, x, world=device)


def arange(stop: Any, *, device: World) -> SymbolicArray:
    """The ids of the vocabulary: at the generic token, that token."""
    if not isinstance(stop, VocabularySize):
        msg = f"arange({stop!r}): a proof counts tokens only as arange(p.shape[-1])"
        raise SymbolicError(msg)
    return SymbolicArray(device, device.generic, per_token=True)


def full_like(x: SymbolicArray, fill_value: Any, *, dtype: Any = None) -> SymbolicArray:
    """One value everywhere."""
    return elementwise(lambda _, fill: fill, x, fill_value)


def zeros_like(x: SymbolicArray, *, dtype: Any = None) -> SymbolicArray:
    """0, or False for truth values."""
    return full_like(x, False if x.dtype == "bool" else 0)


def ones_like(x: SymbolicArray, *, dtype: Any = None) -> SymbolicArray:
    """1, or True for truth values."""
    return full_like(x, True if x.dtype == "bool" else 1)


def astype(x: SymbolicArray, dtype: str, *, copy: Any = None) -> SymbolicArray:
    """Truth values as 0 and 1; everything else is already what it is."""
    if x.dtype == dtype:
        return x
    if x.dtype == "bool" and dtype == "real":
        return where(x, 1, 0)
    msg = f"{x.dtype} symbols cannot become {dtype}"
    raise SymbolicError(msg)


# -- elementwise -------------------------------------------------------------------------------------------------------


def where(condition: Any, a: Any, b: Any) -> SymbolicArray:
    """a where the condition holds, else b."""
    return elementwise(choose, condition, a, b)


def minimum(a: Any, b: Any) -> SymbolicArray:
    """The smaller of two."""
    return elementwise(lambda x, y: choose(x <= y, x, y), a, b)


def maximum(a: Any, b: Any) -> SymbolicArray:
    """The larger of two."""
    return elementwise(lambda x, y: choose(x >= y, x, y), a, b)


def clip(x: SymbolicArray, min: Any = None, max: Any = None) -> SymbolicArray:
    """x held between two bounds."""
    if min is not None:
        x = elementwise(lambda a, low: choose(a >= low, a, low), x, min)
    return x if max is None else minimum(x, max)


def abs(x: SymbolicArray) -> SymbolicArray:
    """|x|."""
    return x.__abs__()


def logical_and(a: SymbolicArray, b: SymbolicArray) -> SymbolicArray:
    """Both."""
    return a & b


def logical_or(a: SymbolicArray, b: SymbolicArray) -> SymbolicArray:
    """At least one."""
    return a | b


def logical_not(a: SymbolicArray) -> SymbolicArray:
    """The opposite."""
    return ~a


def pow(x: SymbolicArray, exponent: Any) -> SymbolicArray:
    """x to a power."""
    return x**exponent


def _function(kind: Kind) -> Callable[[SymbolicArray], SymbolicArray]:
    def apply(x: SymbolicArray) -> SymbolicArray:
        return elementwise(lambda a: x.world.defined(kind, [a]), x)

    apply.__doc__ = f"{kind} x, of which a proof knows only what `proofs.axioms` says."
    return apply


sqrt, exp, log = _function("sqrt"), _function("exp"), _function("log")


# -- along an axis -----------------------------------------------------------------------------------------------------


def sum(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False, dtype: Any = None) -> SymbolicArray:
    """Sum along an axis; along the vocabulary axis it becomes a combination of named sums."""
    return _reduced(x, axis, keepdims, lambda t: sum_over(x.world, t, x.world.generic), terms.add)


def prod(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False, dtype: Any = None) -> SymbolicArray:
    """Product along a batch axis."""
    cells = np.frompyfunc(terms.multiply, 2, 1).reduce(
        x.cells, axis=_batch_axis(x, axis), keepdims=keepdims, initial=terms.number(1)
    )
    return SymbolicArray(x.world, cells, per_token=x.per_token)


def cumulative_prod(x: SymbolicArray, *, axis: int, include_initial: Any = False) -> SymbolicArray:
    """Products of the entries so far, along a batch axis."""
    axis, cells = _batch_axis(x, axis), x.cells
    if include_initial:
        one = np.full_like(np.take(cells, [0], axis=axis), terms.number(1))
        cells = np.concatenate([one, cells], axis=axis)
    products = np.frompyfunc(terms.multiply, 2, 1).accumulate(cells, axis=axis)
    return SymbolicArray(x.world, products, per_token=x.per_token)


def max(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False) -> SymbolicArray:
    """Largest value along an axis."""
    return _reduced(x, axis, keepdims, lambda t: _largest(x, t), lambda a, b: choose(a >= b, a, b))


def min(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False) -> SymbolicArray:
    """Smallest value along an axis."""
    return -max(-x, axis=axis, keepdims=keepdims)


def any(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False) -> SymbolicArray:
    """Whether some entry along an axis is true."""

    def exists(t: Term) -> Term:
        return x.world.defined("some", [t], bound=x.world.generic, attained=True)

    return _reduced(x, axis, keepdims, exists, lambda a, b: z3.Or(a, b))


def all(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False) -> SymbolicArray:
    """Whether every entry along an axis is true."""
    return ~any(~x, axis=axis, keepdims=keepdims)


def argmax(x: SymbolicArray, *, axis: int = -1, keepdims: Any = False) -> SymbolicArray:
    """A token with the largest value."""
    if not (x.per_token and axis == -1 and _is_distribution(x, x.term)):
        msg = "a proof knows an argmax only of one row of p or q over the vocabulary"
        raise SymbolicError(msg)
    return SymbolicArray(x.world, x.world.witness("largest", [x.term], bound=x.world.generic))


def _largest(x: SymbolicArray, term: Term) -> Term:
    """The supremum; a distribution attains its own, also over a countable vocabulary."""
    return x.world.defined("largest", [term], bound=x.world.generic, attained=_is_distribution(x, term))


def _is_distribution(x: SymbolicArray, term: Term) -> Any:
    return x.world.families.get(term.decl().name()) == "distribution"


def _reduced(
    x: SymbolicArray,
    axis: int,
    keepdims: Any,
    over_tokens: Callable[[Term], Term],
    over_cells: Callable[[Term, Term], Term],
) -> SymbolicArray:
    axis = axis if axis < 0 else axis - x.ndim
    if x.per_token and axis == -1:
        cells = np.frompyfunc(over_tokens, 1, 1)(x.cells)
        result = SymbolicArray(x.world, cells)
        return result[..., None] if keepdims else result
    axis += x.per_token
    cells = np.frompyfunc(over_cells, 2, 1).reduce(x.cells, axis=axis, keepdims=keepdims)
    return SymbolicArray(x.world, cells, per_token=x.per_token)


# -- shapes ------------------------------------------------------------------------------------------------------------


def _batch_axis(x: SymbolicArray, axis: int) -> int:
    axis = axis if axis < 0 else axis - x.ndim
    if x.per_token and axis == -1:
        msg = "the vocabulary axis of a proof has no order: it cannot be joined, flipped or split"
        raise SymbolicError(msg)
    return axis + x.per_token


def concat(arrays: Sequence[SymbolicArray], *, axis: int = 0) -> SymbolicArray:
    """Join along a batch axis."""
    first = arrays[0]
    cells = np.concatenate([a.cells for a in arrays], axis=_batch_axis(first, axis))
    return SymbolicArray(first.world, cells, per_token=first.per_token)


def stack(arrays: Sequence[SymbolicArray], *, axis: int = 0) -> SymbolicArray:
    """Join along a new batch axis."""
    first = arrays[0]
    axis = axis if axis < 0 else axis - first.ndim - 1
    return SymbolicArray(
        first.world, np.stack([a.cells for a in arrays], axis + first.per_token), per_token=first.per_token
    )


def flip(x: SymbolicArray, *, axis: int = -1) -> SymbolicArray:
    """Reverse a batch axis."""
    return SymbolicArray(x.world, np.flip(x.cells, axis=_batch_axis(x, axis)), per_token=x.per_token)


def broadcast_to(x: SymbolicArray, shape: Sequence[int]) -> SymbolicArray:
    """Repeat along batch axes."""
    batch = tuple(shape[:-1]) if x.per_token else tuple(shape)
    return SymbolicArray(x.world, np.broadcast_to(x.cells, batch), per_token=x.per_token)


def take_along_axis(x: SymbolicArray, indices: SymbolicArray, *, axis: int = -1) -> SymbolicArray:
    """The entries of rows over the vocabulary at one token each."""
    if not (x.per_token and axis == -1 and indices.dtype == "int" and indices.shape[-1] == 1):
        msg = "a proof takes entries only from rows over the vocabulary, at one token a row"
        raise SymbolicError(msg)
    generic = x.world.generic
    taken = np.frompyfunc(lambda row, token: terms.at(row, [generic], [token]), 2, 1)(x.cells[..., None], indices.cells)
    return SymbolicArray(x.world, taken)
