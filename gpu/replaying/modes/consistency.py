"""Whether draft tokens look drawn from the stored q: their surprise against what q expects of it."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from fly_theory.arrays import Array, array_namespace, take
from fly_theory.entropies import entropy
from gpu.replaying.tally import Tally, Total

__all__ = ["Consistency", "surprise"]

_SURPRISE, _EXPECTED, _VARIANCE = "draft_surprise", "draft_entropy", "draft_varentropy"


def surprise(q: Array, tokens: Array) -> dict[str, Array]:
    """-log q(x) of the draft tokens x (K,) under q (K, V), its mean and its variance for x from q; (K,) each, nats."""
    xp = array_namespace(q)
    drafted, expected = take(q, tokens), entropy(q)
    possible = drafted > 0
    squares = xp.sum(q * xp.log(xp.where(q > 0, q, xp.ones_like(q))) ** 2, axis=-1)
    return {
        _SURPRISE: xp.where(possible, -xp.log(xp.where(possible, drafted, xp.ones_like(drafted))), math.inf),
        _EXPECTED: expected,
        _VARIANCE: xp.clip(squares - expected**2, min=0),
    }


@dataclass(frozen=True)
class Consistency:
    """The surprise of all draft tokens together against its law.

    Given the tokens before it, the surprise of a draft from q has the entropy of q for mean, so that the deviations
    are martingale differences and their sum, over its standard deviation, is about standard normal.

    Attributes
    ----------
    z
        Sum of -log q(x) minus its mean, over its standard deviation. Positive: drafts are less likely under q than
        drafts from q are; negative: more likely. Infinite when a draft is impossible, or is not certain where q is.
    p_value
        Two-sided, of that z.
    """

    z: float
    p_value: float

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """From the tally of the pair."""
        surprise, expected, variance = (_total(tally, name) for name in (_SURPRISE, _EXPECTED, _VARIANCE))
        excess = math.inf if surprise.infinite else float(surprise.sum - expected.sum)
        spread = math.sqrt(variance.sum)
        z = excess / spread if spread else (math.copysign(math.inf, excess) if excess else 0.0)
        return cls(z, math.erfc(abs(z) / math.sqrt(2)))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def _total(tally: Tally, name: str) -> Total:
    whole = Total()
    for totals in tally.prompts.values():
        whole.merge(totals[name])
    return whole
