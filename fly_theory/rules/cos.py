"""Collaborative verification (CoS): the weighted ensemble and the contrastive combination."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, normalise, positive_part, scalar
from fly_theory.claims import Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict


@dataclass(frozen=True, kw_only=True)
class Cos(Rule):
    """Sample the mixture w q + (1 - w) p exactly; w is the weight of the DRAFT.

    Statement
    ---------
    r = w q + (1 - w) p,  m = min(q, r),  residual = (p - q)+

    Guarantee
    ---------
    out = r; TV(out, p) = w TV(p, q), on the TV line; out/p is unbounded where q/p is.

    Reference
    ---------
    Fu et al. 2025 (arXiv 2502.01662), weighted ensemble. Conventions differ: here, in CoS itself and in the patched
    code of Fast-HSD the weight is the draft's; one core module of Fast-HSD gives it to the target.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cos:w=0.5").induced(p, q).round(12).tolist()
    [0.35, 0.2, 0.225, 0.225]
    """

    name: ClassVar[str] = "cos"
    w: Number = parameter(Interval(0, 1), "weight of the draft in the mixture", strict_at=0, typical=(0, 0.25, 0.5, 1))

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=array_namespace(p, q).minimum(q, self._mixture(p, q)), residual=positive_part(p - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("w q + (1 - w) p", self._mixture),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"w": 0}),
            MonotoneIn("w", looser="larger"),
        )

    def _mixture(self, p: Array, q: Array) -> Array:
        w = scalar(self.w, p)
        return w * q + (1 - w) * p


@dataclass(frozen=True, kw_only=True)
class CosContrastive(Rule):
    """Sample the contrastive law proportional to p / q^mu exactly.

    Statement
    ---------
    r = norm(p q^-mu),  m = min(q, r),  residual = (r - q)+

    Guarantee
    ---------
    out = r, which moves away from the draft: it raises rejections and the distance from the target together. Where a
    token has p > 0 and q = 0 (and mu > 0) r is its limit: p restricted to those tokens. Not the fixed point at p = q.

    Reference
    ---------
    Fu et al. 2025 (arXiv 2502.01662), contrastive decoding, r = softmax(target logits - mu * draft logits).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cos-contrastive:mu=0").induced(p, q).round(12).tolist()
    [0.5, 0.3, 0.15, 0.05]
    """

    name: ClassVar[str] = "cos-contrastive"
    unreadable_by: ClassVar = {Interpreter.EXACT: "a fractional power of q is irrational"}
    mu: Number = parameter(
        Interval(0, None), "exponent of the draft in the denominator", default=0.1, strict_at=0, typical=(0, 0.1, 1)
    )

    def verdict(self, p: Array, q: Array) -> Verdict:
        law = self._law(p, q)
        return Verdict(accepted=array_namespace(p, q).minimum(q, law), residual=positive_part(law - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("norm(p q^-mu)", self._law), ReducesTo("lossless", {"mu": 0}))

    @property
    def unreadable(self) -> Mapping[Interpreter, str]:
        return {} if self.exact("mu").denominator == 1 else self.unreadable_by

    def _law(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        if self.mu == 0:
            return p + xp.zeros_like(q)
        one, zero = xp.ones_like(q), xp.zeros_like(q)
        possible = (p > 0) & (q > 0)
        smallest = xp.min(xp.where(possible, q, one), axis=-1, keepdims=True)
        ratio = xp.where(possible, smallest / xp.where(q > 0, q, one), zero)
        shared = p * ratio ** scalar(self.mu, p)
        only_target = xp.where((p > 0) & (q == 0), p + zero, zero)
        return normalise(xp.where(xp.any(only_target > 0, axis=-1, keepdims=True), only_target, shared))
