"""Tallies as plain JSON values and back, without loss, whatever fields their dataclasses have.

A dataclass becomes an object by field names, a mapping a list of pairs, a long integer the text of its digits, an
infinity the text `inf`. Reading goes by the type hints of the fields.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

__all__ = ["from_state", "to_state"]

# Up to here every JSON parser keeps an integer.
_SAFE = 2**53


def to_state(value: Any) -> Any:
    """A value made of dataclasses, tuples, lists, mappings, numbers and texts, as plain JSON values.

    Raises
    ------
    TypeError
        A value of another type, or NaN.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_state(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return [[to_state(key), to_state(item)] for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [to_state(item) for item in value]
    if isinstance(value, bool | str | NoneType):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _SAFE else str(value)
    if isinstance(value, float) and value == value:
        return value if abs(value) != float("inf") else str(value)
    msg = f"{value!r} is a {type(value).__name__}, which has no state"
    raise TypeError(msg)


def from_state(kind: Any, state: Any) -> Any:
    """The value of the annotated type `kind` whose state this is.

    Raises
    ------
    TypeError, ValueError
        A state of another type than `kind`.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (kind,) = (each for each in arguments if each is not NoneType)
        return None if state is None else from_state(kind, state)
    if origin is dict:
        return {from_state(arguments[0], key): from_state(arguments[1], item) for key, item in state}
    if origin is list:
        return [from_state(arguments[0], item) for item in state]
    if origin is tuple:
        kinds = repeat(arguments[0], len(state)) if arguments[-1] is Ellipsis else arguments
        return tuple(from_state(each, item) for each, item in zip(kinds, state, strict=True))
    if is_dataclass(kind):
        return kind(**{name: from_state(_hints(kind)[name], item) for name, item in state.items()})
    if hasattr(kind, "_fields"):
        return kind(*(from_state(each, item) for each, item in zip(_hints(kind).values(), state, strict=True)))
    if kind in (bool, int, float, str):
        return kind(state)
    msg = f"{kind!r} cannot be read from a state"
    raise TypeError(msg)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
