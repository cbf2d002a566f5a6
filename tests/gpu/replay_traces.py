"""Small synthetic traces for the replay tests, and the figures of a rule recomputed token by token."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fly_theory.rules.base import Rule
from gpu import TraceBlock, write_trace

K, V = 4, 24

# A rule of every kind: lossless, ceilings, mixtures, budgets, accept sets, truncated targets, redraws that depend on x.
SPECS = (
    "lossless",
    "lenience:l=0.5",
    "lenience-resample:l=0.5",
    "cos:w=0.3",
    "mentored:budget=0.1",
    "cactus:delta=0.1",
    "gated-ceiling:base=0.5,l=0.5",
    "min-p:base=0.2",
    "typical:eps=0.2,delta=0.6",
    "truncated-min-p:base=0.2",
    "sample-match:n=2",
)


def blocks(
    count: int,
    *,
    k: int = K,
    v: int = V,
    prompts: int = 3,
    seed: int = 0,
    temperature: float = 1.0,
    edit: Callable[[int, torch.Tensor, torch.Tensor], None] = lambda number, target, draft: None,
) -> Iterator[TraceBlock]:
    """Blocks whose draft tokens are drawn from the draft logits; `edit` may change both logits before that."""
    generator = torch.Generator().manual_seed(seed)
    for number in range(count):
        target = 2 * torch.randn(k + 1, v, generator=generator)
        draft = 0.9 * target[:k] + 0.7 * torch.randn(k, v, generator=generator)
        edit(number, target, draft)
        if temperature == 0:
            tokens = draft.argmax(-1)
        else:
            tokens = torch.multinomial(torch.softmax(draft / temperature, -1), 1, generator=generator)[:, 0]
        context = torch.randint(0, v, (3 + number % 4,), generator=generator)
        yield TraceBlock(target, draft, tokens, context=context, prompt=number % prompts, position=number)


def write(folder: Path, count: int, *, blocks_per_shard: int = 4, temperature: float = 1.0, **made: Any) -> Path:
    """A float32 trace that says its draft tokens were drawn at `temperature`."""
    return write_trace(
        folder,
        blocks(count, temperature=temperature, **made),
        blocks_per_shard=blocks_per_shard,
        source={"settings": {"temperature": temperature, "context_temperature": 1.0}},
    )


def softmax(logits: torch.Tensor) -> list[np.ndarray]:
    """Rows of softmax in float64."""
    rows = np.exp(logits.double().numpy() - logits.double().numpy().max(-1, keepdims=True))
    return list(rows / rows.sum(-1, keepdims=True))


def relative_entropy(a: np.ndarray, b: np.ndarray) -> float:
    """KL(a || b), term by term."""
    total = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        if x > 0:
            total += x * math.log(x / y) if y > 0 else math.inf
    return total


def distances(target: np.ndarray, q: np.ndarray, out: np.ndarray, accepted: np.ndarray) -> dict[str, float]:
    """Every figure of one position, token by token, from its definition."""
    tokens = range(len(target))
    tv = sum(abs(target[x] - out[x]) for x in tokens) / 2
    middle = (target + out) / 2
    ratios = [math.inf if target[x] == 0 else out[x] / target[x] for x in tokens if out[x] > 0]
    return {
        "tv": tv,
        "kl": relative_entropy(target, out),
        "reverse_kl": relative_entropy(out, target),
        "js": (relative_entropy(target, middle) + relative_entropy(out, middle)) / 2,
        "max_ratio": max(ratios),
        "waste": tv - (sum(abs(target[x] - q[x]) for x in tokens) / 2 - (1 - sum(accepted))),
        "argmax_flip": float(max(out[x] for x in tokens if target[x] == max(target)) < max(out)),
        "outside_support": sum(out[x] for x in tokens if target[x] == 0),
    }


def figures(rule: Rule, block: TraceBlock, matched: Callable[[np.ndarray], np.ndarray] | None = None) -> dict[str, Any]:
    """The figures of a rule on one block: a list over positions each, and the expected accepted length of the block.

    `matched` truncates a target; with it, distances are measured against the truncated target.
    """
    found: dict[str, list[float]] = {}
    length, reached = 0.0, 1.0
    for p, q, x in zip(softmax(block.target_logits), softmax(block.draft_logits), block.tokens.tolist(), strict=False):
        accepted, out = np.asarray(rule.verdict(p, q).accepted), np.asarray(rule.induced(p, q))
        row = distances(p if matched is None else matched(p), q, out, accepted) | {"acceptance": sum(accepted)}
        for name, value in row.items():
            found.setdefault(name, []).append(value)
        reached *= accepted[x] / q[x]
        length += reached
    return found | {"accepted_per_call": [length]}
