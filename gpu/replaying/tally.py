"""What replay keeps of the rows it has seen: exact sums, counts and the worst positions, all of which merge.

Merging is associative and commutative to the last bit: sums are integers, so a result depends neither on how the blocks
are spread over shards nor on the order in which partial tallies come together.
"""

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from fly_theory.errors import InvalidInput

__all__ = ["TV_EDGES", "WORST_KEPT", "Tally", "Total", "Worst"]

# Every finite float is an integer multiple of 2**-1074.
_FRACTION_BITS = 1074

# Histogram of TV(p, out): below 1e-6 counts as zero (float32 rounding reaches 1e-7), then four bins a decade up to 1.
TV_EDGES = tuple(10 ** (exponent / 4) for exponent in range(-24, 1))

_INNER_EDGES = TV_EDGES[:-1]

WORST_KEPT = 3


@dataclass(slots=True)
class Total:
    """The exact sum of many floats, how many were finite and how many infinite, and the largest finite one."""

    finite: int = 0
    infinite: int = 0
    largest: float = -math.inf
    _units: int = 0

    def add(self, value: float) -> None:
        """Count one value, finite or +inf."""
        if value == math.inf:
            self.infinite += 1
            return
        numerator, denominator = value.as_integer_ratio()
        self._units += numerator << (_FRACTION_BITS + 1 - denominator.bit_length())
        self.finite += 1
        self.largest = max(self.largest, value)

    def merge(self, other: "Total") -> None:
        """Count everything that `other` counted."""
        self._units += other._units
        self.finite += other.finite
        self.infinite += other.infinite
        self.largest = max(self.largest, other.largest)

    @property
    def sum(self) -> Fraction:
        """The exact sum of the finite values."""
        return Fraction(self._units, 1 << _FRACTION_BITS)


class Worst(NamedTuple):
    """A position by the value of a measure there; tuples sort worst first, among equals the earlier one.

    minus_value : the value with its sign changed
    block, position : number of the block in the trace, and of the draft token in the block
    """

    minus_value: float
    block: int
    position: int

    @property
    def value(self) -> float:
        """The measure at the position."""
        return -self.minus_value


@dataclass
class Tally:
    """Everything kept about one rule: totals by prompt and measure, the histogram of TV(p, out), the worst positions.

    A prompt is the cluster within which positions are not independent. The worst positions are kept by measure, for
    the measures named in `ranked`.
    """

    ranked: tuple[str, ...] = ("tv",)

    prompts: dict[int, dict[str, Total]] = field(default_factory=dict)
    tv_histogram: list[int] = field(default_factory=lambda: [0] * len(TV_EDGES))
    worst: dict[str, list[Worst]] = field(default_factory=dict)

    def add(self, prompt: int, block: int, measures: Mapping[str, Sequence[float | None]]) -> None:
        """Count the measures of one block, each a sequence of values: one a position, or one for the block.

        None stands where a measure is not defined, and is not counted.

        Raises
        ------
        InvalidInput
            A value is NaN.
        """
        for name, values in measures.items():
            total = self._total(prompt, name)
            for value in values:
                if value is None:
                    continue
                if math.isnan(value):
                    msg = f"{name} is NaN in block {block}"
                    raise InvalidInput(msg)
                total.add(value)
        for tv in measures.get("tv", ()):
            if tv is not None:
                self.tv_histogram[bisect_right(_INNER_EDGES, tv)] += 1
        for name in self.ranked:
            values = enumerate(measures.get(name, ()))
            self._keep_worst(name, (Worst(-v, block, position) for position, v in values if v is not None))

    def merge(self, other: "Tally") -> None:
        """Count everything that `other` counted."""
        for prompt, totals in other.prompts.items():
            for name, total in totals.items():
                self._total(prompt, name).merge(total)
        self.tv_histogram = [a + b for a, b in zip(self.tv_histogram, other.tv_histogram, strict=True)]
        for name, positions in other.worst.items():
            self._keep_worst(name, positions)

    @property
    def measures(self) -> frozenset[str]:
        """The names of everything counted."""
        return frozenset(name for totals in self.prompts.values() for name in totals)

    def _total(self, prompt: int, name: str) -> Total:
        return self.prompts.setdefault(prompt, {}).setdefault(name, Total())

    def _keep_worst(self, name: str, positions: Iterable[Worst]) -> None:
        self.worst[name] = heapq.nsmallest(WORST_KEPT, [*self.worst.get(name, ()), *positions])
