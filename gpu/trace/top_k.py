"""One drafted block of which only the most probable tokens are stored, and what a trace of such blocks says of itself.

    manifest.json    as that of a trace of blocks, with
        top_k            k, how many tokens of a row are stored
        temperature      of the laws: log p = logit / temperature - log_sum_exp, and so for q
    shards/shard-00000.safetensors    blocks_per_shard blocks each (B), the last one fewer:
        target_logits, target_ids      (B, K+1, k)  the largest logits of a row and their token ids (int32); where
                                                    fewer tokens have mass, -inf with the id -1
        target_log_sum_exp             (B, K+1)     log sum exp(logit / temperature) over all tokens, float64
        draft_logits, draft_ids        (B, K, k)    the same of the draft
        draft_log_sum_exp              (B, K)
        drafted_logits                 (B, K, 2)    of the draft token, by the target and by the draft
        tokens, context_ids, context_offsets, prompt, position    as in a trace of blocks

A token that is not among the k of a row is at most as probable as the last of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from fly_theory.errors import InvalidInput
from gpu.trace.block import TraceBlock
from gpu.trace.header import DTYPES, TOP_K_SCHEMA, TraceHeader

__all__ = ["TOP_K_DTYPES", "TopKBlock", "TopKHeader", "TopRows", "top_k_of"]

TOP_K_DTYPES = DTYPES | {"float64": torch.float64}


@dataclass(frozen=True, eq=False)
class TopRows:
    """The most probable tokens of rows (N) of one model.

    Attributes
    ----------
    logits, ids
        (N, k) largest logits and their token ids; -inf and -1 where fewer tokens have mass.
    log_sum_exp
        (N,) log sum exp(logit / temperature) over all tokens, float64.
    """

    logits: Tensor
    ids: Tensor
    log_sum_exp: Tensor

    def log_probabilities(self, temperature: float) -> Tensor:
        """(N, k) in float64, at the temperature that `log_sum_exp` is of."""
        return self.logits.double() / temperature - self.log_sum_exp[:, None]


@dataclass(frozen=True, eq=False)
class TopKBlock:
    """K draft tokens after a context, and the most probable tokens of both models along the way.

    Attributes
    ----------
    target
        K + 1 rows; row n follows the context and the first n draft tokens.
    draft
        K rows; row n is what draft token n was drawn from.
    drafted_logits
        (K, 2) logits of the draft tokens, by the target and by the draft.
    temperature
        Of the laws that the rows are of.
    vocabulary
        V, how many tokens there are.
    tokens, context, prompt, position, index
        As in a `TraceBlock`.
    """

    target: TopRows
    draft: TopRows
    drafted_logits: Tensor
    temperature: float
    vocabulary: int
    tokens: Tensor
    context: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    prompt: int = 0
    position: int = 0
    index: int = 0


@dataclass(frozen=True)
class TopKHeader(TraceHeader):
    """What a top-k trace holds, before any block of it; dtype may also be float64.

    Attributes
    ----------
    top_k
        k, how many tokens of a row are stored, at most the wider vocabulary.
    temperature
        Of the laws that log_sum_exp is of, above 0.
    """

    top_k: int
    temperature: float

    _dtypes: ClassVar[Mapping[str, torch.dtype]] = TOP_K_DTYPES

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_positive("top_k")
        widest = max(self.target_vocabulary, self.draft_vocabulary)
        if self.top_k > widest:
            msg = f"top_k={self.top_k}; the models have {widest} tokens"
            raise InvalidInput(msg)
        if not (isfinite(self.temperature) and self.temperature > 0):
            msg = f"temperature={self.temperature!r}; the temperature of a top-k trace is above 0"
            raise InvalidInput(msg)

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {
            "schema": TOP_K_SCHEMA,
            "top_k": self.top_k,
            "temperature": float(self.temperature),
        }


def top_k_of(block: TraceBlock, k: int, *, temperature: float) -> TopKBlock:
    """What is stored of a block: the k largest logits of each row, and those of its draft tokens."""
    widths = block.target_logits.shape[-1], block.draft_logits.shape[-1]
    drafted = [
        pad(logits[: len(block.tokens)], (0, max(widths) - logits.shape[-1]), value=-torch.inf).gather(
            -1, block.tokens[:, None]
        )
        for logits in (block.target_logits, block.draft_logits)
    ]
    return TopKBlock(
        target=_top_rows(block.target_logits, k, temperature),
        draft=_top_rows(block.draft_logits, k, temperature),
        drafted_logits=torch.cat(drafted, dim=-1),
        temperature=temperature,
        vocabulary=max(widths),
        tokens=block.tokens,
        context=block.context,
        prompt=block.prompt,
        position=block.position,
        index=block.index,
    )


def _top_rows(logits: Tensor, k: int, temperature: float) -> TopRows:
    stored = min(k, logits.shape[-1])
    top = logits.topk(stored, dim=-1)
    ids = top.indices.to(torch.int32).masked_fill(top.values == -torch.inf, -1)
    missing = (0, k - stored)
    return TopRows(
        logits=pad(top.values, missing, value=-torch.inf),
        ids=pad(ids, missing, value=-1),
        log_sum_exp=(logits.double() / temperature).logsumexp(-1),
    )
