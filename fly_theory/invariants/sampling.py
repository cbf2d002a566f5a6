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

# How close to an end of an interval a coin is put, if a quarter of the interval is not closer.
_NEAR = Fraction(1, 10**9)
# Points of float64 that are closer than this to each other, to 0 or to 1 are told apart by rounding alone.
_ROUNDING = Fraction(1, 10**11)


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
        """The axis whose intervals end at those points inside [0, 1] that rounding does not blur."""
        blur = 0 if is_exact else _ROUNDING
        edges: list[Any] = [0]
        coins: list[Any] = []
        for point in sorted(points):
            if edges[-1] + blur < point < 1 - blur:
                edges.append(point)
        edges.append(1)
        for low, high in itertools.pairwise(edges):
            inside = min(_NEAR, (high - low) / 4)
            coins += [low if is_exact else low + inside, high - inside]
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

    @property
    def rejecting(self) -> npt.NDArray[np.bool_]:
        """The coins of decide (coins,) at which the draft token is rejected."""
        return np.array([coin >= self.kept for coin in self.decide.coins])

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
