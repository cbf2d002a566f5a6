"""The settings of capture and of live decoding, with their defaults and what is allowed; needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from fly_theory.distributions import warp
from fly_theory.errors import InvalidInput
from gpu.tree_shapes import TreeShape

Dtype = Literal["float16", "bfloat16", "float32"]
Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class CaptureSettings:
    """How blocks are drawn and stored.

    Attributes
    ----------
    draft_length
        K, draft tokens in a block; of trees the depth.
    blocks
        How many blocks in all, spread evenly over the prompts.
    tree
        The draft trees that are captured as blocks; None for K draft tokens in a row.
    temperature
        Of the draft tokens, or the law that a tree's most probable paths are ranked by; 0 takes the draft's argmax.
    context_temperature
        Of the target's continuation of each prompt, from which the contexts are cut; 0 takes the target's argmax.
    continuation
        Longest continuation, in tokens; it ends earlier before an end-of-sequence token.
    chat
        Whether a prompt is put into the tokenizer's chat template, as the user's message.
    dtype
        What logits are stored in, and what the drafts are drawn from after rounding to it.
    model_dtype
        What both models compute in.
    seed
        Of every random draw.
    blocks_per_shard
        How many blocks share a file.
    batch_size
        How many sequences go through a model at once. It changes logits in the last digits, nothing else.
    device
        cpu, cuda, or auto: cuda where there is one.
    """

    draft_length: int = 8
    blocks: int = 48
    tree: TreeShape | None = None
    temperature: float = 1.0
    context_temperature: float = 1.0
    continuation: int = 64
    chat: bool = False
    dtype: Dtype = "float16"
    model_dtype: Dtype = "float32"
    seed: int = 0
    blocks_per_shard: int = 8
    batch_size: int = 8
    device: Device = "auto"

    def __post_init__(self) -> None:
        for name in ("draft_length", "blocks", "continuation", "blocks_per_shard", "batch_size"):
            _require(self, name, lambda n: isinstance(n, int) and n >= 1, "an integer of at least 1")
        for name in ("temperature", "context_temperature"):
            _require(self, name, lambda t: isfinite(t) and t >= 0, "a number in [0, inf)")
        if self.tree is not None and self.temperature == 0:
            msg = "temperature=0.0 draws the same token for all siblings of a tree; allowed with tree: above 0"
            raise InvalidInput(msg)
        _require(self, "seed", lambda n: isinstance(n, int) and 0 <= n < 2**64, "an integer in [0, 2^64)")
        for name, choices in (("dtype", Dtype), ("model_dtype", Dtype), ("device", Device)):
            allowed = get_args(choices)
            _require(self, name, lambda value, allowed=allowed: value in allowed, " or ".join(allowed))


@dataclass(frozen=True, kw_only=True)
class DecodeSettings:
    """How texts are decoded live.

    Attributes
    ----------
    draft_length
        K, draft tokens in a round.
    max_new_tokens
        Longest continuation of a prompt, in tokens.
    temperature
        Of both models, 0 for the argmax; None is the rule's own where it has one (FLy and its variants), or else 1.
    top_k, top_p, min_p, epsilon, eta
        Warpers of both models, in the order of `fly_theory.warp`.
    stop
        Texts that end a continuation with the token that completes one of them.
    chat
        Whether a prompt is put into the tokenizer's chat template, as the user's message.
    model_dtype
        What both models compute in; laws are made of their logits in float64.
    seed
        Of every random draw.
    device
        cpu, cuda, or auto: cuda where there is one.
    """

    draft_length: int = 8
    max_new_tokens: int = 64
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    epsilon: float | None = None
    eta: float | None = None
    stop: tuple[str, ...] = ()
    chat: bool = False
    model_dtype: Dtype = "float32"
    seed: int = 0
    device: Device = "auto"

    def __post_init__(self) -> None:
        for name in ("draft_length", "max_new_tokens"):
            _require(self, name, lambda n: isinstance(n, int) and n >= 1, "an integer of at least 1")
        _require(self, "seed", lambda n: isinstance(n, int) and 0 <= n < 2**64, "an integer in [0, 2^64)")
        texts = "texts that are not empty"
        _require(self, "stop", lambda stop: all(isinstance(text, str) and text for text in stop), texts)
        for name, choices in (("model_dtype", Dtype), ("device", Device)):
            allowed = get_args(choices)
            _require(self, name, lambda value, allowed=allowed: value in allowed, " or ".join(allowed))
        warp(np.zeros(1), temperature=1.0 if self.temperature is None else self.temperature, **self.warpers)

    @property
    def warpers(self) -> dict[str, Any]:
        """The warpers in use, as arguments of `fly_theory.warp`."""
        named = {name: getattr(self, name) for name in ("top_k", "top_p", "min_p", "epsilon", "eta")}
        return {name: value for name, value in named.items() if value is not None}


def _require(settings: Any, name: str, holds: Callable[[Any], bool], allowed: str) -> None:
    value = getattr(settings, name)
    if not holds(value):
        msg = f"{name}={value!r}; allowed: {allowed}"
        raise InvalidInput(msg)
