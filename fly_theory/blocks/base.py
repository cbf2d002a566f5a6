"""The block-level rule: K drafted tokens are judged at once, and one more token is emitted after those that are kept.

Notation everywhere: target p (..., K+1, V), draft q (..., K, V), drafted tokens x_1..x_K (..., K). Row i = 0..K of p
and q is the law given the context and the drafts x_1..x_i, so x_{i+1} is drawn from q_i.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from fly_theory.any_rule import AnyRule
from fly_theory.arrays import Array, array_namespace, device, first_true, take
from fly_theory.distributions import as_distribution
from fly_theory.errors import ShapeError
from fly_theory.rules.base import check_tokens, check_uniforms


class _Fields(NamedTuple):
    target: Array
    draft: Array
    tokens: Array


class Block(_Fields):
    """K drafted tokens with the rows they are judged by; batch axes broadcast, nested lists become numpy arrays.

    target : (..., K+1, V)
        Next-token laws of the target p after 0, 1, ..., K drafts.
    draft : (..., K, V)
        The laws q that the drafted tokens were drawn from.
    tokens : (..., K)
        The drafted token ids.

    A NamedTuple, so that jax takes it for a pytree: it passes through `jit` and `vmap`.

    Raises
    ------
    DistributionError
        For rows that are no distributions, naming the argument, the row and the entry.
    ShapeError
        For K = 0, or shapes that do not fit together.
    InvalidInput
        For token ids that are no integers or outside the vocabulary.
    """

    __slots__ = ()

    def __new__(cls, target: Any, draft: Any, tokens: Any) -> "Block":
        if type(target) is object:  # a placeholder: jax rebuilds pytrees around them while it plans a transformation
            return super().__new__(cls, target, draft, tokens)
        target, draft = as_distribution(target, "target"), as_distribution(draft, "draft")
        xp = array_namespace(target, draft)
        if isinstance(tokens, list | tuple):
            tokens = xp.asarray(np.asarray(tokens), device=device(target))
        batch = _batch(target, draft, tokens)
        check_tokens(tokens, draft)
        return super().__new__(
            cls,
            xp.broadcast_to(target, (*batch, *target.shape[-2:])),
            xp.broadcast_to(draft, (*batch, *draft.shape[-2:])),
            xp.broadcast_to(tokens, (*batch, *tokens.shape[-1:])),
        )

    @property
    def draft_length(self) -> int:
        """K, the number of drafted tokens."""
        return int(self.tokens.shape[-1])

    @property
    def judging(self) -> Array:
        """The target rows (..., K, V) that the drafted tokens are judged by: all but the one of the bonus token."""
        return self.target[..., :-1, :]

    @property
    def target_at_tokens(self) -> Array:
        """p(x_i) (..., K), the target probabilities of the drafted tokens."""
        return take(self.judging, self.tokens)

    @property
    def draft_at_tokens(self) -> Array:
        """q(x_i) (..., K), the draft probabilities of the drafted tokens."""
        return take(self.draft, self.tokens)


class BlockRule(AnyRule):
    """Base of every block-level rule: a frozen dataclass with pure methods over a `Block`.

    No backend import, no random generator, no branch on array values: the methods run over any batch shape, on numpy,
    torch, jax (inside `jit` and `vmap`) and exact arrays.

    A rule whose `completes_block` is true does not end the round with the token emitted after n < K kept drafts: it
    goes on until K tokens are out. The token at each later position i is drawn from row i of `next_token`, evaluated
    on the block whose tokens are those emitted so far, which costs a call of target and draft for each.
    """

    completes_block: ClassVar[bool] = False

    def length_law(self, block: Block) -> Array:
        """Probability (..., K+1) that exactly n = 0..K drafted tokens are kept."""
        raise NotImplementedError

    def next_token(self, block: Block) -> Array:
        """Law (..., K+1, V) of the token emitted after n kept drafts; the last row is the bonus token's.

        A row whose n is impossible may be all zero.
        """
        raise NotImplementedError

    def decide(self, block: Block, uniforms: Array) -> Array:
        """Number (...,) of drafts kept, given uniforms (..., K) in [0, 1): on average over them, `length_law`.

        Raises
        ------
        ShapeError, InvalidInput
            For uniforms of another length, or outside [0, 1).
        """
        check_uniforms(uniforms, block.draft_length)
        return self._decide(block, uniforms)

    def _decide(self, block: Block, uniforms: Array) -> Array:
        raise NotImplementedError


class FirstRejection(BlockRule):
    """Rules that test the drafts in order and stop at the first that fails; test i passes when u_i < passes_i."""

    def passes(self, block: Block) -> Array:
        """Probability (..., K) that draft i passes its test, independently of the others."""
        raise NotImplementedError

    def length_law(self, block: Block) -> Array:
        """prod_{i <= n} passes_i (1 - passes_{n+1}): the first n tests pass and the next one does not."""
        passes = self.passes(block)
        xp = array_namespace(passes)
        passed_before = xp.cumulative_prod(passes, axis=-1, include_initial=True)
        return passed_before * xp.concat([1 - passes, xp.ones_like(passes[..., :1])], axis=-1)

    def _decide(self, block: Block, uniforms: Array) -> Array:
        return count_until_false(uniforms < self.passes(block))


class LongestPass(BlockRule):
    """Rules that test every prefix of the draft and keep the longest that passes: n = max{i : u_i < passes_i}."""

    def passes(self, block: Block) -> Array:
        """Probability (..., K) that the prefix of i = 1..K drafts passes its test, independently of the others."""
        raise NotImplementedError

    def length_law(self, block: Block) -> Array:
        """passes_n prod_{i > n} (1 - passes_i), with passes_0 = 1."""
        passes = self.passes(block)
        xp = array_namespace(passes)
        none_longer = xp.flip(xp.cumulative_prod(xp.flip(1 - passes, axis=-1), axis=-1, include_initial=True), axis=-1)
        return none_longer * xp.concat([xp.ones_like(passes[..., :1]), passes], axis=-1)

    def _decide(self, block: Block, uniforms: Array) -> Array:
        xp = array_namespace(uniforms)
        passed = uniforms < self.passes(block)
        lengths = xp.arange(1, passed.shape[-1] + 1, device=device(passed))
        return xp.max(xp.where(passed, lengths, xp.zeros_like(lengths)), axis=-1)


def count_until_false(mask: Array) -> Array:
    """Number (...,) of entries before the first False along the last axis."""
    xp = array_namespace(mask)
    return first_true(xp.concat([~mask, xp.ones_like(mask[..., :1])], axis=-1))


def share(part: Array, whole: Array) -> Array:
    """part / whole for 0 <= part <= whole, and 0 where both are 0."""
    xp = array_namespace(part, whole)
    return part / xp.where(whole > 0, whole, xp.ones_like(whole))


def _batch(target: Array, draft: Array, tokens: Array) -> tuple[int, ...]:
    shapes = f"target {tuple(target.shape)}, draft {tuple(draft.shape)}, tokens {tuple(tokens.shape)}"
    if tokens.ndim < 1 or tokens.shape[-1] < 1:
        msg = f"{shapes}: a block has at least one drafted token; expected tokens (..., K) with K >= 1"
        raise ShapeError(msg)
    draft_length, vocabulary = tokens.shape[-1], target.shape[-1]
    if tuple(draft.shape[-2:]) != (draft_length, vocabulary) or tuple(target.shape[-2:]) != (
        draft_length + 1,
        vocabulary,
    ):
        msg = f"{shapes} do not fit together; expected target (..., K+1, V), draft (..., K, V), tokens (..., K)"
        raise ShapeError(msg)
    try:
        return np.broadcast_shapes(tuple(target.shape[:-2]), tuple(draft.shape[:-2]), tuple(tokens.shape[:-1]))
    except ValueError as error:
        msg = f"{shapes}: the batch axes do not broadcast"
        raise ShapeError(msg) from error
