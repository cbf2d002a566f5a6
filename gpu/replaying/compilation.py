"""Stages of the replay pass traced with torch and compiled for one shape of rows.

A stage is traced by running it on tensors without values, so what is compiled is what the rules say, and one graph
whatever they contain. Only how it is computed is changed, below the level of a rule.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["compiled", "worth_compiling"]

# Probabilities of a trace, positions times vocabulary, from which compiling pays: to compile a rule takes from seconds
# to a minute, which is how long it takes to evaluate it plainly on so many.
_WORTH_COMPILING = 10**9

# A sum over more than this many terms is compiled on CPU into a slow loop that guards against rounding; sums of sums
# over tiles of a row need no such guard.
_LONGEST_SUM = 4096
_SHORTEST_TILE = 256

_OPTIONS = {
    # Fused multiply-add.
    "cpp.enable_floating_point_contract_flag": "fast",
    # Terms of sums are computed again in each loop that needs them, and never stored.
    "realize_opcount_threshold": 10_000,
    "realize_reads_threshold": 10_000,
    "realize_acc_reads_threshold": 10_000,
}

_aten = torch.ops.aten

_SORTS = (_aten.sort, _aten.argsort)


def worth_compiling(positions: int, vocabulary: int) -> bool:
    """Whether the rules on so many positions are evaluated sooner compiled, the time to compile them included."""
    return positions * vocabulary >= _WORTH_COMPILING


def compiled(stage: Callable[..., Any], *examples: Tensor) -> Callable[..., Any]:
    """A stage, array operations on tensors with the shapes, dtypes and device of `examples`, as compiled code.

    Compiled code is cached on disk by torch; the first call compiles or loads it. A stage that sorts comes back as it
    is: sorting takes nearly all its time, compiled or not.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    traced = make_fx(lambda *inputs: stage(*inputs), decomposition_table=_REWRITTEN, tracing_mode="fake")(*examples)
    if any(getattr(node.target, "overloadpacket", None) in _SORTS for node in traced.graph.nodes):
        return stage
    return torch.compile(traced, fullgraph=True, dynamic=False, options=_OPTIONS)


def _tiled(x: Tensor) -> Tensor | None:
    """Rows (..., V) as (..., V / tile, tile), or None where they need not or cannot be tiled."""
    width = x.shape[-1] if x.ndim else 0
    if x.device.type != "cpu" or width <= _LONGEST_SUM:
        return None
    tile = next((n for n in range(_LONGEST_SUM, _SHORTEST_TILE - 1, -1) if width % n == 0), None)
    return None if tile is None else x.reshape(*x.shape[:-1], width // tile, tile)


def _sum(x: Tensor, dim: list[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    last = dim is not None and [axis % x.ndim for axis in dim] == [x.ndim - 1]
    tiles = _tiled(x) if last and dtype is None and x.is_floating_point() else None
    return NotImplemented if tiles is None else tiles.sum(-1).sum(-1, keepdim=keepdim)


def _amax(x: Tensor, dim: list[int] = (), keepdim: bool = False) -> Tensor:
    tiles = _tiled(x) if [axis % x.ndim for axis in dim] == [x.ndim - 1] else None
    return NotImplemented if tiles is None else tiles.amax(-1).amax(-1, keepdim=keepdim)


def _clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    return torch.relu(x) if min == 0 and max is None else NotImplemented


def _minimum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x < y, x, y) if x.is_floating_point() and x.dtype == y.dtype else NotImplemented


def _maximum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, x, y) if x.is_floating_point() and x.dtype == y.dtype else NotImplemented


def _held(x: Tensor, like: Tensor) -> Tensor:
    """One number a row, (..., 1), to combine rows (..., V) with; a view of it keeps it from being computed again."""
    if x.ndim == 0 or not x.shape[-1] == 1 < like.shape[-1] or hasattr(x, "held"):
        return x
    kept = _kept(x)
    kept.held = True
    return kept


def _kept(x: Tensor) -> Tensor:
    """The same numbers in memory, which a view of them needs, for whoever would compute them again."""
    return x.as_strided(x.shape, x.stride())


def _log(x: Tensor) -> Tensor:
    if hasattr(x, "logged"):
        return NotImplemented
    x.logged = True
    return _kept(torch.log(x))


def _mul(x: Tensor, y: Tensor) -> Tensor:
    if not isinstance(y, Tensor) or x.ndim != y.ndim:
        return NotImplemented
    a, b = _held(x, y), _held(y, x)
    return NotImplemented if a is x and b is y else a * b


def _div(x: Tensor, y: Tensor) -> Tensor:
    if isinstance(y, Tensor) and x.ndim == y.ndim and y.shape[-1] == 1 < x.shape[-1]:
        return x * (1 / y)
    return NotImplemented


# No NaN reaches a rule; without its care for NaN an extremum is one instruction in place of four.
_REWRITTEN = {
    _aten.sum.dim_IntList: _sum,
    _aten.amax.default: _amax,
    _aten.clamp.default: _clamp,
    _aten.minimum.default: _minimum,
    _aten.maximum.default: _maximum,
    _aten.log.default: _log,
    _aten.mul.Tensor: _mul,
    _aten.div.Tensor: _div,
}
