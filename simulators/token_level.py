"""Token level: one draft token drawn from q, judged by a token rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fly_theory.arrays import Array
from fly_theory.rules import Rule
from simulators.drawing import cumulative, pick
from simulators.estimates import Counts, Estimate, rate, rates
from simulators.simulation import Run, Simulation
from simulators.tally import Draw

__all__ = ["OneToken", "TokenInputs", "simulate_token"]


class TokenInputs(NamedTuple):
    """Target p (V,) and draft q (V,), with the cumulative sums of q."""

    p: Array
    q: Array
    q_sums: Array


@dataclass(frozen=True)
class OneToken:
    """Draw a draft token, keep it or redraw: was it accepted, and which token came out."""

    rule: Rule
    uniforms: ClassVar[int] = 3

    def outcomes(self, inputs: TokenInputs) -> dict[str, int]:
        return {"accepted": 2, "emitted": inputs.p.shape[-1]}

    def numbers(self, inputs: TokenInputs) -> int:
        return 4 * inputs.p.shape[-1]

    def trials(self, inputs: TokenInputs, draw: Draw) -> dict[str, jax.Array]:
        return jax.vmap(self._trial, (None, 1))(inputs, draw(0))

    def _trial(self, inputs: TokenInputs, uniforms: jax.Array) -> dict[str, jax.Array]:
        token = pick(inputs.q_sums, uniforms[0])
        accepted = uniforms[1] < self.rule.keep(inputs.p, inputs.q, token)
        emitted = self.rule.sample(inputs.p, inputs.q, token, uniforms[1:])
        return {"accepted": accepted.astype(jnp.int64), "emitted": emitted}


def simulate_token(rule: Rule, p: Array, q: Array, run: Run) -> Simulation:
    """Acceptance of a token rule and the law of the emitted token, at one target p (V,) and draft q (V,)."""
    acceptance, induced = float(rule.acceptance(p, q)), rule.induced(p, q)

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        accepted = rate("acceptance", counts["accepted"], confidence, exact=acceptance)
        return [accepted, *rates("token", counts["emitted"], confidence, exact=induced)]

    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return run.of(rule.spec, OneToken(rule), TokenInputs(p, q, cumulative(q)), summary)
