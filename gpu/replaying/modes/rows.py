"""What detectors read: the rows of one block, and what they share."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from fly_theory import divergence
from fly_theory.arrays import Array, array_namespace
from fly_theory.claims import Ceiling, Lossless
from fly_theory.entropies import entropy
from fly_theory.rules.base import Rule
from gpu.replaying.modes.mode import ROUNDING

__all__ = ["UNCLAIMED_CEILING", "PairRows", "RuleRows", "claimed_ceiling"]

# c for a rule that claims no ceiling.
UNCLAIMED_CEILING = 2


class PairRows(NamedTuple):
    """The pair on one block, computed once for all rules.

    Attributes
    ----------
    p, q
        Target and draft (K, V).
    tokens
        Draft tokens (K,).
    tv
        TV(p, q) (K,).
    entropy
        Entropy of p (K,), in nats.
    highest
        The probability of the most probable token of p (K,).
    classes
        Masks (V,) of the token classes that are known; see `TokenClasses`.
    logits
        The target's logits (K, V) as stored; None for who has none.
    """

    p: Array
    q: Array
    tokens: Array
    tv: Array
    entropy: Array
    highest: Array
    classes: Mapping[str, Array]
    logits: Array | None = None

    @classmethod
    def of(
        cls, p: Array, q: Array, tokens: Array, *, classes: Mapping[str, Array], logits: Array | None = None
    ) -> Self:
        """From target p and draft q (K, V), rows known to be valid."""
        xp = array_namespace(p, q)
        return cls(
            p=p,
            q=q,
            tokens=tokens,
            tv=divergence.total_variation(p, q),
            entropy=entropy(p),
            highest=xp.max(p, axis=-1),
            classes=classes,
            logits=logits,
        )


class RuleRows(NamedTuple):
    """A token-level rule on one block.

    Attributes
    ----------
    pair
        What it judges.
    out
        Its output (K, V); where `stuck`, only what it accepts.
    tv
        TV(p, out) (K,).
    highest
        The probability of the most probable token of the output (K,).
    flipped
        Where no most probable token of the output is one of the target (K,).
    rejected
        Probability of a rejection (K,).
    stuck
        Where it rejects and has nothing to redraw from, so that its output falls short of mass (K,).
    ceiling
        c (K,) or a number, such that out <= c p is claimed or, failing that, expected.
    claimed
        Whether the rule claims that ceiling.
    """

    pair: PairRows
    out: Array
    tv: Array
    highest: Array
    flipped: Array
    rejected: Array
    stuck: Array
    ceiling: Array | float
    claimed: bool

    @classmethod
    def of(cls, rule: Rule, pair: PairRows, accepted: Array, out: Array) -> Self:
        """From the accepted mass and the output (K, V) of a rule on a pair."""
        xp, claim = array_namespace(out), claimed_ceiling(rule)
        highest = xp.max(out, axis=-1)
        on_top = xp.where(pair.p == pair.highest[..., None], out, xp.zeros_like(out))
        rejected = xp.sum(pair.q - accepted, axis=-1)
        redrawn = xp.sum(out - accepted, axis=-1)
        factor = UNCLAIMED_CEILING if claim is None else claim.factor
        return cls(
            pair=pair,
            out=out,
            tv=divergence.total_variation(pair.p, out),
            highest=highest,
            flipped=xp.max(on_top, axis=-1) < highest,
            rejected=rejected,
            stuck=(rejected > ROUNDING) & (redrawn < rejected / 2),
            ceiling=factor(pair.p, pair.q) if callable(factor) else float(factor),
            claimed=claim is not None,
        )


def claimed_ceiling(rule: Rule) -> Ceiling | None:
    """The ceiling that a rule claims for out/p: 1 if it is lossless."""
    for claim in rule.claims:
        if isinstance(claim, Lossless):
            return Ceiling(1)
        if isinstance(claim, Ceiling):
            return claim
    return None
