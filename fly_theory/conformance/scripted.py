"""Sources of randomness with ordinary floats: fixed values, or a seeded generator."""

import bisect
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fly_theory.conformance.exploration import read_weights

__all__ = ["LAST_COIN", "Scripted", "Seeded"]

# The largest float64 below one.
LAST_COIN = 1 - 2.0**-53


class Scripted:
    """Uniforms and choices in a fixed order; past their end, the last uniform goes on and choices take the first token.

    A choice that has no mass now takes the first token that has.
    """

    def __init__(self, coins: Sequence[float], choices: Sequence[int] = ()) -> None:
        self.coins, self._choices = tuple(coins) or (0.5,), tuple(choices)
        self._random, self._chosen = 0, 0

    def random(self) -> float:
        """The next uniform."""
        self._random += 1
        return self.coins[min(self._random, len(self.coins)) - 1]

    def choice(self, weights: Any) -> int:
        """The next choice among tokens with mass."""
        entries = read_weights(weights)
        self._chosen += 1
        if self._chosen <= len(self._choices) and entries[self._choices[self._chosen - 1]] > 0:
            return self._choices[self._chosen - 1]
        return next(token for token, mass in enumerate(entries) if mass > 0)


class Seeded:
    """Uniforms and choices from a seeded numpy generator."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def random(self) -> float:
        """A uniform in [0, 1)."""
        return float(self.generator.random())

    def choice(self, weights: Any) -> int:
        """A token id, drawn in proportion to unnormalised weights (V,)."""
        cumulative = list(itertools.accumulate(map(float, read_weights(weights))))
        return bisect.bisect_right(cumulative, self.random() * cumulative[-1])
