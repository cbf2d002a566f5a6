"""A token-level rule on a draft tree: candidates are tried in turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fly_theory import claims
from fly_theory.arrays import Array, array_namespace, normalise, take
from fly_theory.blocks.base import share
from fly_theory.claims import Claim
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import InvalidInput
from fly_theory.interpreters import Interpreter
from fly_theory.rules.accept_set import TruncatedTargetRule
from fly_theory.rules.base import Rule
from fly_theory.rules.lossless import Lossless
from fly_theory.trees.base import Verdicts, Walk
from fly_theory.trees.tree import Siblings

__all__ = ["Siblingwise", "redraw_depends_on_token", "siblingwise", "truncated_once"]


@dataclass(frozen=True)
class Siblingwise(Walk):
    """A token-level rule applied to the candidates of a position in turn, each against what the last one left.

    Statement
    ---------
    p_1 = p. Candidate x_k is kept with probability m(x_k) / q_k(x_k), m being the mass that the rule accepts of q_k
    under the target p_k; else p_{k+1} is the rule's residual, normalised. q_k is the law that x_k was drawn from given
    x_1..x_{k-1}: q for draws with replacement, q without them for draws without, the point mass at x_k for
    deterministic children. When all fail, the token is emitted from p_{n+1}. A rule that verifies a truncated target
    truncates p once, at the node; what a failed candidate leaves of it is not truncated again.

    Guarantee
    ---------
    Lossless when the rule is.

    Reference
    ---------
    With the lossless rule: multi-step speculative sampling of SpecInfer (arXiv 2305.09781) for draws with replacement;
    recursive rejection sampling of RSD (arXiv 2402.14160) and Sequoia (arXiv 2402.12374) for draws without; and for
    deterministic children the released code of EAGLE-2 and EAGLE-3, which accepts a child with probability p(x) and
    removes it from p if it fails. Lenience and accept-set rules on trees: released code of Fast-HSD.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> for drawing in ("with-replacement", "without-replacement", "deterministic"):
    ...     law = ft.trees.position_law(ft.tree_rule("lossless"), p, q, drafts=2, drawing=drawing)
    ...     print(round(float(law.acceptance), 4), law.induced.round(12).tolist())
    0.65 [0.5, 0.3, 0.15, 0.05]
    0.7393 [0.5, 0.3, 0.15, 0.05]
    0.2 [0.5, 0.3, 0.15, 0.05]
    """

    name: ClassVar[str] = "siblingwise"
    rule: Rule

    @property
    def spec(self) -> str:
        """The SPEC of the token-level rule; `ft.tree_rule` lifts it."""
        return self.rule.spec

    def verdicts(self, p: Array, siblings: Siblings) -> Verdicts:
        xp = array_namespace(p)
        passes = []
        with trusted_inputs():
            rule, p = truncated_once(self.rule, p)
            for k, (token, q) in enumerate(zip(siblings.tokens, siblings.laws(p), strict=True)):
                accepted, residual = rule.verdict(p, q)
                if redraw_depends_on_token(rule):
                    residual = rule.residual_after(p, q, token)
                passed, left = share(take(accepted, token), take(q, token)), normalise(residual)
                if siblings.present is not None:
                    present = siblings.present[k]
                    passed = xp.where(present, passed, xp.zeros_like(passed))
                    left = xp.where(present[..., None], left, p)
                passes.append(passed)
                p = left
        return Verdicts(tuple(passes), p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.rule.claims if isinstance(claim, claims.Lossless))

    @property
    def unreadable(self) -> Mapping[Interpreter, str]:
        return {**self.rule.unreadable, **self.unreadable_by}


def truncated_once(rule: Rule, p: Array) -> tuple[Rule, Array]:
    """The rule and the target (..., V) that candidates are tried with in turn."""
    if isinstance(rule, TruncatedTargetRule):
        return Lossless(), rule.matched_target(p)
    return rule, p


def redraw_depends_on_token(rule: Rule) -> bool:
    """Whether what a rejected candidate leaves depends on which one it is."""
    return type(rule).residual_after is not Rule.residual_after


def siblingwise(rule: Any) -> Siblingwise:
    """Lift a token-level rule to trees: the candidates of a position are tried in turn.

    Raises
    ------
    InvalidInput
        When `rule` is no token-level rule.
    """
    if not isinstance(rule, Rule):
        msg = f"rule={rule!r} is no token-level rule; write ft.tree_rule(SPEC) or siblingwise(ft.rule(SPEC))"
        raise InvalidInput(msg)
    return Siblingwise(rule)
