"""One round of a block rule: draft K tokens, decide how many stand, emit one more."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fly_theory.arrays import Array, inverse_cdf
from fly_theory.blocks import Block, BlockRule
from fly_theory.pairs import Pair
from simulators.drawing import cumulative, pick

__all__ = ["PairInputs", "Round", "enumerable", "first_context", "numbers_in_round", "one_round", "uniforms_in_round"]


class PairInputs(NamedTuple):
    """A toy pair as arrays: C contexts, V tokens.

    target, draft : (C, V)
        Next-token laws p and q by context.
    draft_sums : (C, V)
    initial_sums : (C,)
        Cumulative sums of the draft's rows, and of the law of the first context.
    successor : (C, V)
        The context that follows each context when a token is emitted.
    """

    target: Array
    draft: Array
    draft_sums: Array
    initial_sums: Array
    successor: Array

    @classmethod
    def of(cls, pair: Pair) -> "PairInputs":
        """The inputs for a pair."""
        target, draft = (np.asarray(table, dtype=np.float64) for table in (pair.target, pair.draft))
        initial = np.asarray(pair.initial, dtype=np.float64)
        return cls(target, draft, cumulative(draft), cumulative(initial), np.asarray(pair.successor))


# Exact values are found by enumeration while its tables hold at most so many probabilities: a second or so.
_ENUMERABLE = 2**23


def enumerable(pair: Pair, draft_length: int) -> bool:
    """Whether the exact laws of rounds on this pair are quickly enumerated."""
    return pair.contexts * pair.vocabulary ** (draft_length + 1) * (draft_length + 1) <= _ENUMERABLE


class Round(NamedTuple):
    """What a round did.

    kept : ()
        Draft tokens kept, 0..K.
    tokens : (K+1,)
        The tokens it emits, of which the first `emitted` count.
    emitted : ()
    calls : ()
        Target calls it took.
    stuck : ()
        Whether it had to emit a token where the rule has none to emit.
    """

    kept: jax.Array
    tokens: jax.Array
    emitted: jax.Array
    calls: jax.Array
    stuck: jax.Array


def uniforms_in_round(rule: BlockRule, draft_length: int) -> int:
    """How many uniforms a round takes."""
    return 2 * draft_length + (draft_length + 1 if rule.completes_block else 1)


def numbers_in_round(inputs: PairInputs, draft_length: int) -> int:
    """About how many numbers a round holds at a time: the block's rows, and what a rule makes of them."""
    return 6 * (draft_length + 1) * inputs.target.shape[-1]


def first_context(inputs: PairInputs, uniform: jax.Array) -> jax.Array:
    """A context drawn from the pair's initial law."""
    return pick(inputs.initial_sums, uniform)


def one_round(rule: BlockRule, inputs: PairInputs, draft_length: int, context: jax.Array, uniforms: jax.Array) -> Round:
    """Run one round from a context, on as many uniforms as `uniforms_in_round` says."""
    drafting, deciding, emitting = jnp.split(uniforms, [draft_length, 2 * draft_length])
    drafts, contexts = [], [context]
    for i in range(draft_length):
        drafts.append(pick(inputs.draft_sums[contexts[i]], drafting[i]))
        contexts.append(inputs.successor[contexts[i], drafts[i]])
    tokens = jnp.stack(drafts)
    block = _block(inputs, tokens, contexts)
    kept = rule.decide(block, deciding)
    if rule.completes_block:
        return _completed(rule, inputs, context, tokens, kept, emitting)
    weights = rule.next_token(block)[kept]
    following = inverse_cdf(weights, emitting[0])
    emitted = jnp.where(jnp.arange(draft_length) < kept, tokens, following)
    return Round(kept, jnp.append(emitted, following), kept + 1, jnp.ones_like(kept), jnp.sum(weights) <= 0)


def _block(inputs: PairInputs, tokens: jax.Array, contexts: list[jax.Array]) -> Block:
    along = jnp.stack(contexts)
    return Block(inputs.target[along], inputs.draft[along[:-1]], tokens)


def _completed(
    rule: BlockRule, inputs: PairInputs, context: jax.Array, drafted: jax.Array, kept: jax.Array, uniforms: jax.Array
) -> Round:
    """Draw every position from the first that did not stand, each from its row on the block of what is out so far."""
    draft_length = drafted.shape[-1]

    def position(i: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        tokens, stuck = state
        contexts = [context]
        for j in range(draft_length):
            contexts.append(inputs.successor[contexts[j], tokens[j]])
        weights = rule.next_token(_block(inputs, tokens[:-1], contexts))[i]
        redrawn = kept <= i
        token = jnp.where(redrawn, inverse_cdf(weights, uniforms[i]), tokens[i])
        return tokens.at[i].set(token), stuck | (redrawn & (jnp.sum(weights) <= 0))

    start = jnp.append(drafted, jnp.zeros_like(drafted[0])), jnp.zeros_like(kept, dtype=bool)
    tokens, stuck = jax.lax.fori_loop(0, draft_length + 1, position, start)
    whole = kept == draft_length
    calls = jnp.where(whole, 1, draft_length - kept)
    return Round(kept, tokens, jnp.where(whole, draft_length + 1, draft_length), calls, stuck)
