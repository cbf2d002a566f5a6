"""One drafted tree with the logits of both models at its nodes, and what a trace of such trees says about itself.

    manifest.json    as that of a trace of blocks, with draft_length as the most drafts on a path, and
        nodes            N, the drafted tokens of each tree
        drawing          how siblings were drawn: with-replacement, without-replacement or deterministic
    shards/shard-00000.safetensors    blocks_per_shard trees each (B), the last one fewer:
        target_logits    (B, N+1, V_target)   row n follows the context and the path to node n; node 0 is the context
        draft_logits     (sum of M, V_draft)  a row for each node with children, in their order, tree after tree
        draft_offsets    (B + 1,)             where the rows of each tree begin and the last ones end, int64
        tokens           (B, N)               token ids of nodes 1..N, int64
        parents          (B, N)               the parent of each of these, which comes before it, int64
        context_ids, context_offsets, prompt, position    as in a trace of blocks

The children of the m-th node with children were drawn from, or are the most probable tokens of, row m of the draft.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fly_theory.trees.tree import Drawing, check_drawing
from gpu.trace.header import TREE_SCHEMA, TraceHeader

__all__ = ["TraceTree", "TreeHeader"]


@dataclass(frozen=True, eq=False)
class TraceTree:
    """N drafted tokens in a tree after a context, and what both models said at its nodes.

    Attributes
    ----------
    target_logits
        (N+1, V) logits of the target p; row n follows the context and the path to node n.
    draft_logits
        (M, V) logits of the draft q; row m is what the children of node `inner[m]` were drawn from.
    tokens, parents
        (N,) of nodes 1..N; node 0 is the context.
    context, prompt, position, index
        As in a `TraceBlock`.
    """

    target_logits: Tensor
    draft_logits: Tensor
    tokens: Tensor
    parents: Tensor
    context: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    prompt: int = 0
    position: int = 0
    index: int = 0

    @property
    def inner(self) -> list[int]:
        """The M nodes with children."""
        return sorted(set(self.parents.tolist()))

    def path(self, node: int) -> list[int]:
        """The tokens on the path to a node."""
        return [*self.path(int(self.parents[node - 1])), int(self.tokens[node - 1])] if node else []


@dataclass(frozen=True)
class TreeHeader(TraceHeader):
    """What a trace of trees holds, before any tree of it: a `TraceHeader` whose draft_length is the longest path.

    Attributes
    ----------
    nodes
        N, the drafted tokens of each tree.
    drawing
        How siblings were drawn.
    """

    nodes: int
    drawing: Drawing

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_positive("nodes")
        check_drawing(self.drawing)

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"schema": TREE_SCHEMA, "nodes": self.nodes, "drawing": self.drawing}
