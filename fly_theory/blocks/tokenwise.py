"""A token-level rule on a block of drafts: the first rejection ends the round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fly_theory.arrays import Array, array_namespace, normalise
from fly_theory.blocks.base import Block, FirstRejection
from fly_theory.claims import Ceiling, Claim, FixedPoint, Lossless
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import InvalidInput
from fly_theory.interpreters import Interpreter
from fly_theory.rules.base import Rule


@dataclass(frozen=True)
class Tokenwise(FirstRejection):
    """A token-level rule applied to the drafts in order.

    Statement
    ---------
    Draft x_{i+1} is kept with probability m_i(x_{i+1}) / q_i(x_{i+1}) once all before it were. The first that is not is
    redrawn from the rule's residual (given the rejected token, where the rule's redraw depends on it); when all are
    kept, a bonus token comes from the last target row.

    Guarantee
    ---------
    Lossless when the rule is. The next token after any emitted text is drawn from the rule's induced distribution or,
    as a bonus, from the target: so a ceiling of the rule is one of the text.

    Reference
    ---------
    Leviathan, Kalman & Matias 2023 (arXiv 2211.17192), Algorithm 1.

    Examples
    --------
    Expected kept drafts when every row has p = (1/3, 2/3), q = (2/3, 1/3) and K = 2 is 10/9.

    >>> import numpy as np, fly_theory as ft
    >>> br = ft.tokenwise(ft.rule("lossless"))
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> drafted = block.draft_at_tokens.prod(axis=-1)
    >>> round(float(drafted @ br.length_law(block) @ np.arange(3)), 12) == round(10 / 9, 12)
    True
    """

    name: ClassVar[str] = "tokenwise"
    rule: Rule

    @property
    def spec(self) -> str:
        """The SPEC of the token-level rule; `ft.block_rule` lifts it."""
        return self.rule.spec

    def passes(self, block: Block) -> Array:
        with trusted_inputs():
            return self.rule.keep(block.judging, block.draft, block.tokens)

    def next_token(self, block: Block) -> Array:
        with trusted_inputs():
            residual = self.rule.residual_after(block.judging, block.draft, block.tokens)
        xp = array_namespace(residual)
        return xp.concat([normalise(residual), block.target[..., -1:, :]], axis=-2)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Those claims of the token-level rule that hold for text as they do for one token."""
        return tuple(claim for claim in self.rule.claims if isinstance(claim, Lossless | Ceiling | FixedPoint))

    @property
    def unreadable(self) -> Mapping[Interpreter, str]:
        return self.rule.unreadable


def tokenwise(rule: Any) -> Tokenwise:
    """Lift a token-level rule to blocks: drafts are judged in order and the first rejection ends the round.

    Raises
    ------
    InvalidInput
        When `rule` is no token-level rule.
    """
    if not isinstance(rule, Rule):
        msg = f"rule={rule!r} is no token-level rule; write ft.tokenwise(ft.rule(SPEC)) or ft.block_rule(SPEC)"
        raise InvalidInput(msg)
    return Tokenwise(rule)
