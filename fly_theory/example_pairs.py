"""Small pairs of a target p and a draft q, in exact fractions, used by the command line, figures and documentation."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fly_theory.arrays import Array
from fly_theory.errors import unknown_name

__all__ = ["EXAMPLE_PAIRS", "ExamplePair", "example_pair"]


@dataclass(frozen=True)
class ExamplePair:
    """A target p (V,) and a draft q (V,) with a name and what it shows."""

    name: str
    shows: str
    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def arrays(self) -> tuple[Array, Array]:
        """p and q as float64 arrays, (V,) each."""
        return np.array(self.p, dtype=np.float64), np.array(self.q, dtype=np.float64)


def example_pair(name: str) -> ExamplePair:
    """The example pair of this name.

    Raises
    ------
    UnknownName
        With the nearest names and the list of all of them.
    """
    if name not in EXAMPLE_PAIRS:
        raise unknown_name(kind="example pair", name=name, known=EXAMPLE_PAIRS)
    return EXAMPLE_PAIRS[name]


def _shares(weights: list[int]) -> tuple[Fraction, ...]:
    total = sum(weights)
    return tuple(Fraction(weight, total) for weight in weights)


_PAIRS = (
    ExamplePair(
        "smooth",
        "24 tokens; the draft has too much mass on a group of middling tokens",
        _shares([137, 117, 102, 89, 77, 67, 58, 51, 44, 38, 33, 29, 25, 22, 19, 17, 15, 13, 11, 10, 8, 7, 6, 5]),
        _shares([56, 46, 38, 33, 30, 33, 41, 56, 75, 94, 105, 104, 90, 69, 47, 29, 17, 10, 6, 5, 4, 4, 4, 4]),
    ),
    ExamplePair(
        "golden",
        "4 tokens, TV(p, q) = 1/2; every golden value of the documentation is on this pair",
        _shares([10, 6, 3, 1]),
        _shares([4, 2, 6, 8]),
    ),
    ExamplePair(
        "swapped",
        "2 tokens with the probabilities exchanged: the pair on which block verification gains 11/9 to 10/9",
        _shares([1, 2]),
        _shares([2, 1]),
    ),
    ExamplePair(
        "confident-draft",
        "12 tokens; a flat target and a draft that puts most of its mass on one middling token",
        _shares([16, 14, 13, 11, 10, 9, 7, 6, 5, 4, 3, 2]),
        _shares([8, 6, 5, 4, 60, 4, 3, 3, 2, 2, 2, 1]),
    ),
    ExamplePair(
        "confident-target",
        "12 tokens; a target that is nearly certain and a draft that is not",
        _shares([880, 60, 20, 12, 8, 6, 4, 3, 3, 2, 1, 1]),
        _shares([400, 200, 120, 80, 60, 40, 30, 25, 20, 15, 6, 4]),
    ),
    ExamplePair(
        "out-of-support",
        "10 tokens; a target truncated to 6 of them and a draft that still proposes the other 4",
        _shares([30, 25, 18, 12, 9, 6, 0, 0, 0, 0]),
        _shares([22, 14, 16, 8, 12, 3, 10, 8, 5, 2]),
    ),
)

EXAMPLE_PAIRS = {pair.name: pair for pair in _PAIRS}
