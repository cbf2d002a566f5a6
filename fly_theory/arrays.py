"""The few array operations that every rule shares, written once against the Python array API.

Arrays are never converted here: numpy, torch, jax, exact and symbolic arrays come in and go out as what they are.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

# The array API has no common static type; `Array` documents intent and is any object with `__array_namespace__`
# (or one that array-api-compat wraps).
Array = Any
Number = int | float | Fraction

__all__ = [
    "Array",
    "Number",
    "array_namespace",
    "as_fraction",
    "constant",
    "device",
    "first_true",
    "holds_values",
    "inverse_cdf",
    "normalise",
    "one_hot",
    "positive_part",
    "scalar",
    "sums_across",
    "take",
]


def as_fraction(value: Number) -> Fraction:
    """The rational a parameter means: a float is the decimal it prints as, so 0.4 is 2/5; a symbol stays one."""
    if getattr(value, "is_symbolic", False):
        return value  # type: ignore[return-value]
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def scalar(value: Number, like: Array) -> Any:
    """A parameter as a scalar to combine `like` with: a float, or a Fraction for exact and symbolic arrays."""
    return as_fraction(value) if getattr(like, "is_exact", False) else float(value)


def constant(value: Number, like: Array) -> Array:
    """A parameter as a 0-d array with the dtype and device of `like`, for functions that take arrays only."""
    return array_namespace(like).asarray(scalar(value, like), dtype=like.dtype, device=device(like))


def holds_values(x: Array) -> bool:
    """Whether the entries of `x` can be inspected: False for symbols and for arrays being traced by jax or torch."""
    if getattr(x, "is_symbolic", False):
        return False
    return not isinstance(x, _traced_arrays())


def _traced_arrays() -> tuple[type, ...]:
    jax, fake_tensors = sys.modules.get("jax"), sys.modules.get("torch._subclasses.fake_tensor")
    jax_types = () if jax is None else (jax.core.Tracer,)
    return jax_types if fake_tensors is None else (*jax_types, fake_tensors.FakeTensor)


def positive_part(x: Array) -> Array:
    """(x)+, elementwise."""
    return array_namespace(x).clip(x, min=0)


def normalise(weights: Array) -> Array:
    """Weights (..., V) divided by their sum over the last axis; a row without mass stays zero."""
    xp = array_namespace(weights)
    mass = xp.sum(weights, axis=-1, keepdims=True)
    return weights / xp.where(mass > 0, mass, xp.ones_like(mass))


def take(x: Array, tokens: Array) -> Array:
    """The entries x[..., tokens]: x is (..., V), tokens (...,); batch axes broadcast."""
    xp = array_namespace(x)
    batch = np.broadcast_shapes(tuple(x.shape[:-1]), tuple(tokens.shape))
    x = xp.broadcast_to(x, (*batch, x.shape[-1]))
    index = xp.broadcast_to(tokens, batch)[..., None]
    return xp.take_along_axis(x, index, axis=-1)[..., 0]


def one_hot(tokens: Array, like: Array) -> Array:
    """Point masses at `tokens` (...,), with the vocabulary, dtype and device of `like` (..., V)."""
    xp = array_namespace(like)
    ids = xp.arange(like.shape[-1], device=device(like))
    return xp.astype(ids == tokens[..., None], like.dtype)


def first_true(mask: Array) -> Array:
    """Index (...,) of the first True along the last axis (0 where there is none)."""
    xp = array_namespace(mask)
    return xp.argmax(xp.astype(mask, xp.int32), axis=-1)


def inverse_cdf(weights: Array, uniforms: Array) -> Array:
    """Draw one token per row from unnormalised weights (..., V) with uniforms (...,) in [0, 1).

    The token is the first one whose cumulative weight exceeds `uniform * total`; tokens without weight are never drawn.
    """
    xp = array_namespace(weights)
    positive = weights > 0
    cumulative = xp.where(positive, xp.cumulative_sum(weights, axis=-1), xp.zeros_like(weights))
    total = xp.max(cumulative, axis=-1)
    return first_true(positive & (cumulative > (uniforms * total)[..., None]))


def sums_across(left: Array, right: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Two functions that sum values of one side up to the keys of the other, from one sort of the keys of both.

    `left` (..., L) and `right` (..., R) are the keys. The first function takes values (..., R) to their sums (..., L)
    where `right` is below each key of `left`, the second takes values (..., L) to their sums (..., R) where `left` is
    not above each key of `right`.
    """
    xp = array_namespace(left, right)
    order = xp.argsort(xp.concat([left, right], axis=-1), axis=-1, stable=True)
    rank = xp.argsort(order, axis=-1, stable=True)
    rank_left, rank_right = rank[..., : left.shape[-1]], rank[..., left.shape[-1] :]

    def sums(values: list[Array], rank: Array) -> Array:
        running = xp.cumulative_sum(xp.take_along_axis(xp.concat(values, axis=-1), order, axis=-1), axis=-1)
        return xp.take_along_axis(running, rank, axis=-1)

    return (
        lambda values: sums([xp.zeros_like(left), values], rank_left),
        lambda values: sums([values, xp.zeros_like(right)], rank_right),
    )
