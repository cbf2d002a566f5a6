"""Top-k match."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory import allowed_sets
from fly_theory.arrays import Array
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Integers, parameter
from fly_theory.rules.accept_set import AcceptSetRule


@dataclass(frozen=True, kw_only=True)
class TopKMatch(AcceptSetRule):
    """Accept every token among the k most probable of the target, redraw from the target.

    Statement
    ---------
    A = the k largest p, with all tokens tied with the k-th,  m = q 1_A,  residual = p

    Guarantee
    ---------
    out = q 1_A + (1 - q(A)) p; no bound on out/p. Not the fixed point at p = q.

    Reference
    ---------
    Common practice in several repositories, without a paper of its own.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p, q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]
    >>> ft.rule("top-k-match:k=2").induced(p, q).round(12).tolist()
    [0.55, 0.31, 0.105, 0.035]
    """

    name: ClassVar[str] = "top-k-match"
    unreadable_by: ClassVar = {Interpreter.SYMBOLIC: "its allowed set sorts the vocabulary"}
    k: int = parameter(Integers(1), "how many of the target's most probable tokens are allowed", typical=(1, 2, 4))

    def allowed_set(self, p: Array) -> Array:
        return allowed_sets.top_k(p, self.k)
