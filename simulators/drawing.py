"""Drawing from tables by inverse CDF, with the cumulative sums taken once on the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["cumulative", "pick"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


def cumulative(rows: Floats) -> Floats:
    """Cumulative sums (..., V) of probability rows (..., V), scaled to one and closed at the last possible token."""
    sums = np.cumsum(rows, axis=-1)
    last = rows.shape[-1] - 1 - np.argmax(rows[..., ::-1] > 0, axis=-1)
    closed = np.arange(rows.shape[-1]) >= last[..., None]
    return np.where(closed, np.inf, sums / sums[..., -1:])


def pick(sums: jax.Array, uniform: jax.Array) -> jax.Array:
    """The first token (...,) whose cumulative sum (..., V) exceeds the uniform (...,); never an impossible one."""
    return jnp.sum(sums <= uniform[..., None], axis=-1)
