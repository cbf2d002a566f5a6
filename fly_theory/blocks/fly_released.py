"""FLy as its released code runs it, with every difference from the paper a parameter of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, normalise, one_hot, scalar
from fly_theory.blocks.base import Block
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.claims import Claim, ReducesTo
from fly_theory.entropies import normalised_entropy, top_k_entropy
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Choice, Flag, Integers, Interval, parameter


@dataclass(frozen=True, kw_only=True)
class FlyReleased(DeferredWindow):
    """FLy as in its released code; each difference from the paper is a parameter that can be put back alone.

    Statement
    ---------
    As `fly`, but by default: the gate reads the entropy of the 3 largest probabilities, in nats and not renormalised
    (`gate`), and is off when theta <= 0.01 (`gate_off_at`); only W - 1 following drafts must match (`following`),
    although a mismatch is still forgiven at j <= K - W only (`tail`).

    At a temperature T > 0 the target draws two tokens at each position (`samples`). Draft x matches when either
    equals it, with probability 1 - (1 - p(x))^2, independently of other positions; after a rejection the first of the
    two is emitted, which given that neither is x has law p without x; the bonus token is one draw. Target rows are
    the laws at that temperature; the gate reads the logits at temperature 1, p^T renormalised.

    `no_window` is the code's ablation: every mismatch whose gate is open is forgiven.

    Guarantee
    ---------
    As `fly` at T = 0. At T > 0 it is lossy even with the gate shut: a greedy draft d comes out with probability
    1 - (1 - p(d))^2, so TV = p(d) (1 - p(d)) and the ratio is 2 - p(d).

    Reference
    ---------
    AMD-AGI/FLy, fly/models/FLy.py, chain mode (its tree mode has no gate).

    Examples
    --------
    The largest value of the released statistic is log 3 = 1.0986: theta = 1.1 shuts the gate.

    >>> import fly_theory as ft
    >>> br = ft.block_rule("fly-released:theta=1.1,window=6,temperature=1")
    >>> block = ft.Block([[0.5, 0.3, 0.2]] * 2, [[1.0, 0.0, 0.0]], [0])
    >>> br.length_law(block).tolist()
    [0.25, 0.75]
    >>> br.next_token(block).tolist()
    [[0.0, 0.6, 0.4], [0.5, 0.3, 0.2]]
    """

    name: ClassVar[str] = "fly-released"
    unreadable_by: ClassVar = {Interpreter.EXACT: "the gate raises p to the temperature, a fractional power"}
    theta: Number = parameter(
        Interval(0, None),
        "a mismatch is deferred where the gate's entropy is at least theta",
        default=0.3,
        typical=(0, 0.3, 0.6, 1),
    )
    window: int = parameter(
        Integers(1), "W, the length of the window, the mismatch included", default=6, typical=(1, 4, 6)
    )
    gate: str = parameter(
        Choice(("top3-nats", "normalised")), "the entropy that the gate reads (paper: normalised)", default="top3-nats"
    )
    gate_off_at: Number = parameter(Interval(0, 1), "theta up to here turns the gate off (paper: 0)", default=0.01)
    following: str = parameter(Choice(("W-1", "W")), "how many following drafts must match (paper: W)", default="W-1")
    tail: str = parameter(
        Choice(("restored", "fits")),
        "forgive at j <= K - W, or wherever the window fits (paper: the same)",
        default="restored",
    )
    temperature: Number = parameter(Interval(0, None), "temperature of the target rows, 0 for the argmax", default=0)
    samples: int = parameter(Integers(1, 2), "target draws that a draft may match at temperature > 0", default=2)
    no_window: bool = parameter(Flag(), "forgive every mismatch whose gate is open", default=False)

    @property
    def unreadable(self) -> Mapping[Interpreter, str]:
        return {} if self.exact("temperature").denominator == 1 else self.unreadable_by

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def match_probability(self, block: Block) -> Array:
        if self.greedy:
            return super().match_probability(block)
        return 1 - (1 - block.target_at_tokens) ** self.samples

    @property
    def target_temperature(self) -> Number:
        return self.temperature or 1

    @property
    def threshold(self) -> Number:
        return 0 if self.theta <= self.gate_off_at else self.theta

    @property
    def statistic(self) -> Callable[[Array], Array]:
        return normalised_entropy if self.gate == "normalised" else top_3_entropy

    def gate_entropy(self, block: Block) -> Array:
        untempered = block.judging
        if self.temperature not in (0, 1):
            untempered = normalise(untempered ** scalar(self.temperature, untempered))
        return self.statistic(untempered)

    @property
    def window_length(self) -> int:
        return 0 if self.no_window else self.window - (self.following == "W-1")

    def judgeable(self, draft_length: int) -> int:
        put_back = self.tail == "restored" and not self.no_window
        return draft_length - (self.window if put_back else self.window_length)

    def next_token(self, block: Block) -> Array:
        if self.greedy:
            return super().next_token(block)
        xp = array_namespace(block.target)
        others = block.judging * (1 - one_hot(block.tokens, block.target))
        return xp.concat([normalise(others), block.target[..., -1:, :]], axis=-2)

    @property
    def claims(self) -> tuple[Claim, ...]:
        paper = {"gate": "normalised", "gate_off_at": 0, "following": "W", "temperature": 0, "no_window": False}
        return (*super().claims, ReducesTo(f"fly:theta={self.theta},window={self.window}", paper))


def top_3_entropy(p: Array) -> Array:
    """Entropy (...,) in nats of the 3 largest probabilities of p (..., V), not renormalised; at most log 3."""
    return top_k_entropy(p, 3)
