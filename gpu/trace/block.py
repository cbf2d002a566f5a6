"""One drafted block with the logits of both models along it."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from fly_theory.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class TraceBlock:
    """K draft tokens after a context, and what both models said along the way.

    Attributes
    ----------
    target_logits
        (K+1, V) logits of the target p; row n follows the context and the first n draft tokens.
    draft_logits
        (K, V) logits of the draft q; row n is what draft token n was drawn from.
    tokens
        (K,) the draft tokens.
    context
        (T,) the token ids before the block.
    prompt, position
        Number of the prompt the context begins with, and how many tokens of the context follow that prompt.
    index
        Number of the block in its trace. Set on reading; ignored on writing.

    Raises
    ------
    InvalidInput
        Anything but tensors of so many axes, tokens or a context that are no integers.
    """

    target_logits: Tensor
    draft_logits: Tensor
    tokens: Tensor
    context: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    prompt: int = 0
    position: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        for name, axes in (("target_logits", 2), ("draft_logits", 2), ("tokens", 1), ("context", 1)):
            value = getattr(self, name)
            if not isinstance(value, Tensor):
                msg = f"{name} is a {type(value).__name__}; expected a torch tensor"
                raise InvalidInput(msg)
            if value.ndim != axes:
                msg = f"{name} has shape {tuple(value.shape)}; expected {axes} axes"
                raise InvalidInput(msg)
            if axes == 1 and (value.is_floating_point() or value.is_complex()):
                msg = f"{name} has dtype {value.dtype}; expected integers"
                raise InvalidInput(msg)
