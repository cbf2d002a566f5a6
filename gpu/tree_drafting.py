"""Draft trees: grown from the draft level by level, then judged by the target at all nodes in one pass."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fly_theory.distributions import softmax
from fly_theory.errors import CaptureError
from fly_theory.trees import Expansion
from fly_theory.trees.builders import Drafted
from gpu.drafting import Place
from gpu.models import Model, Pair
from gpu.sampling import DRAFT, draw, uniforms
from gpu.trace.tree import TraceTree
from gpu.tree_shapes import FullTree, TopKTree, TreeShape

__all__ = ["check_rows", "draft_trees", "tree_logits"]

# How far logits of a tree pass and of a plain pass may lie apart, in units of the largest logit; a wrong mask or
# position moves them by a large part of that unit.
_ROUNDING = {torch.float32: 0.01, torch.float16: 0.05, torch.bfloat16: 0.15}


@torch.inference_mode()
def draft_trees(
    pair: Pair, places: Sequence[Place], *, shape: TreeShape, temperature: float, seed: int, dtype: torch.dtype
) -> list[TraceTree]:
    """Draft a tree at each place and score all its nodes with the target, one batch for all.

    Tokens come from softmax(logits / temperature) of the draft's logits *after* rounding to `dtype` and after giving
    -inf to the ids the target does not know: the law that a reader of the trace recomputes.
    """
    contexts = [place.context for place in places]
    growing = [_growing(shape, place, temperature, seed) for place in places]
    batch, level = _Levels(pair.draft, contexts), 0
    rows: list[dict[int, Tensor]] = [{} for _ in places]
    while growing[0].frontier:
        logits = (batch.after_nodes(growing, level) if level else batch.after_contexts()).to("cpu", dtype)
        logits[..., pair.common :] = -torch.inf
        for tree, known, answered in zip(growing, rows, logits, strict=True):
            known.update(zip(tree.frontier, answered, strict=True))
            tree.answer(answered)
        level += 1
    trees = [tree.drafted() for tree in growing]
    target_logits = tree_logits(pair.target, contexts, trees).to("cpu", dtype)
    found = []
    for place, tree, drafted, known, logits in zip(places, growing, trees, rows, target_logits, strict=True):
        made = [0, *tree.kept]
        found.append(
            TraceTree(
                target_logits=logits,
                draft_logits=torch.stack([known[made[node]] for node in sorted(set(drafted.parents))]),
                tokens=torch.from_numpy(drafted.tokens),
                parents=torch.tensor(drafted.parents),
                context=torch.tensor(place.context),
                prompt=place.prompt,
                position=place.position,
            )
        )
    return found


@torch.inference_mode()
def tree_logits(model: Model, contexts: Sequence[Sequence[int]], trees: Sequence[Drafted]) -> Tensor:
    """Logits (B, N+1, V) of a model after each context and after each of the N nodes of its tree, in one pass.

    Contexts of different lengths are padded on the left. A node sees its context and the path to it, and stands where
    it would on that path alone.
    """
    nodes, longest = len(trees[0].tokens), max(map(len, contexts))
    ids = torch.zeros(len(trees), longest + nodes, dtype=torch.int64)
    positions = torch.zeros_like(ids)
    visible = torch.eye(longest + nodes, dtype=torch.bool).repeat(len(trees), 1, 1)
    for i, (context, tree) in enumerate(zip(contexts, trees, strict=True)):
        start = longest - len(context)
        ids[i, start:] = torch.tensor([*context, *tree.tokens.tolist()])
        positions[i, start:longest] = torch.arange(len(context))
        visible[i, start:longest, start:longest] = torch.ones(len(context), len(context), dtype=torch.bool).tril()
        for node, parent in enumerate(tree.parents, start=longest):
            before = parent + longest - 1
            visible[i, node] |= visible[i, before]
            positions[i, node] = positions[i, before] + 1
    return model.logits_where(ids, visible, positions, positions, keep=nodes + 1)


@torch.inference_mode()
def check_rows(pair: Pair, tree: TraceTree) -> None:
    """Hold the logits on the longest path of a tree against those of a plain pass over that path.

    Raises
    ------
    CaptureError
        A model that does not attend as it is told, for example one that reads no masks of its caller's.
    """
    longest = max(range(1, len(tree.tokens) + 1), key=lambda node: len(tree.path(node)))
    path, inner, node = [longest], tree.inner, longest
    while node:
        node = int(tree.parents[node - 1])
        path.insert(0, node)
    ids = torch.tensor([[*tree.context.tolist(), *tree.path(longest)]])
    draft_rows = tree.draft_logits[[inner.index(node) for node in path[:-1]]][:, : pair.common]
    for role, model, rows, extra in (
        ("target", pair.target, tree.target_logits[path], 0),
        ("draft", pair.draft, draft_rows, 1),
    ):
        device = model.network.device
        plain = model.logits(ids.to(device), torch.ones_like(ids).to(device), keep=len(path))[0].cpu()
        expected = plain[: len(path) - extra, : rows.shape[-1]].float()
        rounding = max(_ROUNDING[rows.dtype], _ROUNDING[model.network.dtype])
        apart = float((rows.float() - expected).abs().max() / expected.abs().max())
        if not apart <= rounding:
            msg = (
                f"the {role} ({type(model.network).__name__}) gives other logits in a tree pass than along the path "
                f"alone (off by {apart:.2g} of the largest), so its attention does not follow the tree; draft trees "
                "cannot be captured with it"
            )
            raise CaptureError(msg)


def _growing(shape: TreeShape, place: Place, temperature: float, seed: int) -> "_Likeliest | _Drawn":
    if isinstance(shape, TopKTree):
        return _Likeliest(shape, temperature)
    return _Drawn(shape, temperature, uniforms(seed, DRAFT, place.prompt, place.block, shape.nodes))


class _Likeliest(Expansion):
    """The most probable paths, from logits."""

    def __init__(self, shape: TopKTree, temperature: float) -> None:
        super().__init__(top_k=shape.top_k, depth=shape.depth, total=shape.total)
        self._temperature = temperature

    def answer(self, logits: Tensor) -> None:
        """Draft one level more, given the logits (F, V) at the frontier."""
        self.grow(softmax(logits.double(), temperature=self._temperature).numpy())


class _Drawn:
    """A full tree whose siblings are drawn in turn; the interface is that of `_Likeliest`."""

    def __init__(self, shape: FullTree, temperature: float, noise: np.ndarray) -> None:
        self._shape, self._noise = shape, torch.from_numpy(noise)
        self._temperature = 0.0 if shape.drawing == "deterministic" else temperature
        self.frontier, self.tokens, self.parents = [0], [], []
        self._counts = iter(shape.children)
        self._next = next(self._counts)

    @property
    def kept(self) -> range:
        """All that were made."""
        return range(1, len(self.tokens) + 1)

    def drafted(self) -> Drafted:
        """The finished tree."""
        return Drafted(np.array(self.tokens), tuple(self.parents))

    def answer(self, logits: Tensor) -> None:
        """Draft one level more, given the logits (F, V) at the frontier."""
        level = []
        for node, row in zip(self.frontier, logits, strict=True):
            left = row.clone()
            for _ in range(self._next):
                noise = self._noise[len(self.tokens) : len(self.tokens) + 1]
                token = int(draw(left[None], noise, temperature=self._temperature))
                if self._shape.drawing != "with-replacement":
                    left[token] = -torch.inf
                self.tokens.append(token)
                self.parents.append(node)
                level.append(len(self.tokens))
        self._next = next(self._counts, 0)
        self.frontier = level if self._next else []


class _Levels:
    """Growing trees after contexts of different lengths in one model, a level at a time over a cache."""

    def __init__(self, model: Model, contexts: Sequence[Sequence[int]]) -> None:
        longest = max(map(len, contexts))
        padding = torch.tensor([longest - len(context) for context in contexts])
        self._model, self._cache = model, model.whole_cache()
        self._ids = torch.tensor([[0] * (longest - len(context)) + list(context) for context in contexts])
        self._lengths = longest - padding
        self._there = torch.arange(longest) >= padding[:, None]
        self._positions = (torch.arange(longest) - padding[:, None]).clamp(min=0)
        self._fed: list[dict[int, int]] = [{} for _ in contexts]

    def after_contexts(self) -> Tensor:
        """Logits (B, 1, V) after the contexts."""
        device = self._model.network.device
        return self._model.logits(self._ids.to(device), self._there.long().to(device), keep=1, cache=self._cache)

    def after_nodes(self, trees: Sequence[_Likeliest | _Drawn], depth: int) -> Tensor:
        """Logits (B, F, V) after the paths to the frontiers, whose nodes all lie at this depth."""
        count, known = len(trees[0].frontier), len(self._fed[0])
        visible = torch.zeros(len(trees), count, known + count, dtype=torch.bool)
        for i, (tree, fed) in enumerate(zip(trees, self._fed, strict=True)):
            for place, node in enumerate(tree.frontier):
                fed[node] = known + place
                while node:
                    visible[i, place, fed[node]] = True
                    node = tree.parents[node - 1]
        ids = torch.tensor([[tree.tokens[node - 1] for node in tree.frontier] for tree in trees])
        positions = (self._lengths + depth - 1)[:, None].expand(-1, count)
        self._positions = torch.cat([self._positions, positions], dim=1)
        context = self._there[:, None, :].expand(-1, count, -1)
        return self._model.logits_where(
            ids, torch.cat([context, visible], dim=-1), positions, self._positions, keep=count, cache=self._cache
        )
