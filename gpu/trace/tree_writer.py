"""Writing a trace of draft trees, tree by tree, as `TraceWriter` writes blocks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.trees.tree import Drawing
from gpu.trace.tree import TraceTree, TreeHeader
from gpu.trace.writer import TraceWriter, as_stored, looked_ahead, new_folder, places_as_tensors

__all__ = ["TreeWriter", "write_trees"]


class TreeWriter(TraceWriter):
    """A `TraceWriter` for trees: target_logits (N+1, V_target), draft_logits (M, V_draft), tokens and parents (N,).

    Besides what `TraceWriter.append` refuses, it refuses parents that do not come first, paths longer than the header's
    draft_length, and siblings that are the same where they were not drawn with replacement.
    """

    header: TreeHeader
    _unit = "tree"

    def _stored(self, tree: TraceTree, name: str) -> TraceTree:
        header = self.header
        tokens, parents = tree.tokens.to(torch.int64), tree.parents.to(torch.int64)
        _check_shape(name, "tokens", tokens, (header.nodes,))
        _check_shape(name, "parents", parents, (header.nodes,))
        _check_topology(name, parents.tolist(), header)
        inner = tree.inner
        _check_shape(name, "target_logits", tree.target_logits, (header.nodes + 1, header.target_vocabulary))
        _check_shape(name, "draft_logits", tree.draft_logits, (len(inner), header.draft_vocabulary))
        if bool(((tokens < 0) | (tokens >= header.draft_vocabulary)).any()):
            msg = f"{name}: tokens {tokens.tolist()} are not all ids of the draft, 0 to {header.draft_vocabulary - 1}"
            raise InvalidInput(msg)
        draft_logits = as_stored(tree.draft_logits, header.dtype, f"{name}: draft_logits")
        row = torch.tensor([inner.index(parent) for parent in parents.tolist()])
        without_mass = (draft_logits[row, tokens] == -torch.inf).nonzero()
        if len(without_mass):
            at = int(without_mass[0])
            msg = f"{name}: node {at + 1} is token {int(tokens[at])}, to which the draft gives no mass"
            raise InvalidInput(msg)
        drawn = list(zip(parents.tolist(), tokens.tolist(), strict=True))
        if header.drawing != "with-replacement" and len(set(drawn)) < len(drawn):
            msg = f"{name}: siblings drawn {header.drawing} differ, and these do not: tokens {tokens.tolist()}"
            raise InvalidInput(msg)
        return TraceTree(
            target_logits=as_stored(tree.target_logits, header.dtype, f"{name}: target_logits"),
            draft_logits=draft_logits,
            tokens=tokens,
            parents=parents,
            context=tree.context.to(torch.int64),
            prompt=tree.prompt,
            position=tree.position,
        )

    def _as_tensors(self, trees: list[TraceTree]) -> dict[str, Tensor]:
        rows = torch.tensor([0, *(len(tree.draft_logits) for tree in trees)])
        return {
            "target_logits": torch.stack([tree.target_logits for tree in trees]),
            "draft_logits": torch.cat([tree.draft_logits for tree in trees]),
            "draft_offsets": rows.cumsum(0),
            "tokens": torch.stack([tree.tokens for tree in trees]),
            "parents": torch.stack([tree.parents for tree in trees]),
        } | places_as_tensors(trees)


def write_trees(
    path: str | Path,
    trees: Iterable[TraceTree],
    *,
    drawing: Drawing,
    dtype: str = "float32",
    blocks_per_shard: int = 8,
    tokenizer: str | Path | None = None,
    source: Mapping[str, Any] | None = None,
) -> Path:
    """Write draft trees captured elsewhere as a trace, and return its folder, which has to be new or empty.

    N, the widths of both models and the longest path are those of the first tree; the rest is as in `write_trace`.

    Raises
    ------
    InvalidInput, ShapeError, CaptureError
        No tree at all, or as `TreeWriter`.
    """
    folder = new_folder(path)
    first, all_trees = looked_ahead(trees, "tree")
    header = TreeHeader(
        draft_length=max(_depths(first.parents.tolist())),
        target_vocabulary=first.target_logits.shape[-1],
        draft_vocabulary=first.draft_logits.shape[-1],
        dtype=dtype,
        blocks_per_shard=blocks_per_shard,
        tokenizer=None if tokenizer is None else Path(tokenizer).read_bytes(),
        source={} if source is None else source,
        nodes=len(first.tokens),
        drawing=drawing,
    )
    with TreeWriter(folder, header) as writer:
        for tree in all_trees:
            writer.append(tree)
        writer.finish()
    return folder


def _check_shape(name: str, field: str, value: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(value.shape) != expected:
        msg = f"{name}: {field} has shape {tuple(value.shape)}; expected {expected}"
        raise ShapeError(msg)


def _check_topology(name: str, parents: list[int], header: TreeHeader) -> None:
    for node, parent in enumerate(parents, start=1):
        if not 0 <= parent < node:
            msg = f"{name}: parents[{node - 1}]={parent}; the parent of node {node} is one of 0 to {node - 1}"
            raise InvalidInput(msg)
    longest = max(_depths(parents))
    if longest > header.draft_length:
        msg = f"{name}: a path has {longest} drafts; the trace holds trees of depth {header.draft_length} at most"
        raise InvalidInput(msg)


def _depths(parents: list[int]) -> list[int]:
    depths = [0]
    for parent in parents:
        depths.append(depths[parent] + 1)
    return depths
