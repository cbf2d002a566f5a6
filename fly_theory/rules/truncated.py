"""Lossless verification of a truncated target: the matched baselines of the accept-set rules."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array, Number
from fly_theory.rules.accept_set import TruncatedTargetRule
from fly_theory.rules.eta import eta_parameter
from fly_theory.rules.min_p import base_parameter


@dataclass(frozen=True, kw_only=True)
class TruncatedMinP(TruncatedTargetRule):
    """Verify losslessly against the target truncated by min-p.

    Statement
    ---------
    A = {p >= base max p},  m = min(q, p_A),  residual = (p_A - q)+

    Guarantee
    ---------
    out = p_A, hence lossless for the truncated target; acceptance = 1 - TV(p_A, q).

    Reference
    ---------
    The matched baseline of the lossy-verification paper's comparison, applied to min-p (arXiv 2407.01082).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("truncated-min-p:base=0.5").induced(p, q).round(12).tolist()
    [0.625, 0.375, 0.0, 0.0]
    """

    name: ClassVar[str] = "truncated-min-p"
    base: Number = base_parameter()

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.min_p(p, self.base)


@dataclass(frozen=True, kw_only=True)
class TruncatedEta(TruncatedTargetRule):
    """Verify losslessly against the target truncated by eta.

    Statement
    ---------
    A = {p >= min(eps, sqrt(eps) e^-H)},  m = min(q, p_A),  residual = (p_A - q)+

    Guarantee
    ---------
    out = p_A, hence lossless for the truncated target; acceptance = 1 - TV(p_A, q).

    Reference
    ---------
    The matched baseline of the lossy-verification paper's comparison, applied to eta sampling (arXiv 2210.15191).

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("truncated-eta:eps=0.09").induced(p, q).round(6).tolist()
    [0.526316, 0.315789, 0.157895, 0.0]
    """

    name: ClassVar[str] = "truncated-eta"
    eps: Number = eta_parameter()

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.eta(p, self.eps)
