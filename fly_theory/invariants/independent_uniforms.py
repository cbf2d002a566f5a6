"""One uniform decides, the other redraws."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fly_theory.invariants.base import Case, Invariant, Violation
from fly_theory.invariants.sampling import Probe, probes

__all__ = ["IndependentUniforms"]


@dataclass(frozen=True)
class IndependentUniforms(Invariant):
    """Whether a draft token is kept depends on the first uniform alone, what replaces it on the second alone.

    A verifier that reads one uniform for both decisions emits another law than it seems to.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "uniforms are independent"

    def judge(self, case: Case) -> Violation | None:
        for probe in probes(case):
            violation = self._judge(probe)
            if violation is not None:
                return violation
        return None

    def _judge(self, probe: Probe) -> Violation | None:
        """Kept rows hold the draft token whatever the redraw; rejected rows hold one redraw whatever the decision."""
        expected = np.full_like(probe.emitted, probe.token)
        expected[probe.rejecting] = probe.emitted[-1]
        different = np.argwhere(probe.emitted != expected)
        if not len(different):
            return None
        row, column = different[0]
        got, right = int(probe.emitted[row, column]), int(expected[row, column])
        return Violation("sample", got, right, inputs=probe.inputs(row, column))
