"""The speculative loop: draft K tokens, read them with the target in one call, keep what the rule keeps, emit one more.

Every round drafts K tokens, also where the text ends before they are used up: what a rule decides may depend on all of
them. So a text cut after m tokens is the beginning of a longer one, and its law that of `ft.joint_law`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fly_theory.arrays import inverse_cdf
from fly_theory.blocks import Block, BlockRule
from fly_theory.blocks.fly import Cause, DeferredWindow
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import ZeroResidualError
from gpu.decoding.laws import Laws
from gpu.decoding.reader import Reader

__all__ = ["ALL_KEPT", "Round", "Speculation", "uniforms_in_round"]

ALL_KEPT = "all kept"
REJECTED = "rejected"


@dataclass(frozen=True)
class Round:
    """What a round did.

    Attributes
    ----------
    drafts
        The K drafted tokens.
    kept
        How many of them the rule keeps, also where the text ends before.
    tokens
        What the round adds to the text: the kept drafts, then the replacement of the first that is not kept or, after
        all, the bonus token (a rule that completes its block replaces every draft from there on). Cut where the text
        ends.
    cause
        Why no more drafts are kept: `all kept` or `rejected`; in FLy and its variants `gate`, `boundary` or `window`.
    calls
        Calls of the target.
    ending
        Why the text ends with the last of these tokens; None where it goes on.
    """

    drafts: tuple[int, ...]
    kept: int
    tokens: tuple[int, ...]
    cause: str
    calls: int
    ending: str | None = None

    @property
    def accepted(self) -> int:
        """How many of the tokens are drafts."""
        return min(self.kept, len(self.tokens))


def uniforms_in_round(rule: BlockRule, draft_length: int) -> int:
    """How many uniforms a round takes: K to draft, K to decide, and one for each token emitted beside the drafts."""
    return 2 * draft_length + (draft_length if rule.completes_block else 1)


class Speculation:
    """A block rule deciding over a draft and a target that read the same text.

    Parameters
    ----------
    target, draft
        One reader each, both of nothing yet.
    rule
        What decides.
    laws
        What logits of either become.
    draft_length
        K.
    """

    def __init__(self, target: Reader, draft: Reader, rule: BlockRule, laws: Laws, draft_length: int) -> None:
        self._target, self._draft, self._rule, self._laws = target, draft, rule, laws
        self._draft_length = draft_length

    def rounds(
        self, text: Sequence[int], noise: Callable[[int], Tensor], ended: Callable[[Sequence[int]], str | None]
    ) -> Iterator[Round]:
        """Rounds that continue a text, until `ended` gives a reason why the text so far is the whole.

        `noise` gives the uniforms of round 0, 1, ..., as many as `uniforms_in_round` says, float64 in [0, 1).

        Raises
        ------
        ZeroResidualError
            Where the rule rejects and has nothing to emit instead.
        """
        text, number, ending = list(text), 0, None
        while ending is None:
            done = self._round(text, noise(number))
            for count, token in enumerate(done.tokens, start=1):
                text.append(token)
                ending = ended(text)
                if ending is not None:
                    done = replace(done, tokens=done.tokens[:count], ending=ending)
                    break
            yield done
            number += 1

    def _round(self, text: list[int], uniforms: Tensor) -> Round:
        calls, length = self._target.calls, self._draft_length
        drafting, deciding, emitting = uniforms[:length], uniforms[length : 2 * length], uniforms[2 * length :]
        drafts, q = self._drafted(text, drafting)
        path = text + drafts
        p = self._laws.target(self._target.logits(path, keep=length + 1), path)
        with trusted_inputs():
            block = Block(p, q, torch.tensor(drafts, device=p.device))
            kept = int(self._rule.decide(block, deciding.to(p.device)))
            cause = self._cause(block, deciding.to(p.device), kept)
            tokens = [*drafts[:kept], self._emitted(block, kept, emitting[0])]
            if self._rule.completes_block:
                self._complete(text, tokens, block, emitting)
        return Round(tuple(drafts), kept, tuple(tokens), cause, self._target.calls - calls)

    def _drafted(self, text: list[int], uniforms: Tensor) -> tuple[list[int], Tensor]:
        """K drafted tokens and the rows q (K, V) they were drawn from."""
        drafts: list[int] = []
        rows = []
        for uniform in uniforms:
            rows.append(self._draft_row(text + drafts))
            drafts.append(int(inverse_cdf(rows[-1], uniform.to(rows[-1].device))))
        return drafts, torch.stack(rows)

    def _draft_row(self, text: list[int]) -> Tensor:
        return self._laws.draft(self._draft.logits(text, keep=1)[0], text)

    def _emitted(self, block: Block, position: int, uniform: Tensor) -> int:
        """The token that follows `position` tokens of the block."""
        weights = self._rule.next_token(block)[position]
        if not bool(weights.sum() > 0):
            msg = f"{self._rule.spec} stops after {position} drafts, where its residual is all zero: no token to emit"
            raise ZeroResidualError(msg)
        return int(inverse_cdf(weights, uniform.to(weights.device)))

    def _complete(self, text: list[int], tokens: list[int], block: Block, uniforms: Tensor) -> None:
        """Add to the tokens of a round until K are out, each drawn on the block of those before it."""
        p, q, path = (array.clone() for array in block)
        for i in range(len(tokens), self._draft_length):
            so_far = text + tokens
            path[i - 1] = tokens[-1]
            p[i] = self._laws.target(self._target.logits(so_far, keep=1), so_far)[0]
            q[i] = self._draft_row(so_far)
            tokens.append(self._emitted(Block(p, q, path), i, uniforms[i]))

    def _cause(self, block: Block, uniforms: Tensor, kept: int) -> str:
        if kept == self._draft_length:
            return ALL_KEPT
        if isinstance(self._rule, DeferredWindow):
            return Cause(int(self._rule.trace(block, uniforms=uniforms).cause[kept])).name.lower()
        return REJECTED
