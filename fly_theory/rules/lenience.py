"""Lenience and the two other readings of its residual."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import AcceptsMost, Ceiling, Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict


def lenience_parameter() -> Number:
    """The lenience l, shared by every rule that has one."""
    return parameter(  # type: ignore[no-any-return]
        Interval(0, 1, low_open=True),
        "lenience: q is multiplied by l before the comparison",
        strict_at=1,
        typical=(0.25, 0.5, 1),
    )


def lenient_mass(p: Array, q: Array, l: Number) -> Array:
    """min(q, p/l): the mass of q (..., V) that a target p (..., V) raised by 1/l covers."""
    return array_namespace(p, q).minimum(q, p / scalar(l, p))


@dataclass(frozen=True, kw_only=True)
class Lenience(Rule):
    """Accept with probability min(1, p/(l q)), redraw from the positive part of p - q.

    Statement
    ---------
    m = min(q, p/l),  residual = (p - q)+

    Guarantee
    ---------
    out <= p/l, and no rule under this ceiling accepts more. out >= min(p, q) only: a target token that the draft never
    proposes can lose almost all its mass as l goes to 0. On the TV line.

    Reference
    ---------
    Leviathan, Kalman & Matias 2023 (arXiv 2211.17192), appendix A.5, with l = 1 strict. The appendix does not spell out
    the residual; this one is in every implementation read. The speculative-cascades notebook writes 1 - l for l.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("lenience:l=0.5").induced(p, q).round(12).tolist()
    [0.38, 0.22, 0.3, 0.1]
    """

    name: ClassVar[str] = "lenience"
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=lenient_mass(p, q, self.l), residual=positive_part(p - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Ceiling(1 / self.exact("l"), "1/l"),
            AcceptsMost(1 / self.exact("l"), "1/l"),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"l": 1}),
            MonotoneIn("l", looser="smaller"),
        )


@dataclass(frozen=True, kw_only=True)
class LenienceSubstituted(Rule):
    """Lenience whose residual uses l q in place of q.

    Statement
    ---------
    m = min(q, p/l),  residual = (p - l q)+

    Guarantee
    ---------
    out = D p/l + (1 - D) m with D = P_rej/(P_rej + 1/l - 1), so out <= p/l. Not on the TV line: tokens with
    l q < p < q are redrawn although they already have too much mass.

    Reference
    ---------
    The literal substitution of l q for q in all of Leviathan et al. 2023 (arXiv 2211.17192), appendix A.5.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("lenience-substituted:l=0.5").induced(p, q).round(6).tolist()
    [0.384615, 0.215385, 0.3, 0.1]
    """

    name: ClassVar[str] = "lenience-substituted"
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=lenient_mass(p, q, self.l), residual=positive_part(p - scalar(self.l, p) * q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("D p/l + (1 - D) m, D = P_rej/(P_rej + 1/l - 1)", self._law),
            Ceiling(1 / self.exact("l"), "1/l"),
            FixedPoint(),
            ReducesTo("lossless", {"l": 1}),
        )

    def _law(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        l = scalar(self.l, p)
        kept = lenient_mass(p, q, self.l)
        rejected = xp.sum(q - kept, axis=-1, keepdims=True)
        lacking = rejected + (1 / l - 1)
        weight = rejected / xp.where(lacking > 0, lacking, xp.ones_like(lacking))
        return weight * (p / l) + (1 - weight) * kept


@dataclass(frozen=True, kw_only=True)
class LenienceResample(Rule):
    """Lenience that redraws from the target itself.

    Statement
    ---------
    m = min(q, p/l),  residual = p

    Guarantee
    ---------
    Only that p = q changes nothing: it breaks the ceiling p/l and is not lossless even at l = 1.

    Reference
    ---------
    A frequent slip in public code: the redraw after a rejection ignores what the draft already covered.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("lenience-resample:l=0.5").induced(p, q).round(12).tolist()
    [0.35, 0.19, 0.345, 0.115]
    """

    name: ClassVar[str] = "lenience-resample"
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=lenient_mass(p, q, self.l), residual=p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (FixedPoint(),)
