"""The Python array API over enclosures: what `array_namespace(x)` gives for an `Enclosure` or a `Condition`.

Functions follow the standard. Those that need every token, as sorting all of them does, are absent, and asking for one
says so.
"""

from types import EllipsisType
from typing import Any, TypeVar

import torch

from fly_theory.errors import NotReadable
from gpu.replaying.certified.array import Condition, Enclosure, Value, aligned, combine, constant, monotone
from gpu.replaying.certified.divergences import entropy as _entropy
from gpu.replaying.certified.divergences import relative_entropy as _relative_entropy
from gpu.replaying.certified.lines import Lines

__array_api_version__ = "2024.12"

float32, float64 = torch.float32, torch.float64

Rows = TypeVar("Rows", Enclosure, Condition)


class _NoSuchOperation(NotReadable, AttributeError):
    """Both errors at once, so that `hasattr` and `getattr` with a default work on the namespace."""


def __getattr__(name: str) -> Any:
    msg = f"it asks for xp.{name}, which takes every token, and the unseen ones are known by their mass only"
    raise _NoSuchOperation(msg)


# -- constants -------------------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = float64, device: Any = None, copy: Any = None) -> Any:
    """A number as a quantity with one value."""
    if isinstance(obj, Enclosure):
        return obj
    return Enclosure(None, Lines.exact(torch.tensor(float(obj), dtype=dtype, device=device)), None)


def finfo(type: torch.dtype, /) -> torch.finfo:
    """What numbers of a dtype can be."""
    return torch.finfo(type)


def full_like(x: Enclosure, /, fill_value: float, *, dtype: Any = None, device: Any = None) -> Enclosure:
    """One value with the shape of x."""
    head = Lines.exact(torch.full_like(x.head.low_left, fill_value))
    if x.tail is None:
        return Enclosure(x.cells, head, None)
    tail = Lines.exact(torch.full_like(x.tail.low_left, fill_value))
    return Enclosure(x.cells, head, tail, weighted=x.weighted and fill_value == 0)


def zeros_like(x: Enclosure, /, *, dtype: Any = None, device: Any = None) -> Enclosure:
    """Zeros with the shape of x."""
    return full_like(x, 0)


def ones_like(x: Enclosure, /, *, dtype: Any = None, device: Any = None) -> Enclosure:
    """Ones with the shape of x."""
    return full_like(x, 1)


# -- elementwise -----------------------------------------------------------------------------------------------------


def minimum(x1: Value, x2: Value, /) -> Enclosure:
    """The lesser of two at every token."""
    return combine(Lines.minimum, x1, x2)


def maximum(x1: Value, x2: Value, /) -> Enclosure:
    """The greater of two at every token."""
    return combine(Lines.maximum, x1, x2)


def clip(x: Enclosure, /, min: Value | None = None, max: Value | None = None) -> Enclosure:
    """x held between `min` and `max`, either of which may be absent."""
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def abs(x: Enclosure, /) -> Enclosure:
    """The absolute value."""
    return x.__abs__()


def exp(x: Enclosure, /) -> Enclosure:
    """e to the power of x."""
    return monotone(torch.exp, x)


def log(x: Enclosure, /) -> Enclosure:
    """The natural logarithm of what is not negative."""
    return monotone(lambda end: end.clamp(min=0).log(), x)


def sqrt(x: Enclosure, /) -> Enclosure:
    """The square root of what is not negative."""
    return monotone(lambda end: end.clamp(min=0).sqrt(), x)


def where(condition: Condition, x1: Value, x2: Value, /) -> Enclosure:
    """x1 where the condition surely holds, x2 where it surely does not, else what encloses both."""
    like = x1 if isinstance(x1, Enclosure) else x2
    x1, x2 = constant(x1, like), constant(x2, like)
    head = x1.head.where(*condition.head, x2.head)
    tokens = next((x for x in (condition, x1, x2) if x.tail is not None), None)
    if tokens is None:
        return Enclosure(None, head, None)
    (tail_1, tail_2), weighted = aligned(x1, x2)
    sure, possible = condition.head if condition.tail is None else condition.tail
    if condition.weighted and not weighted:
        sure, possible = torch.zeros_like(sure), torch.ones_like(possible)
    return Enclosure(tokens.cells, head, tail_1.where(sure, possible, tail_2), weighted=weighted)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Enclosure:
    """A condition as 0 or 1; quantities stay what they are."""
    if isinstance(x, Enclosure):
        return x
    sure, possible = x.head
    head = Lines.exact(sure.to(dtype)) if sure is possible else Lines.between(sure.to(dtype), possible.to(dtype))
    if x.tail is None:
        return Enclosure(x.cells, head, None)
    sure, possible = x.tail
    if x.weighted:
        sure, possible = torch.zeros_like(sure), torch.ones_like(possible)
    tail = Lines.between(sure.to(dtype), possible.to(dtype))
    return Enclosure(x.cells, head, tail, weighted=not bool(possible.any()))


# -- over all tokens ---------------------------------------------------------------------------------------------------


def sum(x: Enclosure, /, *, axis: int, dtype: Any = None, keepdims: bool = False) -> Enclosure:
    """The sum over all tokens."""
    return _reduced(x.total(), axis, keepdims)


def max(x: Enclosure, /, *, axis: int, keepdims: bool = False) -> Enclosure:
    """The largest over all tokens."""
    return _reduced(x.largest(), axis, keepdims)


def min(x: Enclosure, /, *, axis: int, keepdims: bool = False) -> Enclosure:
    """The smallest over all tokens."""
    return _reduced(x.smallest(), axis, keepdims)


def any(x: Condition, /, *, axis: int, keepdims: bool = False) -> Condition:
    """Whether it holds at some token."""
    return _reduced(x.anywhere(), axis, keepdims)


def row_entropy(p: Enclosure, /) -> Enclosure:
    """The entropy of each row in nats."""
    return _entropy(p)[..., 0]


def row_relative_entropy(a: Enclosure, b: Enclosure, /) -> Enclosure:
    """The sum of a log(a / b) of each row in nats."""
    return _relative_entropy(a, b)[..., 0]


def _reduced(x: Rows, axis: int, keepdims: bool) -> Rows:
    if axis != -1:
        msg = f"it reduces over axis {axis}; allowed is the vocabulary, axis=-1"
        raise NotReadable(msg)
    return x if keepdims else x[..., 0]


# -- tokens by rank ----------------------------------------------------------------------------------------------------


class _Ascending:
    """The values of each row from the smallest to the largest, of which the largest can be asked for."""

    def __init__(self, x: Enclosure) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Enclosure:
        match index:
            case (EllipsisType(), int(place)) if place < 0:
                return self._x.order_statistic(-place)
        msg = f"it asks for sort(x)[{index!r}]; allowed are the largest values, sort(x)[..., -k]"
        raise NotReadable(msg)


def sort(x: Enclosure, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> _Ascending:
    """The values of each row in rising order."""
    if axis != -1 or descending:
        msg = "it sorts in another way than sort(x, axis=-1)"
        raise NotReadable(msg)
    return _Ascending(x)


class _Ids:
    """The ids of all tokens, to be compared with what `argmax` gives."""

    def __eq__(self, place: object) -> Condition:  # type: ignore[override]
        if not isinstance(place, _Place):
            msg = "it compares the ids of all tokens with something else than an argmax"
            raise NotReadable(msg)
        return place.holds


class _Place:
    """The id of one token a row, known by a condition that holds there and nowhere else."""

    def __init__(self, holds: Condition) -> None:
        self.holds = holds

    def __getitem__(self, index: object) -> "_Place":
        return self


def arange(stop: int, /, *, dtype: object = None, device: object = None) -> _Ids:
    """The ids of all tokens."""
    return _Ids()


def argmax(x: Enclosure, /, *, axis: int, keepdims: bool = False) -> _Place:
    """The first of the largest tokens."""
    return _Place(x.is_largest())
