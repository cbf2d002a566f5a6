"""The case that block-level invariants judge: one block rule on one toy pair."""

import itertools
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fly_theory.arrays import Array, array_namespace
from fly_theory.blocks.base import Block, BlockRule
from fly_theory.exact import exact
from fly_theory.invariants.base import Asked, Violation, shaped
from fly_theory.joint_law import expected_lengths, joint_law, target_law
from fly_theory.pairs import MarkovPair

__all__ = ["BlockCase", "BlockInvariant"]


class BlockCase(Asked):
    """A block rule with K drafts a round, on a pair whose next-token laws depend on the last token.

    target, draft : (V, V), row v after token v; exact arrays, or lists that `ft.exact` reads, or numpy float64 arrays
    draft_length : K

    Text starts after token 0, and is compared over K + 1 tokens.
    """

    def __init__(self, rule: BlockRule, target: Any, draft: Any, draft_length: int) -> None:
        target, draft = (exact(x) if isinstance(x, list | tuple) else x for x in (target, draft))
        self.rule = rule
        self.draft_length = draft_length
        self.xp = array_namespace(target, draft)
        self.is_exact = bool(getattr(target, "is_exact", False))
        self.pair = MarkovPair(target, draft, self.array([int(token == 0) for token in range(target.shape[-1])]))

    def of(self, rule: BlockRule) -> "BlockCase":
        """Another rule on the same pair."""
        return BlockCase(rule, self.pair.target, self.pair.draft, self.draft_length)

    def having(self, settings: Mapping[str, Any]) -> "BlockCase":
        """The rule with other parameters, on the same pair."""
        return self.of(self.rule_with(settings))

    @cached_property
    def text_law(self) -> Array:
        """Joint law (V,) * (K+1) of the emitted text."""
        return self.ask(lambda: joint_law(self.rule, self.pair, self.draft_length, self.draft_length + 1))

    @cached_property
    def target_text_law(self) -> Array:
        """Joint law (V,) * (K+1) of the target's text."""
        return target_law(self.pair, self.draft_length + 1)

    @cached_property
    def kept(self) -> Array:
        """Expected number () of drafts kept in the first round."""
        return self.ask(lambda: expected_lengths(self.rule, self.pair, self.draft_length).kept)

    @cached_property
    def block(self) -> Block:
        """The B draft blocks that the first round can have, one a row."""
        tokens = np.array(list(itertools.product(range(self.pair.vocabulary), repeat=self.draft_length)))
        before = np.concat([np.zeros_like(tokens[:, :1]), tokens], axis=-1)
        block = Block(self.pair.target[before], self.pair.draft[before[:, :-1]], tokens)
        possible = np.asarray(self.xp.all(block.draft_at_tokens > self.tolerance, axis=-1))
        return Block(*(part[possible] for part in block))

    @cached_property
    def length_law(self) -> Array:
        """Probability (B, K+1) that n drafts of each block are kept."""
        lengths = self.ask(lambda: self.rule.length_law(self.block))
        return shaped("length law", lengths, {tuple(self.block.target.shape[:-1])})

    @cached_property
    def next_token(self) -> Array:
        """Law (B, K+1, V) of the token after n kept drafts, zero where no round stops there."""
        rows = self.ask(lambda: self.rule.next_token(self.block))
        rows = shaped("next token", rows, {tuple(self.block.target.shape)})
        return self.xp.where((self.length_law > self.tolerance)[..., None], rows, self.xp.zeros_like(rows))

    def decide(self, block: Block, uniforms: Array) -> Array:
        """Number (...,) of drafts kept, given uniforms (..., K)."""
        return self.ask(lambda: self.rule.decide(block, uniforms))


class BlockInvariant:
    """A property of block rules that one pair can refute."""

    stride: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """What reports call it."""
        raise NotImplementedError

    def applies(self, case: BlockCase) -> bool:
        """Whether the case says anything about this invariant."""
        return True

    def judge(self, case: BlockCase) -> Violation | None:
        """How the case breaks the invariant, or None where it holds."""
        raise NotImplementedError

    def examine(self, rule: BlockRule, target: Any, draft: Any, draft_length: int) -> Violation | None:
        """Judge a rule on one pair, target (V, V) and draft (V, V), row v after token v, with K drafts a round."""
        case = BlockCase(rule, target, draft, draft_length)
        return self.judge(case) if self.applies(case) else None
