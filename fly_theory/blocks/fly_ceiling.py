"""A FLy with a ceiling."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, constant, scalar
from fly_theory.blocks.base import Block
from fly_theory.blocks.claims import KeptMonotoneIn
from fly_theory.blocks.fly import Fly
from fly_theory.claims import Ceiling, Claim, ReducesTo
from fly_theory.parameters import Interval, parameter


@dataclass(frozen=True, kw_only=True)
class FlyCeiling(Fly):
    """FLy that forgives no mismatch whose target probability is below a floor.

    Statement
    ---------
    As `fly`, with a gate that is open where H(p_j) / log V >= theta and p_j(x_j) >= floor.

    Guarantee
    ---------
    Those of `fly`, and for each token given the text before it out(x) <= p(x) / min(floor, max p). Proof: every
    emitted token is an argmax or has p(x) >= floor, so p(x) >= min(floor, max p), and out(x) <= 1.

    So a text of L tokens has at most max(1/floor, V)^L times its probability under the target. A floor above 1/2 is
    strict.

    Reference
    ---------
    This project's own; the floor is that of `threshold`-type rules, put where FLy has none.

    Examples
    --------
    >>> import fly_theory as ft
    >>> row = [0.5, 0.499, 0.001]
    >>> block = ft.Block([row] * 3, [row] * 2, [[1, 0], [2, 0]])
    >>> ft.block_rule("fly-ceiling:theta=0.3,window=1,floor=0.1").length_law(block).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    name: ClassVar[str] = "fly-ceiling"
    floor: Number = parameter(
        Interval(0, 1), "smallest target probability of a mismatch that may be forgiven", typical=(0.01, 0.1, 0.3)
    )

    def gate_open(self, block: Block, *, entropy: Array | None = None) -> Array:
        return super().gate_open(block, entropy=entropy) & (block.target_at_tokens >= scalar(self.floor, block.target))

    @property
    def claims(self) -> tuple[Claim, ...]:
        unbounded = ReducesTo(f"fly:theta={self.theta},window={self.window}", {"floor": 0})
        claims = (*super().claims, KeptMonotoneIn("floor", looser="smaller"), unbounded)
        return (*claims, Ceiling(self._factor, "1/min(floor, max p)")) if self.floor else claims

    def _factor(self, p: Array, q: Array) -> Array:
        xp = array_namespace(p)
        return 1 / xp.minimum(constant(self.floor, p), xp.max(p, axis=-1))
