"""A model that reads one text in pieces, and takes back what was rejected."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from fly_theory.errors import InvalidInput
from gpu.models import Model

__all__ = ["Reader"]

# Layers whose keys and values can be taken back. A window is kept whole, and applied by the attention mask.
_ATTENTION = {"full_attention", "sliding_attention"}


class Reader:
    """A model reading texts that agree with the last one up to some token: only what follows goes through the model.

    Attributes
    ----------
    calls
        How often the model was called.

    Raises
    ------
    InvalidInput
        A model whose state cannot be rolled back to an earlier token.
    """

    def __init__(self, model: Model) -> None:
        _check_rolls_back(model.network)
        self.calls = 0
        self._model = model
        # Without a config, so that no layer forgets what lies outside its window: a rejection brings it back in.
        self._cache = DynamicCache()
        self._read: list[int] = []

    def logits(self, text: Sequence[int], keep: int) -> Tensor:
        """Logits (keep, V) after each of the last `keep` tokens of a text, in one call of the model."""
        shared = min(_agreeing(self._read, text), len(text) - keep)
        if shared < len(self._read):
            # Negative, which means the same in every version: so many tokens fewer.
            self._cache.crop(shared - len(self._read))
        device = self._model.network.device
        new = torch.tensor([text[shared:]], device=device)
        mask = torch.ones(1, len(text), dtype=torch.int64, device=device)
        logits = self._model.logits(new, mask, keep=keep, cache=self._cache)
        self.calls += 1
        self._read = list(text)
        return logits[0, -keep:]


def _agreeing(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Length of the common beginning of two texts."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))


def _check_rolls_back(network: Any) -> None:
    kinds = set(getattr(network.config, "layer_types", None) or ())
    if kinds - _ATTENTION or getattr(network, "_is_stateful", False) or network.config.is_encoder_decoder:
        what = ", ".join(sorted(kinds - _ATTENTION)) or "a state or an encoder"
        msg = (
            f"{type(network).__name__} has {what}; decoding takes rejected tokens back, so it needs a decoder of "
            f"{' and '.join(sorted(_ATTENTION))} layers"
        )
        raise InvalidInput(msg)
