"""Sequence level: rounds on a pair until a text of so many tokens is out."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fly_theory.blocks import BlockRule
from fly_theory.joint_law import joint_law
from fly_theory.pairs import Pair
from simulators.estimates import Counts, Estimate, mean, rates
from simulators.rounds import PairInputs, enumerable, first_context, numbers_in_round, one_round, uniforms_in_round
from simulators.simulation import Run, Simulation
from simulators.tally import Draw

__all__ = ["MOST_TEXTS", "Text", "simulate_text"]

# Texts are counted one by one up to this many of them.
MOST_TEXTS = 2**16


@dataclass(frozen=True)
class Text:
    """Run rounds until `length` tokens are out: the target calls that took, and the text itself if texts are few.

    The calls of the last round count in full, also when it emits more than is asked for. A text is numbered in base V,
    its first token the most significant: as in a joint law (V,) * length, flattened.
    """

    rule: BlockRule
    draft_length: int
    length: int

    @property
    def uniforms(self) -> int:
        return uniforms_in_round(self.rule, self.draft_length)

    def outcomes(self, inputs: PairInputs) -> dict[str, int]:
        most_calls = self.length + (self.draft_length if self.rule.completes_block else 0)
        recorded = {"calls": most_calls + 1, "stuck": 2}
        texts = inputs.target.shape[-1] ** self.length
        return recorded | {"text": texts} if texts <= MOST_TEXTS else recorded

    def numbers(self, inputs: PairInputs) -> int:
        return numbers_in_round(inputs, self.draft_length)

    def trials(self, inputs: PairInputs, draw: Draw) -> dict[str, jax.Array]:
        def unfinished(state: tuple[jax.Array, _Writing]) -> jax.Array:
            return jnp.any(state[1].written < self.length)

        def next_round(state: tuple[jax.Array, _Writing]) -> tuple[jax.Array, _Writing]:
            part, writing = state
            return part + 1, jax.vmap(self._round, (None, 0, 1))(inputs, writing, draw(part))

        started = jax.vmap(self._start, (None, 0))(inputs, draw(0)[0])
        _, end = jax.lax.while_loop(unfinished, next_round, (jnp.uint32(1), started))
        recorded = {"calls": end.calls, "stuck": end.stuck.astype(jnp.int64)}
        return recorded | {"text": end.text} if "text" in self.outcomes(inputs) else recorded

    def _start(self, inputs: PairInputs, uniform: jax.Array) -> "_Writing":
        zero = jnp.int64(0)
        return _Writing(first_context(inputs, uniform), zero, zero, zero, jnp.bool_(False))

    def _round(self, inputs: PairInputs, before: "_Writing", uniforms: jax.Array) -> "_Writing":
        """One more round, unless the text is out."""
        done = one_round(self.rule, inputs, self.draft_length, before.context, uniforms)
        context, text = before.context, before.text
        for i in range(self.draft_length + 1):
            counts = (i < done.emitted) & (before.written + i < self.length)
            text = jnp.where(counts, text * inputs.target.shape[-1] + done.tokens[i], text)
            context = jnp.where(counts, inputs.successor[context, done.tokens[i]], context)
        goes_on = before.written < self.length
        return _Writing(
            context,
            text,
            written=before.written + jnp.where(goes_on, done.emitted, 0),
            calls=before.calls + jnp.where(goes_on, done.calls, 0),
            stuck=before.stuck | (goes_on & done.stuck),
        )


class _Writing(NamedTuple):
    """A text that is being written."""

    context: jax.Array
    text: jax.Array
    written: jax.Array
    calls: jax.Array
    stuck: jax.Array


def simulate_text(br: BlockRule, pair: Pair, draft_length: int, length: int, run: Run) -> Simulation:
    """Tokens per call over a text of a length that a block rule writes on a pair, and the joint law of its tokens."""
    texts = law = None
    if pair.vocabulary**length <= MOST_TEXTS:
        texts = [" ".join(map(str, text)) for text in itertools.product(range(pair.vocabulary), repeat=length)]
        if enumerable(pair, draft_length):
            law = np.asarray(joint_law(br, pair, draft_length, length), dtype=np.float64).reshape(-1)

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        calls = counts["calls"][1:]
        needed = mean("calls", range(1, len(calls) + 1), calls, confidence, interval=run.mean_interval)
        found = [needed.mapped(f"tokens per call over {length} tokens", lambda calls: length / calls), needed]
        return found + rates("text", counts["text"], confidence, outcomes=texts, exact=law) if texts else found

    return run.of(br.spec, Text(br, draft_length, length), PairInputs.of(pair), summary)
