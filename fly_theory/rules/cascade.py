"""Speculative cascades: choose a law pi per position, then sample it exactly.

Narasimhan et al. 2025 (arXiv 2405.19261) and their released notebook. A larger alpha means more drafting. All accept
with min(1, pi/q) and redraw from (pi - q)+, which accepts at least what the bare accept-set rule with that law does.
"""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets, divergence
from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.claims import Claim, FixedPoint, Induces, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.accept_set import AllowedSetRule, splice
from fly_theory.rules.base import Rule, Verdict


class _Cascade(Rule):
    alpha: Number

    def verdict(self, p: Array, q: Array) -> Verdict:
        law = self._law(p, q)
        return Verdict(accepted=array_namespace(p, q).minimum(q, law), residual=positive_part(law - q))

    def _law(self, p: Array, q: Array) -> Array:
        raise NotImplementedError


class _SequenceCascade(_Cascade):
    """pi = q where the draft is trusted, else p."""

    strict_alpha: ClassVar[int] = -1

    def _law(self, p: Array, q: Array) -> Array:
        return array_namespace(p, q).where(self._trusted(p, q)[..., None], q, p)

    def _trusted(self, p: Array, q: Array) -> Array:
        raise NotImplementedError

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("q where trusted, else p", self._law),
            OnTheLine(),
            FixedPoint(),
            ReducesTo("lossless", {"alpha": self.strict_alpha}),
            MonotoneIn("alpha", looser="larger"),
        )


class _TokenCascade(_Cascade):
    """pi = q on the set A, the rest of the mass from p."""

    def _law(self, p: Array, q: Array) -> Array:
        return splice(self._set(p, q), q, p)

    def _set(self, p: Array, q: Array) -> Array:
        raise NotImplementedError


def _tolerance(strict_at: Number | None) -> Number:
    return parameter(  # type: ignore[no-any-return]
        Interval(None, None), "tolerance; larger means more drafting", strict_at=strict_at, typical=(0, 0.25, 0.75)
    )


@dataclass(frozen=True, kw_only=True)
class CascadeChow(_SequenceCascade):
    """Trust the draft where it is confident.

    Statement
    ---------
    pi = q if max q >= 1 - alpha else p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi, on the TV line; the target is never looked at where the draft is confident. Strict for alpha < 0.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eq. 2.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cascade-chow:alpha=0.6").induced(p, q).tolist()
    [0.2, 0.1, 0.3, 0.4]
    """

    name: ClassVar[str] = "cascade-chow"
    alpha: Number = _tolerance(-1)

    def _trusted(self, p: Array, q: Array) -> Array:
        return array_namespace(q).max(q, axis=-1) + 0 * p[..., 0] >= 1 - scalar(self.alpha, p)


@dataclass(frozen=True, kw_only=True)
class CascadeDiff(_SequenceCascade):
    """Trust the draft where it is nearly as confident as the target.

    Statement
    ---------
    pi = q if max q >= max p - alpha else p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi, on the TV line. Strict for alpha <= -1.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eq. 5.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cascade-diff:alpha=0.2").induced(p, q).tolist()
    [0.2, 0.1, 0.3, 0.4]
    """

    name: ClassVar[str] = "cascade-diff"
    alpha: Number = _tolerance(-1)

    def _trusted(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        return xp.max(q, axis=-1) >= xp.max(p, axis=-1) - scalar(self.alpha, p)


@dataclass(frozen=True, kw_only=True)
class CascadeOpt(_SequenceCascade):
    """Trust the draft where its loss of confidence is small against the distance of the two laws.

    Statement
    ---------
    pi = q if max q >= max p - alpha TV(p, q) else p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi, on the TV line. Strict for alpha <= -2.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eq. 10.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cascade-opt:alpha=0.25").induced(p, q).tolist()
    [0.2, 0.1, 0.3, 0.4]
    """

    name: ClassVar[str] = "cascade-opt"
    strict_alpha: ClassVar[int] = -2
    alpha: Number = _tolerance(-2)

    def _trusted(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p, q)
        slack = scalar(self.alpha, p) * divergence.total_variation(p, q)
        return xp.max(q, axis=-1) >= xp.max(p, axis=-1) - slack


@dataclass(frozen=True, kw_only=True)
class CascadeTokenV1(_TokenCascade):
    """Keep the draft on the tokens where the draft is nearly as confident as the target's best.

    Statement
    ---------
    A = {q >= max p - alpha},  pi = q 1_A + (1 - q(A)) p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi; TV(pi, p) = q(A) TV(q_A, p). Strict for alpha <= -1.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eqs. 12-15, V1.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cascade-token-v1:alpha=0.2").induced(p, q).round(12).tolist()
    [0.15, 0.09, 0.345, 0.415]
    """

    name: ClassVar[str] = "cascade-token-v1"
    alpha: Number = _tolerance(-1)

    def _set(self, p: Array, q: Array) -> Array:
        return q >= array_namespace(p).max(p, axis=-1, keepdims=True) - scalar(self.alpha, p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("q 1_A + (1 - q(A)) p", self._law), ReducesTo("lossless", {"alpha": -1}))


@dataclass(frozen=True, kw_only=True)
class CascadeTokenV2(_TokenCascade):
    """Keep the draft on the tokens within alpha of the target's best.

    Statement
    ---------
    A = {p >= max p - alpha},  pi = q 1_A + (1 - q(A)) p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi; TV(pi, p) = q(A) TV(q_A, p). Strict for alpha < 0.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eqs. 12-15, V2.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("cascade-token-v2:alpha=0.25").induced(p, q).round(12).tolist()
    [0.55, 0.31, 0.105, 0.035]
    """

    name: ClassVar[str] = "cascade-token-v2"
    alpha: Number = _tolerance(-1)

    def _set(self, p: Array, q: Array) -> Array:
        return p >= array_namespace(p).max(p, axis=-1, keepdims=True) - scalar(self.alpha, p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("q 1_A + (1 - q(A)) p", self._law), ReducesTo("lossless", {"alpha": -1}))


@dataclass(frozen=True, kw_only=True)
class CascadeTokenV3(_TokenCascade, AllowedSetRule):
    """Keep the draft on the min-p set of the target, with base 1 - alpha.

    Statement
    ---------
    A = {p >= (1 - alpha) max p},  pi = q 1_A + (1 - q(A)) p,  m = min(q, pi),  residual = (pi - q)+

    Guarantee
    ---------
    out = pi, the law of `min-p` with base 1 - alpha, at a higher acceptance. Never strict: alpha = 0 keeps the argmax.

    Reference
    ---------
    Narasimhan et al. 2025 (arXiv 2405.19261), eqs. 12-15, V3 ("SpecCascade" of the lossy-verification literature).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.4, 0.1], [0.6, 0.3, 0.1]
    >>> ft.rule("cascade-token-v3:alpha=0.25").induced(p, q).round(12).tolist()
    [0.65, 0.34, 0.01]
    """

    name: ClassVar[str] = "cascade-token-v3"
    alpha: Number = parameter(Interval(0, 1), "tolerance; the set is min-p with base 1 - alpha", typical=(0, 0.5, 0.9))

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.min_p(p, 1 - self.exact("alpha"))

    def _set(self, p: Array, q: Array) -> Array:
        return self.allowed_set(p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("q 1_A + (1 - q(A)) p", self._law),)
