"""The sampler at the edges of its coins."""

import bisect
import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fly_theory.invariants.base import Case, Invariant, Violation, values
from fly_theory.invariants.sampling import Probe, probes

__all__ = ["CoinEdges"]


@dataclass(frozen=True)
class CoinEdges(Invariant):
    """The sampler at u = 0, at and just below each step of its distributions, and just below 1.

    A draft token is kept exactly when u < m(x)/q(x), so never without mass and always where m = q; a redraw emits the
    first token, in order of id, whose cumulative residual exceeds u times the total, so never one without residual. In
    float64, 0 and the largest number below 1 emit only tokens with mass.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "coin edges"

    def judge(self, case: Case) -> Violation | None:
        for probe in probes(case):
            expected = _expected(probe)
            different = np.argwhere(probe.emitted != expected)
            if len(different):
                row, column = different[0]
                got, right = int(probe.emitted[row, column]), int(expected[row, column])
                return Violation("sample", got, right, inputs=probe.inputs(row, column))
        return self._extremes(case)

    def _extremes(self, case: Case) -> Violation | None:
        p, q = (np.array(values(x), dtype=np.float64) for x in (case.p, case.q))
        floats = case.at(p, q)
        drafted = np.flatnonzero(q > 0)
        for u in (0.0, np.nextafter(1.0, 0.0)):
            for v in (0.0, np.nextafter(1.0, 0.0)):
                emitted = np.asarray(floats.sample(drafted, np.broadcast_to([u, v], (len(drafted), 2))))
                for token, got in zip(drafted.tolist(), emitted.tolist(), strict=True):
                    if not (0 <= got < len(p) and floats.out[got] > 0):
                        inputs = {"draft token": token, "uniforms": (u, v)}
                        return Violation("sample", got, "a token with mass", inputs=inputs)
        return None


def _expected(probe: Probe) -> np.ndarray:
    expected = np.full_like(probe.emitted, probe.token)
    if any(probe.residual):
        cumulative = list(itertools.accumulate(probe.residual))
        expected[probe.rejecting] = [bisect.bisect_right(cumulative, coin) for coin in probe.redraw.coins]
    return expected
