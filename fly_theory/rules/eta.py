"""Eta acceptance."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.accept_set import AcceptSetRule


def eta_parameter() -> Number:
    """The eta threshold, shared by every rule that has one."""
    return parameter(  # type: ignore[no-any-return]
        Interval(0, 1, low_open=True),
        "tokens with p >= min(eps, sqrt(eps) exp(-H)) are allowed",
        typical=(0.01, 0.1, 0.3),
    )


@dataclass(frozen=True, kw_only=True)
class Eta(AcceptSetRule):
    """Accept every token with p >= min(eps, sqrt(eps) exp(-H)), redraw from the target.

    Statement
    ---------
    A = {p >= min(eps, sqrt(eps) e^-H)},  m = q 1_A,  residual = p

    Guarantee
    ---------
    out = q 1_A + (1 - q(A)) p and TV(out, p) = q(A) TV(q_A, p). Not the fixed point at p = q.

    Reference
    ---------
    Set: Hewitt, Manning & Liang 2022 (arXiv 2210.15191) as in the released code of transformers, H in nats (whose
    docstring writes sqrt(eps e^-H) instead). Use as a verifier: released code of Fast-HSD (eta_spd).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("eta:eps=0.09").induced(p, q).round(12).tolist()
    [0.4, 0.22, 0.36, 0.02]
    """

    name: ClassVar[str] = "eta"
    eps: Number = eta_parameter()

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.eta(p, self.eps)
