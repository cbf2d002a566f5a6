"""K-SEQ: one acceptance level for all candidates of a position."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fly_theory.arrays import Array, array_namespace, normalise, positive_part, take
from fly_theory.blocks.base import share
from fly_theory.claims import Claim, Lossless
from fly_theory.interpreters import Interpreter
from fly_theory.trees.base import NO_SYMBOLIC_TREES, Verdicts, Walk
from fly_theory.trees.tree import Drawing, Siblings

__all__ = ["KSeq", "smallest_rho"]

# Halvings of [1, n]. The end that is kept is valid, and every valid rho is lossless: what is left of the bracket only
# costs acceptance: less than 1e-10 in float64, 2e-5 in float32, for up to five candidates.
_HALVINGS = {"float64": 36, "float32": 18}


@dataclass(frozen=True, kw_only=True)
class KSeq(Walk):
    """Test every candidate of a position against the same raised bar, and correct for all of them in one residual.

    Statement
    ---------
    Each of n candidates is kept with probability min(1, p/(rho q)). With beta = sum min(q, p/rho) and
    p_acc = 1 - (1 - beta)^n, the residual is p - min(q, p/rho) p_acc/beta, which is no less than 0 if and only if
    p_acc <= rho beta; rho is the smallest number in [1, n] for which this holds.

    Guarantee
    ---------
    Lossless, with at least 1 - 1/e of the acceptance of the optimal transport. Candidates must be independent draws.

    Reference
    ---------
    SpecTr, Sun et al. 2023 (arXiv 2310.15141), Algorithm 3 and Theorem 1.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> law = ft.trees.position_law(ft.tree_rule("k-seq"), p, q, drafts=2, drawing="with-replacement")
    >>> round(float(law.acceptance), 4), law.induced.round(12).tolist()
    (0.6719, [0.5, 0.3, 0.15, 0.05])
    """

    name: ClassVar[str] = "k-seq"
    unreadable_by: ClassVar = {**NO_SYMBOLIC_TREES, Interpreter.EXACT: "rho solves a polynomial equation"}
    drawings: ClassVar[tuple[Drawing, ...]] = ("with-replacement",)

    def verdicts(self, p: Array, siblings: Siblings) -> Verdicts:
        xp, q = array_namespace(p), siblings.draft
        n = len(siblings.tokens) if siblings.present is None else sum(xp.astype(x, p.dtype) for x in siblings.present)
        mass = xp.minimum(q, p / smallest_rho(p, q, n)[..., None])
        beta = xp.sum(mass, axis=-1)
        accepted = share(1 - (1 - beta) ** n, beta)
        passes = [share(take(mass, token), take(q, token)) for token in siblings.tokens]
        if siblings.present is not None:
            passes = [xp.where(there, x, xp.zeros_like(x)) for there, x in zip(siblings.present, passes, strict=True)]
        return Verdicts(tuple(passes), normalise(positive_part(p - mass * accepted[..., None])))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless(),)


def smallest_rho(p: Array, q: Array, n: Any) -> Array:
    """The smallest rho (...,) in [1, n] with 1 - (1 - beta)^n <= rho beta, beta = sum min(q, p/rho); p, q (..., V)."""
    xp = array_namespace(p, q)
    low = xp.ones_like(p[..., 0] + q[..., 0])
    if isinstance(n, int) and n == 1:
        return low
    width = low * (n - 1)
    for _ in range(_HALVINGS[str(low.dtype).split(".")[-1]]):
        width = width / 2
        middle = low + width
        raised = xp.sum(xp.minimum(middle[..., None] * q, p), axis=-1)
        valid = 1 - (1 - raised / middle) ** n <= raised
        low = xp.where(valid, low, middle)
    return low + width
