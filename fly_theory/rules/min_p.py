"""Min-p acceptance."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.accept_set import AcceptSetRule


def base_parameter() -> Number:
    """The min-p base, shared by every rule that has one."""
    return parameter(  # type: ignore[no-any-return]
        Interval(0, 1), "tokens with p >= base * max p are allowed", typical=(0.1, 0.5, 1)
    )


@dataclass(frozen=True, kw_only=True)
class MinP(AcceptSetRule):
    """Accept every token with p >= base * max p, redraw from the target.

    Statement
    ---------
    A = {p >= base max p},  m = q 1_A,  residual = p

    Guarantee
    ---------
    out = q 1_A + (1 - q(A)) p and TV(out, p) = q(A) TV(q_A, p), off the TV line whenever A misses a token that both
    models can produce. No bound on out/p beyond 1/(base max p) + 1 - q(A). Not the fixed point at p = q.

    Reference
    ---------
    Set: Nguyen et al. 2024 (arXiv 2407.01082). Use as a verifier with redraw from p: released code of Fast-HSD
    (min_p_spd). SpecCascade's token rule V3 has the same set with alpha = 1 - base, but samples its law exactly.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("min-p:base=0.5").induced(p, q).round(12).tolist()
    [0.55, 0.31, 0.105, 0.035]
    """

    name: ClassVar[str] = "min-p"
    base: Number = base_parameter()

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.min_p(p, self.base)
