"""How candidates and depth multiply what a lossy rule does to the target.

For an accept-set rule (allowed set A, redraw from p) with n candidates drawn with replacement

    out_n = (1 - s_n) q_A + s_n p,   s_n = (1 - q(A))^n,   TV(out_n, p) = (1 - s_n) TV(q_A, p)

so the target is forgotten geometrically in n. With deterministic candidates out_n is the point mass at the first that
is allowed, and p if none is.
"""

from typing import NamedTuple

from fly_theory.arrays import Array, array_namespace, first_true, normalise, one_hot
from fly_theory.distributions import as_pair, restrict, trusted_inputs
from fly_theory.divergence import total_variation
from fly_theory.errors import InvalidInput
from fly_theory.rules.accept_set import AcceptSetRule, AllowedSetRule
from fly_theory.rules.base import Rule
from fly_theory.trees.base import TreeRule, Walk
from fly_theory.trees.laws import PositionLaw, position_law
from fly_theory.trees.siblingwise import Siblingwise, redraw_depends_on_token, truncated_once
from fly_theory.trees.tree import Drawing, next_sibling

__all__ = ["Amplification", "accept_set_law", "amplify", "independent_law", "text_law"]


class Amplification(NamedTuple):
    """What one number of candidates and depth does.

    acceptance : ()
        Probability that a candidate is kept at one position.
    to_target : ()
        TV of the text to the target's.
    to_matched : () or None
        TV of the text to that of the target truncated to the rule's allowed set, for rules that have one.
    """

    acceptance: Array
    to_target: Array
    to_matched: Array | None


def accept_set_law(rule: AcceptSetRule, p: Array, q: Array, drafts: int, *, drawing: Drawing) -> Array:
    """Closed form of the law (..., V) of one token when an accept-set rule tries `drafts` candidates in turn.

    Any vocabulary and any batch of p and q (..., V).

    Raises
    ------
    InvalidInput
        For a rule that is no accept-set rule with redraw from p, drafts < 1, or draws without replacement, which have
        no closed form.
    """
    p, q = as_pair(p, q)
    if not isinstance(rule, AcceptSetRule) or type(rule).verdict is not AcceptSetRule.verdict:
        msg = f"rule={rule!r} does not accept a set and redraw from the target; use position_law for other rules"
        raise InvalidInput(msg)
    if drafts < 1 or drawing == "without-replacement":
        msg = f"drafts={drafts}, drawing={drawing!r}: the closed form is for drafts >= 1, not without replacement"
        raise InvalidInput(msg)
    xp, allowed = array_namespace(p, q), rule.allowed_set(p)
    if drawing == "deterministic":
        return _first_allowed(p, q, allowed, drafts)
    outside = xp.sum(xp.where(allowed, xp.zeros_like(q), q), axis=-1)[..., None] ** drafts
    return (1 - outside) * restrict(q, allowed) + outside * p


def independent_law(rule: Rule, p: Array, q: Array, drafts: int) -> PositionLaw:
    """Closed form of the law of one token when a token-level rule tries `drafts` independent draws from q in turn.

    A draw that is rejected tells nothing about the next one, and the rule's residual does not depend on it: the k-th
    draw is judged against the same p_k whatever was drawn before. Any vocabulary and any batch of p and q (..., V).

    Raises
    ------
    InvalidInput
        For drafts < 1, and for a rule whose redraw depends on the drafted token, if there are several.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> law = independent_law(ft.rule("lossless"), p, q, drafts=2)
    >>> round(float(law.acceptance), 4), law.induced.round(12).tolist()
    (0.65, [0.5, 0.3, 0.15, 0.05])
    """
    p, q = as_pair(p, q)
    if drafts < 1 or (drafts > 1 and redraw_depends_on_token(rule)):
        msg = f"{rule.spec}, drafts={drafts}: the closed form is for drafts >= 1 and residuals that forget the draws"
        raise InvalidInput(msg)
    xp = array_namespace(p, q)
    if drafts == 1:
        accepted = rule.verdict(p, q).accepted
        return PositionLaw(accepted, rule.induced(p, q) - accepted)
    left, accepted = xp.ones_like(p[..., :1]), xp.zeros_like(p)
    with trusted_inputs():
        rule, p = truncated_once(rule, p)
        for _ in range(drafts):
            kept, residual = rule.verdict(p, q)
            accepted = accepted + left * kept
            left = left * (1 - xp.sum(kept, axis=-1, keepdims=True))
            p = normalise(residual)
    return PositionLaw(accepted, left * p)


def _first_allowed(p: Array, q: Array, allowed: Array, drafts: int) -> Array:
    xp = array_namespace(p, q)
    earlier: tuple[Array, ...] = ()
    for _ in range(drafts):
        earlier = (*earlier, xp.argmax(next_sibling(q, earlier, "deterministic"), axis=-1))
    tokens = xp.stack(earlier, axis=-1)
    good = xp.take_along_axis(xp.broadcast_to(allowed, p.shape), tokens, axis=-1)
    first = xp.take_along_axis(tokens, first_true(good)[..., None], axis=-1)[..., 0]
    return xp.where(xp.any(good, axis=-1)[..., None], one_hot(first, p), p)


def text_law(position: PositionLaw, p: Array, depth: int, length: int) -> Array:
    """Joint law (V,) * length of the text of a rule that walks down trees, when every position has the same p and q.

    `position` is the law at one position; the tree has its candidates at each of `depth` levels, and a bonus token from
    p (V,) below the last. A position whose candidates all fail ends the round.
    """
    xp, vocabulary = array_namespace(p), p.shape[-1]
    at_level = [xp.ones_like(p[:1]), *[None] * depth]
    for _ in range(length):
        following: list[Array | None] = [None] * (depth + 1)
        for level, mass in enumerate(at_level):
            if mass is None:
                continue
            steps = ((level + 1, position.accepted), (0, position.redrawn)) if level < depth else ((0, p),)
            for to, law in steps:
                more = xp.reshape(mass[:, None] * law[None, :], (-1,))
                following[to] = more if following[to] is None else following[to] + more
        at_level = following
    return xp.reshape(sum(mass for mass in at_level if mass is not None), (vocabulary,) * length)


def amplify(
    rule: TreeRule, p: Array, q: Array, *, drafts: int, drawing: Drawing, depth: int = 1, length: int = 1
) -> Amplification:
    """Exact distances of the text of a rule that walks down full trees, `drafts` children a node and `depth` levels.

    Every position has the same target p (V,) and draft q (V,); the text has `length` tokens, over repeated rounds.

    Raises
    ------
    InvalidInput, ZeroResidualError
        As `position_law`; also for a rule that does not decide position by position, and depth or length below 1.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> rule = ft.tree_rule("min-p:base=0.25")
    >>> for drafts in (1, 2, 4):
    ...     found = amplify(rule, p, q, drafts=drafts, drawing="with-replacement")
    ...     print(drafts, round(float(found.to_target), 3), round(float(found.to_matched), 3))
    1 0.21 0.222
    2 0.294 0.294
    4 0.341 0.334
    """
    p, q = as_pair(p, q)
    if not isinstance(rule, Walk):
        msg = f"rule={rule!r} does not decide position by position; its texts come from joint_law"
        raise InvalidInput(msg)
    if depth < 1 or length < 1:
        msg = f"depth={depth}, length={length}: both are at least 1"
        raise InvalidInput(msg)
    position = position_law(rule, p, q, drafts, drawing=drawing)
    text = _flat(text_law(position, p, depth, length))
    token_rule = rule.rule if isinstance(rule, Siblingwise) else None
    matched = token_rule.matched_target(p) if isinstance(token_rule, AllowedSetRule) else None
    return Amplification(
        position.acceptance,
        total_variation(_independent(p, length), text),
        None if matched is None else total_variation(_independent(matched, length), text),
    )


def _independent(law: Array, length: int) -> Array:
    """The joint law (V^length,) of independent tokens."""
    joint = law
    for _ in range(length - 1):
        joint = _flat(joint[:, None] * law[None, :])
    return joint


def _flat(law: Array) -> Array:
    return array_namespace(law).reshape(law, (-1,))
