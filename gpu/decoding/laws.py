"""What the logits of target and draft become before a rule sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from fly_theory.blocks import BlockRule
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.distributions import warp
from fly_theory.errors import InvalidInput

__all__ = ["Laws", "WarpedLaws", "decoding_temperature", "known_to_both", "laws_for"]


class Laws(Protocol):
    """Logits to laws, in float64; `text` is what the last row of logits follows."""

    def target(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        """Target rows p (n, V) of logits (n, V), each after one token more of the text than the row before."""

    def draft(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        """The draft law q (V,) of logits (V,)."""


@dataclass(frozen=True)
class WarpedLaws:
    """Temperature and warpers of `fly_theory.warp`, the same wherever in the text.

    Attributes
    ----------
    target_warp, draft_warp
        Arguments of `fly_theory.warp`.
    known
        Ids below this number are known to both models; others get no mass.
    vocabulary
        V, the width of the rows: that of the target's logits.
    """

    target_warp: Mapping[str, Any]
    draft_warp: Mapping[str, Any]
    known: int
    vocabulary: int

    def target(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        return warp(known_to_both(logits, self.known, self.vocabulary).double(), **self.target_warp)

    def draft(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        return warp(known_to_both(logits, self.known, self.vocabulary).double(), **self.draft_warp)


def decoding_temperature(rule: BlockRule, temperature: float | None) -> float:
    """The temperature to decode at when `temperature` is asked for: FLy and its variants have their own, None means 1.

    Raises
    ------
    InvalidInput
        Another temperature than FLy's own.
    """
    if not isinstance(rule, DeferredWindow):
        return 1.0 if temperature is None else temperature
    own = float(getattr(rule, "temperature", 0))
    if temperature not in (None, own):
        msg = f"temperature={temperature:g}; {rule.spec} decodes at its own temperature {own:g}"
        raise InvalidInput(msg)
    return own


def laws_for(
    rule: BlockRule, *, temperature: float, warpers: Mapping[str, Any], known: int, vocabulary: int
) -> WarpedLaws:
    """The laws that a rule is defined on, at its `decoding_temperature`.

    Temperature and warpers make the laws of both models alike, except for FLy and its variants: these take the draft's
    argmax at every temperature, and at temperature 0 take the target's themselves, since their gate reads the entropy
    at temperature 1.

    Raises
    ------
    InvalidInput
        Warpers for FLy or a variant: its gate would read another entropy.
    """
    if not isinstance(rule, DeferredWindow):
        law = {"temperature": temperature, **warpers}
        return WarpedLaws(law, law, known, vocabulary)
    if warpers:
        given = ", ".join(f"{name}={value:g}" for name, value in warpers.items())
        msg = f"{given}; {rule.spec} decodes without warpers, which would change what its gate reads"
        raise InvalidInput(msg)
    return WarpedLaws({"temperature": temperature or 1.0}, {"temperature": 0}, known, vocabulary)


def known_to_both(logits: Tensor, known: int, vocabulary: int) -> Tensor:
    """The logits (..., V) with -inf from the id `known` on, whatever their width was."""
    wide = torch.full((*logits.shape[:-1], vocabulary), -torch.inf, dtype=logits.dtype, device=logits.device)
    wide[..., :known] = logits[..., :known]
    return wide
