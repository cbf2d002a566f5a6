"""A captured tree as the tree that rules judge, its rows made one at a time."""

from collections.abc import Callable

import torch
from torch import Tensor

from fly_theory.distributions import warp
from fly_theory.trees import DraftTree, Drawing
from gpu.replaying.settings import DTYPES, ReplaySettings
from gpu.trace.tree import TraceTree

__all__ = ["draft_at_root", "drafted_tree"]


def drafted_tree(
    tree: TraceTree, settings: ReplaySettings, drawing: Drawing, truncated: Callable[[Tensor], Tensor] | None = None
) -> DraftTree:
    """The tree with the rows p (N+1, V) of the target and, where siblings are drawn from it, q of the draft.

    `truncated` maps each row p (V,) to the target that takes its place. Rows q of nodes without children stay empty:
    no rule reads them.
    """
    target = torch.empty(tree.target_logits.shape, dtype=DTYPES[settings.dtype], device=settings.device)
    for node, logits in enumerate(tree.target_logits):
        p = _law(logits, settings)
        target[node] = p if truncated is None else truncated(p)
    draft = None if drawing == "deterministic" else torch.zeros_like(target)
    if draft is not None:
        for node, logits in zip(tree.inner, tree.draft_logits, strict=True):
            draft[node] = _law(logits, settings)
    return DraftTree(target, draft, tree.tokens.to(settings.device), tuple(tree.parents.tolist()), drawing=drawing)


def draft_at_root(tree: TraceTree, settings: ReplaySettings) -> Tensor:
    """The draft's law q (V,) after the context."""
    return _law(tree.draft_logits[0], settings)


def _law(logits: Tensor, settings: ReplaySettings) -> Tensor:
    return warp(logits.to(settings.device, DTYPES[settings.dtype]), **settings.law)
