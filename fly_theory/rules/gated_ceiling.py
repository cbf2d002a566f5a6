"""The gated ceiling, and the other ways of combining an allowed set with lenience's ceiling.

All keep a mass y <= q, redraw from (p - y)+, and use A = {p >= base max p}. They are ablations in the released code of
Fast-HSD (with base = 1/2), named here after what they keep on and off the set. Since the residual has at least the
rejected mass, out <= max(y, p) for each of them, whatever y is.
"""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number, array_namespace, constant, positive_part, scalar
from fly_theory.claims import AcceptsMost, Ceiling, Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.divergence import total_variation
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict
from fly_theory.rules.lenience import lenience_parameter, lenient_mass


@dataclass(frozen=True, kw_only=True)
class _OnAndOffTheSet(Rule):
    base: Number = parameter(
        Interval(0, 1, low_open=True), "the set is p >= base * max p", default=0.5, typical=(0.1, 0.5, 1)
    )
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        kept = self._kept(p, q)
        return Verdict(accepted=kept, residual=positive_part(p - kept))

    def _kept(self, p: Array, q: Array) -> Array:
        on_set = allowed_sets.min_p(p, self.base)
        return array_namespace(p, q).where(on_set, self._on_set(p, q), self._off_set(p, q))

    def _on_set(self, p: Array, q: Array) -> Array:
        return q

    def _off_set(self, p: Array, q: Array) -> Array:
        raise NotImplementedError

    def _gated_factor(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        return xp.maximum(constant(1 / self.exact("l"), p), 1 / (scalar(self.base, p) * xp.max(p, axis=-1)))

    def _gated_ceiling(self) -> Ceiling:
        return Ceiling(self._gated_factor, "max(1/l, 1/(base max p))")


@dataclass(frozen=True, kw_only=True)
class GatedCeiling(_OnAndOffTheSet):
    """Keep the whole draft on the allowed set and lenience's share off it.

    Statement
    ---------
    A = {p >= base max p},  m = q on A, min(q, p/l) off A,  residual = (p - m)+

    Guarantee
    ---------
    out = m where q > p, else D p + (1 - D) q with D = P_rej/TV(p, q); on the TV line; out/p <= max(1/l, 1/(base max
    p)).

    Reference
    ---------
    Released code of Fast-HSD, one of its ablations on lenience (base = 1/2): the useful combination.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("gated-ceiling:base=0.5,l=0.5").induced(p, q).round(12).tolist()
    [0.38, 0.22, 0.3, 0.1]
    """

    name: ClassVar[str] = "gated-ceiling"

    def _off_set(self, p: Array, q: Array) -> Array:
        return lenient_mass(p, q, self.l)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("m where q > p, else D p + (1 - D) q, D = P_rej/TV(p, q)", self._law),
            self._gated_ceiling(),
            OnTheLine(),
            FixedPoint(),
            MonotoneIn("l", looser="smaller"),
            MonotoneIn("base", looser="smaller"),
        )

    def _law(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        kept, distance = self._kept(p, q), total_variation(p, q)[..., None]
        rejected = xp.sum(q - kept, axis=-1, keepdims=True)
        weight = rejected / xp.where(distance > 0, distance, xp.ones_like(distance))
        return xp.where(q > p, kept, weight * p + (1 - weight) * q)


@dataclass(frozen=True, kw_only=True)
class CeilingOnSet(_OnAndOffTheSet):
    """Keep lenience's share on the allowed set and the whole draft off it.

    Statement
    ---------
    A = {p >= base max p},  m = min(q, p/l) on A, q off A,  residual = (p - m)+

    Guarantee
    ---------
    On the TV line; no bound on out/p, since improbable tokens are kept unchecked.

    Reference
    ---------
    Released code of Fast-HSD, one of its ablations on lenience.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("ceiling-on-set:l=0.5").induced(p, q).round(12).tolist()
    [0.2, 0.1, 0.3, 0.4]
    """

    name: ClassVar[str] = "ceiling-on-set"

    def _on_set(self, p: Array, q: Array) -> Array:
        return lenient_mass(p, q, self.l)

    def _off_set(self, p: Array, q: Array) -> Array:
        return q

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            OnTheLine(),
            FixedPoint(),
            MonotoneIn("l", looser="smaller"),
            MonotoneIn("base", looser="larger"),
        )


@dataclass(frozen=True, kw_only=True)
class CeilingNoneOff(_OnAndOffTheSet):
    """Keep lenience's share on the allowed set and nothing off it.

    Statement
    ---------
    A = {p >= base max p},  m = min(q, p/l) on A, 0 off A,  residual = (p - m)+

    Guarantee
    ---------
    out <= p/l; off the TV line. Not the fixed point at p = q.

    Reference
    ---------
    Released code of Fast-HSD, one of its ablations on lenience.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("ceiling-none-off:l=0.5").induced(p, q).round(12).tolist()
    [0.5, 0.3, 0.15, 0.05]
    """

    name: ClassVar[str] = "ceiling-none-off"

    def _on_set(self, p: Array, q: Array) -> Array:
        return lenient_mass(p, q, self.l)

    def _off_set(self, p: Array, q: Array) -> Array:
        return array_namespace(p, q).zeros_like(q)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Ceiling(1 / self.exact("l"), "1/l"),)


@dataclass(frozen=True, kw_only=True)
class GatedExcess(_OnAndOffTheSet):
    """Keep the whole draft on the allowed set; off it only what lenience cuts down, and then all that it leaves.

    Statement
    ---------
    A = {p >= base max p},  m = q on A; off A p/l where q > p/l, else 0,  residual = (p - m)+

    Guarantee
    ---------
    out/p <= max(1/l, 1/(base max p)); off the TV line. Not the fixed point at p = q.

    Reference
    ---------
    Released code of Fast-HSD, one of its ablations on lenience.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("gated-excess:l=0.5").induced(p, q).round(6).tolist()
    [0.476923, 0.284615, 0.138462, 0.1]
    """

    name: ClassVar[str] = "gated-excess"

    def _off_set(self, p: Array, q: Array) -> Array:
        raised = p / scalar(self.l, p)
        xp = array_namespace(p, q)
        return xp.where(q > raised, raised, xp.zeros_like(raised))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (self._gated_ceiling(),)


@dataclass(frozen=True, kw_only=True)
class GatedCliff(_OnAndOffTheSet):
    """Keep the whole draft on the allowed set and where it is below the ceiling; reject it whole elsewhere.

    Statement
    ---------
    A = {p >= base max p},  m = q on A or where q < p/l, else 0,  residual = (p - m)+

    Guarantee
    ---------
    out/p <= max(1/l, 1/(base max p)); off the TV line. Not the fixed point at p = q (for l = 1).

    Reference
    ---------
    Released code of Fast-HSD, one of its ablations on lenience.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("gated-cliff:l=0.5").induced(p, q).round(6).tolist()
    [0.5, 0.3, 0.15, 0.05]
    """

    name: ClassVar[str] = "gated-cliff"

    def _off_set(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        return xp.where(q < p / scalar(self.l, p), q, xp.zeros_like(q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (self._gated_ceiling(),)


@dataclass(frozen=True, kw_only=True)
class CeilingEverywhere(Rule):
    """The ceiling on every token: lenience again, residual included.

    Statement
    ---------
    m = min(q, p/l),  residual = (p - m)+, which equals (p - q)+

    Guarantee
    ---------
    Algebraically identical to `lenience`.

    Reference
    ---------
    Released code of Fast-HSD; the "overshoot ceiling" row of the lossy-verification paper's Table 1.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("ceiling-everywhere:l=0.5").induced(p, q).round(12).tolist()
    [0.38, 0.22, 0.3, 0.1]
    """

    name: ClassVar[str] = "ceiling-everywhere"
    l: Number = lenience_parameter()

    def verdict(self, p: Array, q: Array) -> Verdict:
        kept = lenient_mass(p, q, self.l)
        return Verdict(accepted=kept, residual=positive_part(p - kept))

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
