"""Exact laws of what a block rule does on a toy pair: the text it emits, and how many drafts it keeps.

The law of one round is found by enumerating all V^K draft blocks from a context, and rounds are chained by dynamic
programming over contexts. Float tables give float laws, exact tables exact ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import Array, array_namespace, device
from fly_theory.blocks.base import Block, BlockRule
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import InvalidInput, ZeroResidualError
from fly_theory.pairs import Pair

__all__ = ["Lengths", "expected_lengths", "joint_law", "target_law"]

Contexts = npt.NDArray[np.int64]

# Contexts are enumerated in batches of about this many probabilities.
_BATCH = 2**20
# Largest tables held at once (a gigabyte or two in float64), and all tables together (a minute or two).
_AT_ONCE, _TOGETHER = 2**24, 2**28
# Probabilities below this are rounding.
_ROUNDING = {"float64": 1e-12, "float32": 1e-5, "rational": 0}


class Lengths(NamedTuple):
    """How long the first round of a block rule is.

    law : (K+1,)
        Probability that n = 0..K drafted tokens are kept.
    kept : ()
        Expected number of drafts kept.
    tokens_per_call : ()
        Expected tokens emitted over expected target calls, the corrected or bonus token counted. A rule that completes
        its block calls the target once more for each token it redraws after the first.
    """

    law: Array
    kept: Any
    tokens_per_call: Any


def joint_law(br: BlockRule, pair: Pair, draft_length: int, length: int) -> Array:
    """Exact joint law (V,) * length of the first `length` tokens that a block rule emits over repeated rounds.

    Each round drafts `draft_length` tokens from the pair's draft, and what it emits becomes context. The rule is
    lossless on this pair and length exactly when the result equals `target_law(pair, length)`.

    Raises
    ------
    InvalidInput
        For draft_length < 1, length < 1, something that is no block rule, or a state space too large to enumerate.
    ZeroResidualError
        When the rule stops with positive probability where it has no token to emit.
    """
    _check(br, draft_length)
    return chained(pair, length, lambda contexts: _rounds(br, pair, contexts, draft_length, length).emitted)


def chained(pair: Pair, length: int, one_round: Callable[[Contexts], dict[int, Array]]) -> Array:
    """Joint law (V,) * length of the text that repeated rounds emit.

    `one_round` gives, for contexts (B,) of the pair, {count: (B, V^count)}: the probability that a round from each
    emits just these tokens; at the largest count, `length`, that it starts with them.
    """
    _check_length(length)
    starts = _starts(pair, length)
    contexts = np.unique(np.concatenate(starts))
    emitted = one_round(contexts)

    # law[m]: the next m tokens, from each context in which a round may start with m tokens to go.
    xp, vocabulary = array_namespace(pair.target), pair.vocabulary
    law: dict[int, Array] = {}
    for m in range(1, length + 1):
        here = starts[length - m]
        terms = []
        for count, this_round in emitted.items():
            first = _rows(this_round, np.searchsorted(contexts, here))
            if count < m:
                after = np.searchsorted(starts[length - m + count], _after(pair, here, count))
                terms.append(xp.reshape(first[..., None] * _rows(law[m - count], after), (len(here), -1)))
            else:
                terms.append(_first_tokens(first, m, vocabulary))
        law[m] = sum(terms)
    return xp.reshape(_average(pair, starts[0], law[length]), (vocabulary,) * length)


def target_law(pair: Pair, length: int) -> Array:
    """Joint law (V,) * length of the first `length` tokens of the target alone.

    Raises
    ------
    InvalidInput
        For length < 1.
    """
    _check_length(length)
    xp = array_namespace(pair.target)
    start = _starts(pair, 1)[0]
    law = xp.ones_like(_rows(pair.target, start)[:, :1])
    for count in range(length):
        law = xp.reshape(law[..., None] * _rows(pair.target, _after(pair, start, count)), (len(start), -1))
    return xp.reshape(_average(pair, start, law), (pair.vocabulary,) * length)


def expected_lengths(br: BlockRule, pair: Pair, draft_length: int) -> Lengths:
    """Law and mean of the number of drafts kept, and tokens per target call, in the first round on this pair.

    Raises
    ------
    InvalidInput, ZeroResidualError
        As `joint_law`.
    """
    _check(br, draft_length)
    start = _starts(pair, 1)[0]
    law = _average(pair, start, _rounds(br, pair, start, draft_length, 1).kept)
    kept = sum(n * law[n] for n in range(1, draft_length + 1))
    if not br.completes_block:
        return Lengths(law, kept, kept + 1)
    calls = 1 + sum((draft_length - 1 - n) * law[n] for n in range(draft_length))
    return Lengths(law, kept, (draft_length + law[draft_length]) / calls)


# -- one round ---------------------------------------------------------------------------------------------------------


class _Rounds(NamedTuple):
    """Laws of one round from each of B contexts.

    emitted : {count: (B, V^count)}
        Probability that the round emits just these tokens; at the largest count, `length`, that it starts with them.
    kept : (B, K+1)
        Probability that n drafts are kept.
    """

    emitted: dict[int, Array]
    kept: Array


def _rounds(br: BlockRule, pair: Pair, contexts: Contexts, draft_length: int, length: int) -> _Rounds:
    table = pair.vocabulary ** (draft_length + 1) * (draft_length + 1)
    _check_size(pair, len(contexts), table, draft_length, length)
    xp, size = array_namespace(pair.target), max(1, _BATCH // table)
    batches = [contexts[i : i + size] for i in range(0, len(contexts), size)]
    parts = [_round(br, pair, batch, draft_length, length) for batch in batches]
    emitted = {count: xp.concat([part.emitted[count] for part in parts], axis=0) for count in parts[0].emitted}
    return _Rounds(emitted, xp.concat([part.kept for part in parts], axis=0))


def _round(br: BlockRule, pair: Pair, contexts: Contexts, draft_length: int, length: int) -> _Rounds:
    xp = array_namespace(pair.target)
    with trusted_inputs():
        block = _all_blocks(pair, contexts, draft_length)
        mass = xp.prod(block.draft_at_tokens, axis=-1)[..., None] * br.length_law(block)
        next_token = br.next_token(block)
    _check_residuals(br, mass, next_token)
    laws = _emitted(mass, next_token)
    if br.completes_block:
        laws = _completed(laws, next_token)
    return _Rounds(cut(laws, length, pair.vocabulary), xp.sum(mass, axis=1))


def cut(laws: dict[int, Array], length: int, vocabulary: int) -> dict[int, Array]:
    """Laws {count: (B, V^count)} of texts, with texts longer than `length` cut to it."""
    found: dict[int, Array] = {}
    for count, law in laws.items():
        kept = min(count, length)
        found[kept] = found.get(kept, 0) + _first_tokens(law, kept, vocabulary)
    return found


def _all_blocks(pair: Pair, contexts: Contexts, draft_length: int) -> Block:
    """The blocks of all V^K drafts, in lexicographic order, from each of B contexts: batch axes (B, V^K)."""
    tokens = np.indices((pair.vocabulary,) * draft_length).reshape(draft_length, -1).T
    path = [np.broadcast_to(contexts[:, None], (len(contexts), len(tokens)))]
    for i in range(draft_length):
        path.append(pair.successor[path[-1], tokens[:, i]])
    along = np.stack(path, axis=-1)
    ids = array_namespace(pair.target).asarray(tokens, device=device(pair.target))
    return Block(_rows(pair.target, along), _rows(pair.draft, along[..., :-1]), ids)


def _emitted(mass: Array, next_token: Array) -> dict[int, Array]:
    """{n + 1: (B, V^(n+1))}: probability that n drafts are kept and one token follows, summed over the other drafts."""
    xp, (contexts, _, lengths, vocabulary) = array_namespace(mass), next_token.shape
    laws = {}
    for n in range(lengths):
        by_suffix = xp.reshape(mass[..., n : n + 1] * next_token[..., n, :], (contexts, vocabulary**n, -1, vocabulary))
        laws[n + 1] = xp.reshape(xp.sum(by_suffix, axis=2), (contexts, -1))
    return laws


def _completed(laws: dict[int, Array], next_token: Array) -> dict[int, Array]:
    """The laws of a rule that goes on until K tokens are out, each redrawn given the tokens before it."""
    xp, (contexts, _, lengths, vocabulary) = array_namespace(next_token), next_token.shape
    draft_length = lengths - 1
    drawn = laws[1]
    for n in range(1, draft_length):
        row = xp.reshape(next_token[..., n, :], (contexts, vocabulary**n, -1, vocabulary))[:, :, 0, :]
        drawn = laws[n + 1] + xp.reshape(drawn[..., None] * row, (contexts, -1))
    return {draft_length: drawn, lengths: laws[lengths]}


# -- contexts ----------------------------------------------------------------------------------------------------------


def _starts(pair: Pair, length: int) -> list[Contexts]:
    """The contexts in which a round may start after 0..length-1 emitted tokens."""
    starts = [np.flatnonzero(np.asarray(pair.initial > 0))]
    for _ in range(1, length):
        starts.append(np.unique(pair.successor[starts[-1]]))
    return starts


def _after(pair: Pair, contexts: Contexts, count: int) -> Contexts:
    """The contexts (B, V^count) after every text of `count` tokens."""
    contexts = contexts[:, None]
    for _ in range(count):
        contexts = pair.successor[contexts].reshape(len(contexts), -1)
    return contexts


def _rows(table: Array, index: Contexts) -> Array:
    """table[index]: rows of a table for an array of row numbers."""
    xp = array_namespace(table)
    flat = xp.asarray(index.reshape(-1), device=device(table))
    return xp.reshape(xp.take(table, flat, axis=0), (*index.shape, *table.shape[1:]))


def _first_tokens(law: Array, count: int, vocabulary: int) -> Array:
    """The law (B, V^count) of the first `count` tokens of longer texts (B, V^m)."""
    xp = array_namespace(law)
    return xp.sum(xp.reshape(law, (law.shape[0], vocabulary**count, -1)), axis=-1)


def _average(pair: Pair, start: Contexts, laws: Array) -> Array:
    """The average (...,) of laws (B, ...) over the context of the pair's first token."""
    weights = _rows(pair.initial, start)
    return array_namespace(laws).sum(weights[:, None] * laws, axis=0)


# -- checks ------------------------------------------------------------------------------------------------------------


def _check(br: Any, draft_length: int) -> None:
    if not isinstance(br, BlockRule):
        msg = f"br={br!r} is no block rule; write ft.block_rule(SPEC), or ft.tokenwise(rule) for a token-level rule"
        raise InvalidInput(msg)
    if not (isinstance(draft_length, int) and draft_length >= 1):
        msg = f"draft_length={draft_length!r} is not allowed; a block has an integer number K >= 1 of drafted tokens"
        raise InvalidInput(msg)


def _check_length(length: int) -> None:
    if not (isinstance(length, int) and length >= 1):
        msg = f"length={length!r} is not allowed; a text has an integer number >= 1 of tokens"
        raise InvalidInput(msg)


def _check_size(pair: Pair, contexts: int, table: int, draft_length: int, length: int) -> None:
    for what, needed, allowed in (
        ("the drafts from one context", table, _AT_ONCE),
        (f"the drafts from {contexts} contexts", contexts * table, _TOGETHER),
        ("texts", pair.vocabulary**length, _AT_ONCE),
    ):
        if needed > allowed:
            msg = (
                f"V={pair.vocabulary}, draft_length={draft_length}, length={length}: {what} have {needed:.1e} "
                f"probabilities, more than the {allowed:.1e} that are enumerated; use simulators.simulate for this size"
            )
            raise InvalidInput(msg)


def _check_residuals(br: BlockRule, mass: Array, next_token: Array) -> None:
    xp = array_namespace(mass)
    empty = (mass > _ROUNDING[str(mass.dtype).split(".")[-1]]) & ~(xp.sum(next_token, axis=-1) > 0)
    if bool(xp.any(empty)):
        probability = xp.max(xp.where(empty, mass, xp.zeros_like(mass)))
        msg = f"{br.spec} stops with probability {probability} where its residual is all zero, with no token to emit"
        raise ZeroResidualError(msg)
