"""Stages of the replay pass traced with torch and compiled for one shape of rows.

A stage is traced by running it on tensors without values, so what is compiled is what the rules say, and one graph
whatever they contain. Only how it is computed is changed, below the level of a rule: how single operations are written
(`rewriting`) and in which order (`sweeps`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from gpu.replaying.compilation.rewriting import REWRITTEN
from gpu.replaying.compilation.sweeps import order_by_sweeps

__all__ = ["compiled", "worth_compiling"]

# Probabilities of a trace, positions times vocabulary, from which compiling pays: to compile a rule takes from seconds
# to a minute, which is how long it takes to evaluate it plainly on so many.
_WORTH_COMPILING = 10**9

_OPTIONS = {
    # Fused multiply-add.
    "cpp.enable_floating_point_contract_flag": "fast",
    # Loops are cut for many threads, by tiles of rows too, and shared among those there are when they run.
    "cpp.threads": 64,
    "cpp.dynamic_threads": True,
    # All sums of one sweep in one loop.
    "cpp.max_horizontal_fusion_size": 1000,
    # Terms of sums are computed again in each loop that needs them, and never stored.
    "realize_opcount_threshold": 10_000,
    "realize_reads_threshold": 10_000,
    "realize_acc_reads_threshold": 10_000,
}

_SORTS = (torch.ops.aten.sort, torch.ops.aten.argsort)


def worth_compiling(positions: int, vocabulary: int) -> bool:
    """Whether the rules on so many positions are evaluated sooner compiled, the time to compile them included."""
    return positions * vocabulary >= _WORTH_COMPILING


def compiled(stage: Callable[..., Any], *examples: Tensor) -> Callable[..., Any]:
    """A stage, array operations on tensors with the shapes, dtypes and device of `examples`, as compiled code.

    Compiled code is kept on disk by torch, and loaded from there where it is found. A stage that sorts comes back as it
    is: sorting takes nearly all its time, compiled or not.
    """
    from torch import _inductor as inductor
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    layout = None

    def flat(*inputs: Tensor) -> tuple[Tensor, ...]:
        nonlocal layout
        values, layout = tree_flatten(stage(*inputs))
        return tuple(values)

    # The cache on disk asks for a place where guards on shapes could be; here shapes are fixed.
    without_values = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    shapes = [without_values.from_tensor(example, static_shapes=True) for example in examples]
    traced = make_fx(flat, decomposition_table=REWRITTEN)(*shapes)
    if any(getattr(node.target, "overloadpacket", None) in _SORTS for node in traced.graph.nodes):
        return stage
    order_by_sweeps(traced.graph)
    traced.recompile()
    run = inductor.compile(traced, shapes, options=_OPTIONS)
    return lambda *inputs: tree_unflatten(run(*inputs), layout)
