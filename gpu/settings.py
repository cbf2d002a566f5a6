"""The settings of a capture, with their defaults and what is allowed; needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, get_args

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
            self._require(name, lambda n: isinstance(n, int) and n >= 1, "an integer of at least 1")
        for name in ("temperature", "context_temperature"):
            self._require(name, lambda t: isfinite(t) and t >= 0, "a number in [0, inf)")
        if self.tree is not None and self.temperature == 0:
            msg = "temperature=0.0 draws the same token for all siblings of a tree; allowed with tree: above 0"
            raise InvalidInput(msg)
        self._require("seed", lambda n: isinstance(n, int) and 0 <= n < 2**64, "an integer in [0, 2^64)")
        for name, choices in (("dtype", Dtype), ("model_dtype", Dtype), ("device", Device)):
            allowed = get_args(choices)
            self._require(name, lambda value, allowed=allowed: value in allowed, " or ".join(allowed))

    def _require(self, name: str, holds: Callable[[Any], bool], allowed: str) -> None:
        value = getattr(self, name)
        if not holds(value):
            msg = f"{name}={value!r}; allowed: {allowed}"
            raise InvalidInput(msg)
