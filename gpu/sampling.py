"""Drawing tokens from stored logits, with uniforms that depend on nothing but their address."""

import numpy as np
import torch
from torch import Tensor

from fly_theory.distributions import softmax

CONTEXT, DRAFT, LIVE = 0, 1, 2


def uniforms(seed: int, stream: int, prompt: int, block: int, count: int) -> np.ndarray:
    """Uniforms (count,) in [0, 1), float64, of one address.

    Philox counts draws in the lowest word of its counter; the address fills the others, so no two addresses share a
    draw and none depends on how many were used before.
    """
    counter = [0, stream, block, prompt]
    return np.random.Generator(np.random.Philox(key=seed, counter=counter)).random(count)


def draw(logits: Tensor, uniform: Tensor, *, temperature: float) -> Tensor:
    """Tokens (B,) drawn from softmax(logits / temperature), logits (B, V), by inverse CDF; uniform (B,) in [0, 1).

    The law is that of the logits as given: pass them in the dtype they are stored in. Temperature 0 takes the argmax,
    ties to the lowest id. A token without mass is never drawn.
    """
    cumulative = softmax(logits, temperature=temperature).double().cumsum(-1)
    total = cumulative[:, -1]
    threshold = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, threshold[:, None], right=True)[:, 0]
