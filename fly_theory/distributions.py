"""From logits to probability rows: validation, softmax with temperature, the common warpers, entropies in nats.

A distribution is the last axis of an array (..., V) of float32 or float64 (or of exact rationals): finite,
non-negative, summing to one.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number, array_namespace, first_true, holds_values, normalise, one_hot
from fly_theory.entropies import entropy, normalised_entropy, top_k_entropy
from fly_theory.errors import DistributionError, InvalidInput, ParameterError, ShapeError

__all__ = [
    "as_distribution",
    "as_pair",
    "entropy",
    "normalised_entropy",
    "restrict",
    "softmax",
    "top_k_entropy",
    "trusted_inputs",
    "warp",
]

# How far a row sum may be from one. float32: a softmax over 150,000 tokens was seen off by up to 1e-5.
_SUM_TOLERANCE = {"float64": 1e-9, "float32": 1e-4}

_trusted: ContextVar[bool] = ContextVar("trusted", default=False)


@contextlib.contextmanager
def trusted_inputs() -> Iterator[None]:
    """Skip the inspection of values (not of shapes) inside the block, for rows that are known to be distributions."""
    token = _trusted.set(True)
    try:
        yield
    finally:
        _trusted.reset(token)


# -- validation ------------------------------------------------------------------------------------------------------


def as_distribution(x: Array, name: str) -> Array:
    """Return `x` (..., V) as an array of probability rows; nested lists become numpy float64.

    Raises
    ------
    DistributionError
        Naming the argument, the row and the index of the first entry that is negative, NaN or infinite, or the first
        row whose sum is not one; also for a dtype that is neither float32 nor float64.
    ShapeError
        When there is no vocabulary axis.
    """
    if isinstance(x, list | tuple):
        x = np.asarray(x, dtype=np.float64)
    _check_dtype(x, name)
    if x.ndim < 1 or x.shape[-1] < 1:
        msg = f"{name} has shape {tuple(x.shape)}; expected (..., V) with a vocabulary V of at least one token"
        raise ShapeError(msg)
    if not _trusted.get() and holds_values(x):
        _check_rows(x, name)
    return x


def as_pair(p: Array, q: Array) -> tuple[Array, Array]:
    """Validate a target p (..., V) and a draft q (..., V) over one vocabulary, with batch axes that broadcast.

    Raises
    ------
    DistributionError, ShapeError
        As `as_distribution`; also for different vocabularies, batch axes that do not broadcast, and mixed array types.
    """
    p, q = as_distribution(p, "p"), as_distribution(q, "q")
    if type(p) is not type(q) and holds_values(p) and holds_values(q):
        msg = f"p is a {_type_name(p)} and q a {_type_name(q)}; give both as one array type"
        raise DistributionError(msg)
    if p.shape[-1] != q.shape[-1]:
        msg = f"p and q have different vocabularies: {p.shape[-1]} and {q.shape[-1]} tokens; pad the smaller with zeros"
        raise ShapeError(msg)
    try:
        np.broadcast_shapes(tuple(p.shape), tuple(q.shape))
    except ValueError as error:
        msg = f"the batch axes of p {tuple(p.shape)} and q {tuple(q.shape)} do not broadcast"
        raise ShapeError(msg) from error
    return p, q


def _type_name(x: Any) -> str:
    return f"{type(x).__module__.split('.')[0]}.{type(x).__name__}"


def _check_dtype(x: Any, name: str) -> None:
    if getattr(x, "is_exact", False):
        return
    dtype = str(getattr(x, "dtype", type(x).__name__)).split(".")[-1]
    if dtype not in _SUM_TOLERANCE:
        msg = (
            f"{name} has dtype {dtype}; allowed are float32 and float64 arrays, lists of numbers, and ft.exact(...). "
            "Half-precision logits go through ft.softmax, which returns float32"
        )
        raise DistributionError(msg)


def _check_rows(x: Array, name: str) -> None:
    xp = array_namespace(x)
    exact = getattr(x, "is_exact", False)
    bad = x < 0 if exact else ~xp.isfinite(x) | (x < 0)
    if bool(xp.any(bad)):
        *row, index = _first_index(bad)
        value = x[(*row, index)]
        shown = value if exact else float(value)
        msg = f"{name}{_row(row)} has entry {shown!r} at index {index}; allowed are finite numbers >= 0"
        raise DistributionError(msg)
    total = xp.sum(x, axis=-1)
    tolerance = 0 if exact else _SUM_TOLERANCE[str(x.dtype).split(".")[-1]]
    off = xp.abs(total - 1) > tolerance
    if bool(xp.any(off)):
        row = list(_first_index(off))
        value = total[tuple(row)]
        shown = value if exact else float(value)
        msg = f"{name}{_row(row)} sums to {shown!r}; a distribution sums to 1 (tolerance {tolerance})"
        raise DistributionError(msg)


def _first_index(mask: Array) -> tuple[int, ...]:
    flat = array_namespace(mask).reshape(mask, (-1,))
    return tuple(int(i) for i in np.unravel_index(int(first_true(flat)), tuple(mask.shape)))


def _row(index: list[int]) -> str:
    return f" row {index[0] if len(index) == 1 else tuple(index)}" if index else ""


# -- logits to distributions -------------------------------------------------------------------------------------------


def softmax(logits: Array, *, temperature: Number = 1.0) -> Array:
    """Softmax of logits (..., V) at a temperature; temperature 0 is the exact one-hot argmax, ties to the lowest id.

    Half-precision logits are read and float32 is returned; -inf marks a token without mass.

    Raises
    ------
    InvalidInput
        For a negative or non-finite temperature, NaN or +inf logits (named by row and index), or a row of -inf only.
    """
    temperature = float(temperature)
    if not 0 <= temperature < float("inf"):
        msg = f"temperature={temperature!r} is outside [0, inf)"
        raise InvalidInput(msg)
    logits = _as_logits(logits)
    xp = array_namespace(logits)
    if temperature == 0:
        return one_hot(xp.argmax(logits, axis=-1), logits)
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    return normalise(xp.exp(shifted if temperature == 1 else shifted / temperature))


def warp(
    logits: Array,
    *,
    temperature: Number = 1.0,
    top_k: int | None = None,
    top_p: Number | None = None,
    min_p: Number | None = None,
    epsilon: Number | None = None,
    eta: Number | None = None,
) -> Array:
    """Distribution (..., V) of logits (..., V) after the common warpers, applied in the order of the arguments.

    Each warper sees the distribution left by the ones before it, renormalised, and keeps the same set as the logits
    warpers of transformers: `top_k` with ties at the k-th place; `top_p` the most probable tokens until their mass
    reaches it; `min_p` the tokens with p >= min_p * max p; `epsilon` those with p >= epsilon; `eta` those with
    p >= min(eta, sqrt(eta) exp(-H)), H in nats. The most probable token always stays.

    Raises
    ------
    InvalidInput
        As `softmax`; also for a warper's setting outside its domain.
    """
    p = softmax(logits, temperature=temperature)
    warpers: tuple[tuple[str, Any, Any], ...] = (
        ("top_k", top_k, allowed_sets.top_k),
        ("top_p", top_p, allowed_sets.top_p),
        ("min_p", min_p, allowed_sets.min_p),
        ("epsilon", epsilon, allowed_sets.epsilon),
        ("eta", eta, allowed_sets.eta),
    )
    for name, setting, allowed in warpers:
        if setting is not None:
            _check_setting(name, setting)
            p = restrict(p, allowed(p, setting))
    return p


def restrict(p: Array, allowed: Array) -> Array:
    """The distribution p (..., V) conditioned on an allowed set, a boolean mask (..., V)."""
    xp = array_namespace(p)
    return normalise(xp.where(allowed, p, xp.zeros_like(p)))


def _check_setting(name: str, value: Any) -> None:
    if name == "top_k":
        if not (isinstance(value, int) and value >= 1):
            msg = f"top_k={value!r} is not an integer >= 1"
            raise ParameterError(msg)
    elif not 0 <= value <= 1:
        msg = f"{name}={value!r} is outside [0, 1]"
        raise ParameterError(msg)


def _as_logits(logits: Any) -> Array:
    if isinstance(logits, list | tuple):
        logits = np.asarray(logits, dtype=np.float64)
    xp = array_namespace(logits)
    dtype = str(logits.dtype).split(".")[-1]
    if dtype in ("float16", "bfloat16"):
        logits = xp.astype(logits, xp.float32)
    elif dtype not in _SUM_TOLERANCE:
        msg = f"logits have dtype {dtype}; allowed are float16, bfloat16, float32 and float64"
        raise InvalidInput(msg)
    if logits.ndim < 1 or logits.shape[-1] < 1:
        msg = f"logits have shape {tuple(logits.shape)}; expected (..., V) with V >= 1"
        raise ShapeError(msg)
    if holds_values(logits) and not _trusted.get():
        bad = xp.isnan(logits) | (logits == float("inf"))
        if bool(xp.any(bad)):
            *row, index = _first_index(bad)
            shown = float(logits[(*row, index)])
            msg = f"logits{_row(row)} have {shown!r} at index {index}; allowed are finite numbers and -inf"
            raise InvalidInput(msg)
        empty = xp.max(logits, axis=-1) == float("-inf")
        if bool(xp.any(empty)):
            msg = f"logits{_row(list(_first_index(empty)))} are all -inf; at least one token must be possible"
            raise InvalidInput(msg)
    return logits
