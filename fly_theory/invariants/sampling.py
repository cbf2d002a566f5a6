"""The sampler of a rule, probed at the coins where the closed form says that its decisions change."""

import functools
import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import normalise
from fly_theory.invariants.base import Case, values

__all__ = ["Axis", "Probe", "probes"]

# How close to an end of an interval a coin is put: closer than the coins of small rationals are, and above rounding.
_NEAR = Fraction(1, 10**9)


@dataclass(frozen=True)
class Axis:
    """The intervals of one uniform within which nothing should change, each probed by a coin at both of its ends.

    edges : where the intervals end, from 0 to 1
    coins : two an interval, at its lower end (or just above it, where that end is rounded) and just below its upper end
    """

    edges: list[Any]
    coins: list[Any]

    @classmethod
    def through(cls, points: Any, *, is_exact: bool) -> "Axis":
        """The axis whose intervals end at those points that are well inside [0, 1]."""
        edges = [0, *sorted({x for x in points if 2 * _NEAR < x < 1 - 2 * _NEAR}), 1]
        above = 0 if is_exact else _NEAR
        coins = [coin for low, high in itertools.pairwise(edges) for coin in (low + above, high - _NEAR)]
        return cls(edges, coins)

    @property
    def lengths(self) -> list[Any]:
        """The lengths of the intervals."""
        return [high - low for low, high in itertools.pairwise(self.edges)]


@dataclass(frozen=True)
class Probe:
    """What the sampler emits after one draft token x with q(x) > 0.

    decide, redraw : the axes of the two uniforms
    kept : the probability of keeping x, as `keep` says
    residual : the distribution (V,) that is redrawn from after a rejection; empty when x is always kept
    emitted : token ids (coins of decide, coins of redraw)
    """

    token: int
    drafted: Any
    kept: Any
    residual: tuple[Any, ...]
    decide: Axis
    redraw: Axis
    emitted: npt.NDArray[np.int64]

    def inputs(self, row: int, column: int) -> dict[str, Any]:
        """The draft token and the two uniforms that gave emitted[row, column]."""
        return {"draft token": self.token, "uniforms": (self.decide.coins[row], self.redraw.coins[column])}


@functools.lru_cache(maxsize=1)
def probes(case: Case) -> tuple[Probe, ...]:
    """A probe of every token that the draft can produce; those of the latest case are kept for the next invariant."""
    return tuple(
        _probe(case, token, drafted, values(case.keep[token]))
        for token, drafted in enumerate(values(case.q))
        if drafted > case.tolerance
    )


def _probe(case: Case, token: int, drafted: Any, kept: Any) -> Probe:
    residual = values(normalise(case.residual_after(token))) if kept < 1 - case.tolerance else ()
    decide = Axis.through([kept], is_exact=case.is_exact)
    redraw = Axis.through(itertools.accumulate(residual), is_exact=case.is_exact)
    uniforms = case.array([[[u, v] for v in redraw.coins] for u in decide.coins])
    tokens = np.full((len(decide.coins), len(redraw.coins)), token)
    return Probe(token, drafted, kept, residual, decide, redraw, np.asarray(case.sample(tokens, uniforms)))
