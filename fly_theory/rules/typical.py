"""Typical acceptance, with its two redraws."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number, array_namespace, one_hot
from fly_theory.claims import Claim, Induces
from fly_theory.parameters import Flag, Interval, parameter
from fly_theory.rules.accept_set import AcceptSetRule, splice
from fly_theory.rules.base import Verdict


@dataclass(frozen=True, kw_only=True)
class Typical(AcceptSetRule):
    """Accept every token with p >= min(eps, delta exp(-H)), redraw from the target.

    Statement
    ---------
    A = {p >= min(eps, delta e^-H)},  m = q 1_A,  residual = p

    Guarantee
    ---------
    out = q 1_A + (1 - q(A)) p and TV(out, p) = q(A) TV(q_A, p). Not the fixed point at p = q.

    Reference
    ---------
    Medusa, Cai et al. 2024 (arXiv 2401.10774), section 2.3.2; H is the entropy of p in nats. The released code compares
    strictly (`keep_ties=false`), adds 1e-5 inside the logarithm, and takes the longest accepted path of a tree.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("typical:eps=0.09,delta=0.3").induced(p, q).round(12).tolist()
    [0.4, 0.22, 0.36, 0.02]
    """

    name: ClassVar[str] = "typical"
    eps: Number = parameter(Interval(0, 1, low_open=True), "absolute threshold", default=0.09, typical=(0.09, 0.3))
    delta: Number = parameter(
        Interval(0, None, low_open=True), "factor of exp(-H) in the threshold", default=0.3, typical=(0.3, 0.6)
    )
    keep_ties: bool = parameter(Flag(), "whether a token exactly at the threshold is allowed", default=True)

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.relative_to_entropy(p, self.eps, self.delta, keep_ties=self.keep_ties)


@dataclass(frozen=True, kw_only=True)
class TypicalArgmax(Typical):
    """Typical acceptance that replaces a rejected token by the target's argmax.

    Statement
    ---------
    A = {p >= min(eps, delta e^-H)},  m = q 1_A,  residual = one-hot at argmax p (lowest id among equals)

    Guarantee
    ---------
    out = q 1_A + (1 - q(A)) e_argmax; nothing about the target's tail survives a rejection.

    Reference
    ---------
    Released code of Medusa (arXiv 2401.10774), fast mode: the next root token is the target's argmax.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("typical-argmax:eps=0.09,delta=0.3").induced(p, q).round(12).tolist()
    [0.6, 0.1, 0.3, 0.0]
    """

    name: ClassVar[str] = "typical-argmax"

    def verdict(self, p: Array, q: Array) -> Verdict:
        return Verdict(accepted=super().verdict(p, q).accepted, residual=self._argmax(p))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("q 1_A + (1 - q(A)) e_argmax", self._law),)

    def _argmax(self, p: Array) -> Array:
        return one_hot(array_namespace(p).argmax(p, axis=-1), p)

    def _law(self, p: Array, q: Array) -> Array:
        return splice(self.allowed_set(p), q, self._argmax(p))
