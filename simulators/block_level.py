"""Block level: the first round of a block rule on a pair."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from fly_theory.blocks import BlockRule
from fly_theory.joint_law import expected_lengths, joint_law
from fly_theory.pairs import Pair
from simulators.estimates import Counts, Estimate, mean, rates
from simulators.rounds import PairInputs, enumerable, first_context, numbers_in_round, one_round, uniforms_in_round
from simulators.simulation import Run, Simulation
from simulators.tally import Draw

__all__ = ["OneRound", "simulate_round"]


@dataclass(frozen=True)
class OneRound:
    """Run one round: how many drafts are kept, which token comes first, and whether the rule got stuck."""

    rule: BlockRule
    draft_length: int

    @property
    def uniforms(self) -> int:
        return 1 + uniforms_in_round(self.rule, self.draft_length)

    def outcomes(self, inputs: PairInputs) -> dict[str, int]:
        return {"kept": self.draft_length + 1, "first token": inputs.target.shape[-1], "stuck": 2}

    def numbers(self, inputs: PairInputs) -> int:
        return numbers_in_round(inputs, self.draft_length)

    def trials(self, inputs: PairInputs, draw: Draw) -> dict[str, jax.Array]:
        return jax.vmap(self._trial, (None, 1))(inputs, draw(0))

    def _trial(self, inputs: PairInputs, uniforms: jax.Array) -> dict[str, jax.Array]:
        context = first_context(inputs, uniforms[0])
        done = one_round(self.rule, inputs, self.draft_length, context, uniforms[1:])
        return {"kept": done.kept, "first token": done.tokens[0], "stuck": done.stuck.astype(jnp.int64)}


def simulate_round(br: BlockRule, pair: Pair, draft_length: int, run: Run) -> Simulation:
    """Drafts kept and tokens per call in the first round of a block rule on a pair, and the law of the first token."""
    law, kept, tokens_per_call, first = None, None, None, None
    if enumerable(pair, draft_length):
        lengths = expected_lengths(br, pair, draft_length)
        law, kept, tokens_per_call = lengths.law, float(lengths.kept), float(lengths.tokens_per_call)
        first = joint_law(br, pair, draft_length, 1)
    possible = range(draft_length + 1)

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        drafts = mean("drafts kept", possible, counts["kept"], confidence, interval=run.mean_interval, exact=kept)
        found = [drafts]
        if not br.completes_block:
            found = [drafts.mapped("tokens per call", lambda kept: kept + 1, exact=tokens_per_call), drafts]
        found += rates("kept", counts["kept"], confidence, exact=law)
        return found + rates("first token", counts["first token"], confidence, exact=first)

    return run.of(br.spec, OneRound(br, draft_length), PairInputs.of(pair), summary)
