"""What a claim says, written once for every interpreter: symbols to prove it, rationals to refute it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fly_theory as ft
from fly_theory.arrays import Array, array_namespace
from fly_theory.claims import (
    AcceptsMost,
    Ceiling,
    Claim,
    FixedPoint,
    Induces,
    Lossless,
    MonotoneIn,
    OnTheLine,
    ReducesTo,
    SupportWithin,
)
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import InvalidInput
from fly_theory.parameters import parameters

__all__ = ["Says", "altered", "statements"]


@dataclass(frozen=True)
class Says(Claim):
    """A claim that no rule declares: `holds(rule, p, q)` everywhere, written `formula`."""

    formula: str
    holds: Callable[[Any, Array, Array], Array]

    def __str__(self) -> str:
        return self.formula


def statements(claim: Claim, rule: Any, p: Array, q: Array, *, looser: Any = None) -> list[Array]:
    """The truth values (...,) or (..., V) that are all true when `rule` keeps `claim` at target p and draft q, (...,
    V).

    `looser` is the same rule with the parameter of a `MonotoneIn` claim moved in its looser direction.

    Raises
    ------
    InvalidInput
        For a kind of claim that is not about sums and products, such as a bound on a KL divergence.
    """
    with trusted_inputs():
        if isinstance(claim, Says):
            return [claim.holds(rule, p, q)]
        if isinstance(claim, Lossless):
            return [rule.induced(p, q) == p]
        if isinstance(claim, Induces):
            return [rule.induced(p, q) == claim.law(p, q)]
        if isinstance(claim, Ceiling):
            return [rule.induced(p, q) <= _factor(claim, p, q) * p]
        if isinstance(claim, AcceptsMost):
            xp = array_namespace(p, q)
            return [rule.acceptance(p, q) == xp.sum(xp.minimum(q, claim.factor * p), axis=-1)]
        if isinstance(claim, SupportWithin):
            return [claim.allowed(p, q) | (rule.induced(p, q) <= 0)]
        if isinstance(claim, OnTheLine):
            return [_distance(rule, p, q) == ft.divergence.total_variation(p, q) - (1 - rule.acceptance(p, q))]
        if isinstance(claim, FixedPoint):
            return [rule.acceptance(p, p) == 1, rule.induced(p, p) == p]
        if isinstance(claim, ReducesTo):
            there, simpler = altered(rule, **claim.at), ft.rule(claim.rule)
            return [
                there.induced(p, q) == simpler.induced(p, q),
                there.acceptance(p, q) == simpler.acceptance(p, q),
            ]
        if isinstance(claim, MonotoneIn):
            return [
                looser.acceptance(p, q) >= rule.acceptance(p, q),
                _distance(looser, p, q) >= _distance(rule, p, q),
            ]
    msg = (
        f"the claim {str(claim)!r} cannot be stated in sums and products; leave it to the search of `fly-theory check`"
    )
    raise InvalidInput(msg)


def altered(rule: Any, **settings: Any) -> Any:
    """The same rule with other settings, which may be symbols."""
    changed = copy.copy(rule)
    declared = {p.name for p in parameters(type(rule))}
    for name, value in settings.items():
        if name not in declared:
            msg = f"{type(rule).__name__} has no parameter {name!r}; it has {', '.join(sorted(declared)) or 'none'}"
            raise InvalidInput(msg)
        object.__setattr__(changed, name, value)
    return changed


def _distance(rule: Any, p: Array, q: Array) -> Array:
    return ft.divergence.total_variation(p, rule.induced(p, q))


def _factor(claim: Ceiling, p: Array, q: Array) -> Any:
    if not callable(claim.factor):
        return claim.factor
    factor = claim.factor(p, q)
    return factor[..., None] if getattr(factor, "ndim", 0) else factor
