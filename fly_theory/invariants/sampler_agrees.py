"""The sampler emits the induced distribution."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fly_theory.invariants.base import Case, Invariant, Violation, values
from fly_theory.invariants.sampling import Probe, probes

__all__ = ["SamplerAgrees"]


@dataclass(frozen=True)
class SamplerAgrees(Invariant):
    """`keep` is accepted / q, and 0 where q is; drafting from q and integrating `sample` over both uniforms gives out.

    The integral is exact: the uniforms are cut where the closed form changes its mind, and the sampler must not change
    its own inside a piece.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "sampler agrees with the closed form"

    def judge(self, case: Case) -> Violation | None:
        drafted = case.xp.where(case.q > 0, case.q, case.xp.ones_like(case.q))
        keep = case.verdict.accepted / drafted
        if case.differ(case.keep, keep):
            return Violation("keep", values(case.keep), values(keep))
        law = [0] * case.p.shape[-1]
        for probe in probes(case):
            restless = self._integrate(probe, law)
            if restless is not None:
                return restless
        got = case.array(law)
        return Violation("law of sample", values(got), values(case.out)) if case.differ(got, case.out) else None

    def _integrate(self, probe: Probe, law: list[Any]) -> Violation | None:
        """Add the law of what follows one draft token; a violation where the sampler changes inside a piece."""
        for i, height in enumerate(probe.decide.lengths):
            for j, width in enumerate(probe.redraw.lengths):
                piece = probe.emitted[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                if (piece != piece[0, 0]).any():
                    row, column = next((r, c) for r in (0, 1) for c in (0, 1) if piece[r, c] != piece[0, 0])
                    inputs = probe.inputs(2 * i + row, 2 * j + column)
                    return Violation("sample", int(piece[row, column]), int(piece[0, 0]), inputs=inputs)
                law[piece[0, 0]] += probe.drafted * height * width
        return None
