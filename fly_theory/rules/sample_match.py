"""Sample and match."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, array_namespace, one_hot
from fly_theory.claims import Ceiling, Claim, Lossless
from fly_theory.parameters import Integers, parameter
from fly_theory.rules.base import Rule, Verdict, law_of_redrawing_other, redraw_other


@dataclass(frozen=True, kw_only=True)
class SampleMatch(Rule):
    """Draw n tokens from the target and accept the draft token if it is among them, else emit the first of them.

    Statement
    ---------
    m = q (1 - (1 - p)^n); after rejecting x the redraw is from p without x.

    Guarantee
    ---------
    n = 1 is lossless whatever the draft is, accepting sum p q. For every n, out = q - r + p sum r with
    r = (q - m)/(1 - p), and out/p <= n. Not the fixed point at p = q.

    Reference
    ---------
    n = 1: exact match on a target sample, as in the released code of llama.cpp, mlx-lm and ExLlamaV2. n = 2: released
    code of FLy (arXiv 2511.22972) at temperature > 0, which is lossy before any relaxation.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.0, 0.0, 0.0, 1.0]
    >>> ft.rule("sample-match:n=2").induced(p, q).round(12).tolist()
    [0.475, 0.285, 0.1425, 0.0975]
    """

    name: ClassVar[str] = "sample-match"
    n: int = parameter(Integers(1), "how many target samples may match", default=1, strict_at=1, typical=(1, 2, 3))

    def verdict(self, p: Array, q: Array) -> Verdict:
        rejected = self._rejected(p, q)
        return Verdict(accepted=q - rejected, residual=redraw_other(p, rejected))

    def residual_after(self, p: Array, q: Array, tokens: Array) -> Array:
        return p * (1 - one_hot(tokens, p)) + array_namespace(p, q).zeros_like(q)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless() if self.n == 1 else law_of_redrawing_other(self._rejected), Ceiling(self.n, "n"))

    def _rejected(self, p: Array, q: Array) -> Array:
        return q * (1 - p) ** self.n
