"""Sequence level: rounds on a pair until a text of so many tokens is out."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fly_theory.blocks import BlockRule
from fly_theory.joint_law import joint_law
from fly_theory.pairs import Pair
from simulators.estimates import Counts, Estimate, mean, rates
from simulators.rounds import PairInputs, enumerable, first_context, numbers_in_round, one_round, uniforms_in_round
from simulators.simulation import Run, Simulation

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

    def outcomes(self, inputs: PairInputs) -> dict[str, int]:
        most_calls = self.length + (self.draft_length if self.rule.completes_block else 0)
        recorded = {"calls": most_calls + 1, "stuck": 2}
        texts = inputs.target.shape[-1] ** self.length
        return recorded | {"text": texts} if texts <= MOST_TEXTS else recorded

    def numbers(self, inputs: PairInputs) -> int:
        return numbers_in_round(inputs, self.draft_length)

    def trial(self, inputs: PairInputs, key: jax.Array) -> dict[str, jax.Array]:
        def unfinished(state: dict[str, Any]) -> jax.Array:
            return state["written"] < self.length

        def another_round(state: dict[str, Any]) -> dict[str, Any]:
            needed = uniforms_in_round(self.rule, self.draft_length)
            uniforms = jax.random.uniform(jax.random.fold_in(key, state["round"]), (needed,), jnp.float64)
            done = one_round(self.rule, inputs, self.draft_length, state["context"], uniforms)
            context, text = state["context"], state["text"]
            for i in range(self.draft_length + 1):
                counts = (i < done.emitted) & (state["written"] + i < self.length)
                text = jnp.where(counts, text * inputs.target.shape[-1] + done.tokens[i], text)
                context = jnp.where(counts, inputs.successor[context, done.tokens[i]], context)
            return {
                "round": state["round"] + 1,
                "context": context,
                "written": state["written"] + done.emitted,
                "text": text,
                "calls": state["calls"] + done.calls,
                "stuck": state["stuck"] | done.stuck,
            }

        zero = jnp.int64(0)
        start = {
            "round": jnp.uint32(1),
            "context": first_context(inputs, jax.random.uniform(jax.random.fold_in(key, 0), (), jnp.float64)),
            "written": zero,
            "text": zero,
            "calls": zero,
            "stuck": jnp.bool_(False),
        }
        end = jax.lax.while_loop(unfinished, another_round, start)
        recorded = {"calls": end["calls"], "stuck": end["stuck"].astype(jnp.int64)}
        return recorded | {"text": end["text"]} if "text" in self.outcomes(inputs) else recorded


def simulate_text(br: BlockRule, pair: Pair, draft_length: int, length: int, run: Run) -> Simulation:
    """Tokens per call over a text of a length that a block rule writes on a pair, and the joint law of its tokens."""
    texts = law = None
    if pair.vocabulary**length <= MOST_TEXTS:
        texts = [" ".join(map(str, text)) for text in itertools.product(range(pair.vocabulary), repeat=length)]
        if enumerable(pair, draft_length):
            law = joint_law(br, pair, draft_length, length).reshape(-1)

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        calls = counts["calls"][1:]
        needed = mean("calls", range(1, len(calls) + 1), calls, confidence, interval=run.mean_interval)
        found = [needed.mapped(f"tokens per call over {length} tokens", lambda calls: length / calls), needed]
        return found + rates("text", counts["text"], confidence, outcomes=texts, exact=law) if texts else found

    return run.of(br.spec, Text(br, draft_length, length), PairInputs.of(pair), summary)
