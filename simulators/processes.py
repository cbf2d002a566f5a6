"""FLy's match process and its false acceptance, drawn instead of computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
from scipy import special

from fly_theory import renewal
from fly_theory.arrays import Array
from fly_theory.false_acceptance import Mismatches
from simulators.estimates import Counts, Estimate, mean, rate, rates
from simulators.simulation import Run, Settings, Simulation

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

    def outcomes(self, inputs: MatchInputs) -> dict[str, int]:
        return {"kept": self.draft_length + 1}

    def numbers(self, inputs: MatchInputs) -> int:
        return 6 * self.draft_length

    def trial(self, inputs: MatchInputs, key: jax.Array) -> dict[str, jax.Array]:
        uniforms = jax.random.uniform(key, (2, self.draft_length), jnp.float64)
        matches = [uniforms[0, 0] < inputs.first]
        for uniform in uniforms[0, 1:]:
            matches.append(uniform < jnp.where(matches[-1], inputs.after_match, inputs.after_mismatch))
        gates = uniforms[1] < inputs.gate
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

    def outcomes(self, inputs: MismatchInputs) -> dict[str, int]:
        return {"wrong": 2, "harmless": 2}

    def numbers(self, inputs: MismatchInputs) -> int:
        return 8 * (self.window + 1)

    def trial(self, inputs: MismatchInputs, key: jax.Array) -> dict[str, jax.Array]:
        def kept(key: jax.Array, shift: jax.Array, correction: jax.Array) -> jax.Array:
            gate, other, corrected = jax.random.split(key, 3)
            noise = jax.random.normal(gate, (), jnp.float64)
            is_open = inputs.median + inputs.spread * (noise + shift) >= inputs.threshold
            goes_on = jax.random.uniform(other, (self.window,), jnp.float64) < inputs.match
            uncorrected = jax.random.uniform(corrected, (self.window,), jnp.float64) >= correction
            return (is_open & jnp.all(goes_on & uncorrected)).astype(jnp.int64)

        wrong, harmless = jax.random.split(key)
        nothing = jnp.zeros_like(inputs.separation)
        return {
            "wrong": kept(wrong, nothing, inputs.correction),
            "harmless": kept(harmless, inputs.separation, nothing),
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
