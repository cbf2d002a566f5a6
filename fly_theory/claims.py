"""What a rule promises, as data. `fly_theory.invariants` holds rules to their claims; proofs cite them.

Bounds that depend on the distributions are functions of (p, q): target and draft, (..., V) each, returning (...,)
or a number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fly_theory.arrays import Array, Number

Bound = Callable[[Array, Array], Any]


@dataclass(frozen=True)
class Claim:
    """Base of all claims."""

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Lossless(Claim):
    """out = p for every p and q."""

    def __str__(self) -> str:
        return "lossless"


@dataclass(frozen=True)
class Induces(Claim):
    """out = law(p, q), written `formula`; a rule that is lossless for a truncated target claims that target here."""

    formula: str
    law: Bound = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"out = {self.formula}"


@dataclass(frozen=True)
class Ceiling(Claim):
    """out(x) <= factor * p(x) for every token x; the factor is a number, or a function of (p, q) written `formula`."""

    factor: Number | Bound
    formula: str = ""

    def __str__(self) -> str:
        return f"ceiling {self.formula or self.factor}"


@dataclass(frozen=True)
class AcceptsMost(Claim):
    """Of all rules with out <= factor * p, none accepts more: the acceptance is sum min(q, factor * p)."""

    factor: Number
    formula: str = ""

    def __str__(self) -> str:
        return f"accepts most under {self.formula or self.factor} p"


@dataclass(frozen=True)
class OnTheLine(Claim):
    """TV(out, p) = TV(p, q) - P_rej: no rule with this rejection probability is closer to the target."""

    def __str__(self) -> str:
        return "on the TV line"


@dataclass(frozen=True)
class SupportWithin(Claim):
    """out(x) > 0 only where allowed(p, q) is True."""

    what: str
    allowed: Bound = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"support within {self.what}"


@dataclass(frozen=True)
class DivergenceBound(Claim):
    """divergence(p, out) <= limit, `divergence` being a name in `fly_theory.divergence`."""

    divergence: str
    limit: Number | Bound
    formula: str

    def __str__(self) -> str:
        return f"{self.divergence}(p, out) <= {self.formula}"


@dataclass(frozen=True)
class ReducesTo(Claim):
    """With the parameters set to `at`, the rule induces what the named rule induces, with the same acceptance."""

    rule: str
    at: Mapping[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.rule} at {', '.join(f'{k}={v}' for k, v in self.at.items()) or 'every setting'}"


@dataclass(frozen=True)
class MonotoneIn(Claim):
    """Moving `parameter` in its looser direction never lowers acceptance and never lowers TV(out, p)."""

    parameter: str
    looser: Literal["smaller", "larger"]

    def __str__(self) -> str:
        return f"acceptance and TV grow as {self.parameter} gets {self.looser}"


@dataclass(frozen=True)
class FixedPoint(Claim):
    """p = q means that every draft token is accepted and out = p."""

    def __str__(self) -> str:
        return "accepts everything at p = q"
