"""Claims as they are written on the command line: `lossless`, `ceiling:2`, `kl:0.1`."""

from collections.abc import Callable
from fractions import Fraction

from fly_theory.claims import (
    AcceptsMost,
    Ceiling,
    Claim,
    DivergenceBound,
    FixedPoint,
    Lossless,
    OnTheLine,
    SupportWithin,
)
from fly_theory.divergence import DIVERGENCES
from fly_theory.errors import InvalidInput, ParameterError, unknown_name

__all__ = ["TARGET_SUPPORT", "claim_from_text"]

TARGET_SUPPORT = SupportWithin("the target's support", lambda p, q: p > 0)

_WITHOUT_NUMBER: dict[str, Claim] = {
    "lossless": Lossless(),
    "on-the-line": OnTheLine(),
    "fixed-point": FixedPoint(),
    "support": TARGET_SUPPORT,
}
_WITH_NUMBER: dict[str, Callable[[Fraction, str], Claim]] = {
    "ceiling": Ceiling,
    "accepts-most": AcceptsMost,
    **{name: lambda limit, text, name=name: DivergenceBound(name, limit, text) for name in DIVERGENCES},  # type: ignore[misc]
}


def claim_from_text(text: str) -> Claim:
    """The claim that a text names.

    `lossless`; `on-the-line`; `fixed-point`; `support` (no token without target mass); `ceiling:C` (out <= C p);
    `accepts-most:C` (no rule under that ceiling accepts more); and `NAME:LIMIT` for every divergence of
    `fly_theory.divergence`, e.g. `total_variation:1/10` or `kl:0.1` in nats.

    Raises
    ------
    UnknownName
        For a name that is none of these.
    InvalidInput
        For a number that is missing, not wanted, unreadable or negative.
    """
    name, colon, written = text.partition(":")
    if name in _WITHOUT_NUMBER:
        if colon:
            msg = f"claim {text!r}: {name!r} takes no number"
            raise InvalidInput(msg)
        return _WITHOUT_NUMBER[name]
    if name not in _WITH_NUMBER:
        raise unknown_name(kind="claim", name=name, known={**_WITHOUT_NUMBER, **_WITH_NUMBER})
    try:
        number = Fraction(written)
    except (ValueError, ZeroDivisionError) as error:
        msg = f"claim {text!r}: {written!r} is no number; write {name}:2 or {name}:3/2"
        raise InvalidInput(msg) from error
    if number < 0:
        msg = f"claim {text!r}: the number must not be negative"
        raise ParameterError(msg)
    return _WITH_NUMBER[name](number, written)
