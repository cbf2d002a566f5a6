"""FLy's match process and its false acceptance, drawn instead of computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from scipy import special

from fly_theory import renewal
from fly_theory.arrays import Array
from fly_theory.false_acceptance import Mismatches
from simulators.estimates import Counts, Estimate, mean, rate, rates
from simulators.simulation import Run, Settings, Simulation
from simulators.tally import Draw

__all__ = ["MatchTape", "OneMismatch", "simulate_mismatches", "simulate_process"]


class MatchInputs(NamedTuple):
    """The probabilities of a `renewal.Process`, as 0-d arrays."""

    first: Array
    after_match: Array
    after_mismatch: Array
    gate: Array


@dataclass(frozen=True)
class MatchTape:
    """Draw a tape of matches and one of gates, and scan them: how many drafts are kept."""

    window: int
    draft_length: int
    following: int

    @property
    def uniforms(self) -> int:
        return 2 * self.draft_length

    def outcomes(self, inputs: MatchInputs) -> dict[str, int]:
        return {"kept": self.draft_length + 1}

    def numbers(self, inputs: MatchInputs) -> int:
        return 6 * self.draft_length

    def trials(self, inputs: MatchInputs, draw: Draw) -> dict[str, jax.Array]:
        return jax.vmap(self._trial, (None, 1))(inputs, draw(0))

    def _trial(self, inputs: MatchInputs, uniforms: jax.Array) -> dict[str, jax.Array]:
        matching, gating = jnp.split(uniforms, 2)
        matches = [matching[0] < inputs.first]
        for uniform in matching[1:]:
            matches.append(uniform < jnp.where(matches[-1], inputs.after_match, inputs.after_mismatch))
        gates = gating < inputs.gate
        return {"kept": renewal.kept(jnp.stack(matches), gates, self.window, following=self.following)}


def simulate_process(process: renewal.Process, trials: int, seed: int, **settings: Unpack[Settings]) -> Simulation:
    """Draw the tapes of FLy rounds and scan them: tokens a round, and the law of the number of drafts kept.

    The exact values are those of `fly_theory.renewal`.
    """
    run = Run(trials=trials, seed=seed, **settings)
    inputs = MatchInputs(*(float(getattr(process, name)) for name in MatchInputs._fields))
    law, tokens = process.length_law(), float(process.expected_tokens())
    lengths = range(process.draft_length + 1)

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        kept = mean("drafts kept", lengths, counts["kept"], confidence, interval=run.mean_interval)
        tokens_a_round = kept.mapped("tokens a round", lambda kept: kept + 1, exact=tokens)
        return [tokens_a_round, *rates("kept", counts["kept"], confidence, exact=law)]

    experiment = MatchTape(process.window, process.draft_length, process.following)
    return run.of(f"match process, window={process.window}, K={process.draft_length}", experiment, inputs, summary)


class MismatchInputs(NamedTuple):
    """A `false_acceptance.Mismatches` with a threshold, as 0-d arrays; `threshold` and `median` are logits."""

    correction: Array
    match: Array
    median: Array
    spread: Array
    separation: Array
    threshold: Array


@dataclass(frozen=True)
class OneMismatch:
    """Let a wrong and a harmless mismatch meet gate and window: is each kept."""

    window: int

    @property
    def uniforms(self) -> int:
        return 2 * (1 + 2 * self.window)

    def outcomes(self, inputs: MismatchInputs) -> dict[str, int]:
        return {"wrong": 2, "harmless": 2}

    def numbers(self, inputs: MismatchInputs) -> int:
        return 8 * (self.window + 1)

    def trials(self, inputs: MismatchInputs, draw: Draw) -> dict[str, jax.Array]:
        return jax.vmap(self._trial, (None, 1))(inputs, draw(0))

    def _trial(self, inputs: MismatchInputs, uniforms: jax.Array) -> dict[str, jax.Array]:
        def kept(uniforms: jax.Array, shift: Any, correction: Any) -> jax.Array:
            gate, matching, correcting = jnp.split(uniforms, [1, 1 + self.window])
            is_open = inputs.median + inputs.spread * (ndtri(gate[0]) + shift) >= inputs.threshold
            return is_open & jnp.all((matching < inputs.match) & (correcting >= correction))

        wrong, harmless = jnp.split(uniforms, 2)
        return {
            "wrong": kept(wrong, 0, inputs.correction).astype(jnp.int64),
            "harmless": kept(harmless, inputs.separation, 0).astype(jnp.int64),
        }


def simulate_mismatches(
    model: Mismatches, theta: float, window: int, trials: int, seed: int, **settings: Unpack[Settings]
) -> Simulation:
    """Let wrong and harmless mismatches meet gate and window: how often each is kept.

    The exact values are those of `fly_theory.false_acceptance`.
    """
    run = Run(trials=trials, seed=seed, **settings)
    exact = model.acceptance(theta, window)
    inputs = MismatchInputs(
        correction=float(model.correction),
        match=float(model.match),
        median=special.logit(float(model.median)),
        spread=float(model.spread),
        separation=float(model.separation),
        threshold=special.logit(float(theta)),
    )

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        return [
            rate("wrong kept", counts["wrong"], confidence, exact=float(exact.wrong)),
            rate("harmless kept", counts["harmless"], confidence, exact=float(exact.harmless)),
        ]

    return run.of(f"mismatches, theta={theta:g}, window={window}", OneMismatch(window), inputs, summary)
