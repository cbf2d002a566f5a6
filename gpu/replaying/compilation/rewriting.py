"""How single operations of a traced stage are written for the compiler."""

from collections.abc import Callable

import torch
from torch import Tensor

from gpu.replaying.elementary import log

__all__ = ["REWRITTEN"]

# A sum over more than this many terms is compiled on CPU into a slow loop that guards against rounding; sums of sums
# over tiles of a row need no such guard.
_LONGEST_SUM = 4096
_SHORTEST_TILE = 256

_aten = torch.ops.aten


def _tiled(x: Tensor) -> Tensor | None:
    """Rows (..., V) as (..., V / tile, tile), or None where they need not or cannot be tiled."""
    width = x.shape[-1] if x.ndim else 0
    if x.device.type != "cpu" or width <= _LONGEST_SUM:
        return None
    tile = next((n for n in range(_LONGEST_SUM, _SHORTEST_TILE - 1, -1) if width % n == 0), None)
    return None if tile is None else x.reshape(*x.shape[:-1], width // tile, tile)


def _by_tiles(reduction: Callable[..., Tensor], x: Tensor, dim: list[int] | None, keepdim: bool) -> Tensor:
    """A reduction over the last axis as one of the same kind over what it makes of each tile."""
    last = dim is not None and [axis % x.ndim for axis in dim] == [x.ndim - 1]
    tiles = _tiled(x) if last else None
    return NotImplemented if tiles is None else reduction(reduction(tiles, -1), -1, keepdim=keepdim)


def _sum(x: Tensor, dim: list[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _by_tiles(torch.sum, x, dim, keepdim) if dtype is None and x.is_floating_point() else NotImplemented


def _amax(x: Tensor, dim: list[int] = (), keepdim: bool = False) -> Tensor:
    return _by_tiles(torch.amax, x, dim, keepdim)


def _amin(x: Tensor, dim: list[int] = (), keepdim: bool = False) -> Tensor:
    return _by_tiles(torch.amin, x, dim, keepdim)


def _clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    if min is None or max is not None:
        return NotImplemented
    return torch.relu(x) if min == 0 else torch.where(x > min, x, min)


def _minimum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x < y, x, y) if x.is_floating_point() and x.dtype == y.dtype else NotImplemented


def _maximum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, x, y) if x.is_floating_point() and x.dtype == y.dtype else NotImplemented


def _log(x: Tensor) -> Tensor:
    if x.dtype != torch.float32 or x.device.type != "cpu":
        return NotImplemented
    return torch.where(x > 0, log(x), -torch.inf)


def _div(x: Tensor, y: Tensor) -> Tensor:
    if isinstance(y, Tensor):
        once = x.ndim == y.ndim and y.shape[-1] == 1 < x.shape[-1]
    else:
        once = isinstance(y, float) and y != 0
    return x * (1 / y) if once else NotImplemented


# No NaN reaches a rule; without its care for NaN an extremum is one instruction in place of four.
REWRITTEN = {
    _aten.sum.dim_IntList: _sum,
    _aten.amax.default: _amax,
    _aten.amin.default: _amin,
    _aten.clamp.default: _clamp,
    _aten.minimum.default: _minimum,
    _aten.maximum.default: _maximum,
    _aten.log.default: _log,
    _aten.div.Tensor: _div,
}
