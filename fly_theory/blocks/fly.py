"""FLy as its paper writes it, and the deferred window that all its variants share."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, NamedTuple

from fly_theory.arrays import Array, Number, array_namespace, device, one_hot, scalar
from fly_theory.blocks.base import Block, BlockRule, count_until_false
from fly_theory.blocks.claims import KeepsAtLeast, KeptMonotoneIn
from fly_theory.claims import Claim
from fly_theory.entropies import normalised_entropy
from fly_theory.errors import InvalidInput
from fly_theory.parameters import Integers, Interval, parameter
from fly_theory.rules.base import check_uniforms

# Above every entropy that a gate reads: 1 normalised, log 3 in nats.
_SHUT = 2


class Cause(IntEnum):
    """Why a drafted token is not kept: the first of these that applies."""

    KEPT = 0
    GATE = 1
    BOUNDARY = 2
    WINDOW = 3
    EARLIER = 4


class FlyTrace(NamedTuple):
    """What FLy decides at each drafted token; boolean arrays (..., K), `cause` an integer one.

    match
        The draft agrees with the target.
    gate
        The entropy gate is open: a mismatch here would be deferred.
    boundary
        The block is long enough to judge a mismatch here.
    window
        The drafts that follow, as far as the window reaches into the block, all match.
    verdict
        match, or gate and boundary and window: the token passes on its own account.
    cause
        A `Cause`: kept; rejected by gate, boundary or window (in this order when several apply); or discarded because
        of an earlier rejection.
    """

    match: Array
    gate: Array
    boundary: Array
    window: Array
    verdict: Array
    cause: Array

    @property
    def kept(self) -> Array:
        """The tokens that are kept (..., K)."""
        return self.cause == Cause.KEPT

    @property
    def forgiven(self) -> Array:
        """The mismatches that are kept (..., K)."""
        return self.kept & ~self.match


class Endings(NamedTuple):
    """What becomes of a mismatch at each drafted token: probabilities (..., K), each of getting there and ending so.

    met
        The round reaches the token with no window pending, and it is a mismatch: the sum of the next four.
    forgiven
        The mismatch is deferred and the window after it clear.
    gate, boundary, window
        The round ends here, by this `Cause`.
    boundary_only
        The part of `boundary` with no other mismatch in the rest of the block: lost to nothing but its length.
    whole : (...,)
        No mismatch ends the round.
    """

    met: Array
    forgiven: Array
    gate: Array
    boundary: Array
    window: Array
    boundary_only: Array
    whole: Array

    @property
    def rejected(self) -> Array:
        """The round ends at this token (..., K)."""
        return self.gate + self.boundary + self.window

    @property
    def length_law(self) -> Array:
        """Probability (..., K+1) that exactly n = 0..K drafts are kept."""
        return array_namespace(self.whole).concat([self.rejected, self.whole[..., None]], axis=-1)


class DeferredWindow(BlockRule):
    """The decision that FLy and its variants share: a mismatch is forgiven when the drafts after it all match.

    A subclass says how likely a draft matches the target (independently of the others), where the gate is open, how
    many drafts must follow, and up to which position a mismatch can be judged at all.
    """

    theta: Number

    @property
    def greedy(self) -> bool:
        """Whether the target's token is its argmax, so that matches are certain."""
        return True

    @property
    def target_temperature(self) -> Number:
        """Temperature that the target rows of a block are to have: 1 for a greedy target, whose gate reads those."""
        return 1

    def match_probability(self, block: Block) -> Array:
        """Probability (..., K) that a draft agrees with the target: whether it is the argmax, ties to the lowest id."""
        xp = array_namespace(block.target)
        return xp.astype(xp.argmax(block.judging, axis=-1) == block.tokens, block.target.dtype)

    @property
    def threshold(self) -> Number:
        """The entropy from which the gate is open."""
        return self.theta

    @property
    def statistic(self) -> Callable[[Array], Array]:
        """The entropy (...,) that the gate reads, as a function of target rows p (..., V) at temperature 1."""
        raise NotImplementedError

    def gate_entropy(self, block: Block) -> Array:
        """The entropy (..., K) that the gate reads at each draft."""
        return self.statistic(block.judging)

    def gate_open(self, block: Block, *, entropy: Array | None = None) -> Array:
        """Where the gate is open (..., K), given what it reads there when that is already known."""
        entropy = self.gate_entropy(block) if entropy is None else entropy
        return entropy >= scalar(self.threshold, entropy)

    @property
    def window_length(self) -> int:
        """Number of drafts after a mismatch that must match."""
        raise NotImplementedError

    def judgeable(self, draft_length: int) -> int:
        """Number of leading positions at which a mismatch can be forgiven."""
        return draft_length - self.window_length

    def next_token(self, block: Block) -> Array:
        return one_hot(array_namespace(block.target).argmax(block.target, axis=-1), block.target)

    def length_law(self, block: Block) -> Array:
        return self.endings(block).length_law

    def endings(self, block: Block, *, entropy: Array | None = None) -> Endings:
        """The decision as a renewal process: arrive[j] is the probability of reaching j with no window pending.

        `entropy` (..., K) is what the gate reads, when that is already known.
        """
        match, gate = self.match_probability(block), self.gate_open(block, entropy=entropy)
        xp, draft_length, window = array_namespace(match), block.draft_length, self.window_length
        nothing = xp.zeros_like(match[..., 0])
        arrive = [nothing + 1] + [nothing] * draft_length
        endings = []
        for j in range(draft_length):
            met, resume = arrive[j] * (1 - match[..., j]), j + 1 + window
            judged = xp.where(gate[..., j], met, nothing)
            clear = judged * xp.prod(match[..., j + 1 : resume], axis=-1)
            arrive[j + 1] = arrive[j + 1] + arrive[j] * match[..., j]
            if j < self.judgeable(draft_length):
                arrive[resume] = arrive[resume] + clear
                endings.append((met, clear, met - judged, nothing, judged - clear, nothing))
            else:
                endings.append((met, nothing, met - judged, judged, nothing, clear))
        by_token = [xp.stack(list(each), axis=-1) for each in zip(*endings, strict=True)]
        return Endings(*[*by_token, arrive[-1]])

    def trace(self, block: Block, *, uniforms: Array | None = None) -> FlyTrace:
        """Every decision on a block, up to and beyond the first rejection.

        Draft j matches when uniforms (..., K) at j are below its match probability; at temperature 0 that is 0 or 1,
        and uniforms are not needed.

        Raises
        ------
        ShapeError, InvalidInput
            For uniforms of another length or outside [0, 1), and for none when matches are random.
        """
        probability = self.match_probability(block)
        if uniforms is None:
            if not self.greedy:
                msg = f"{self.spec} draws target samples: trace needs uniforms (..., {block.draft_length}) in [0, 1)"
                raise InvalidInput(msg)
            uniforms = array_namespace(probability).zeros_like(probability)
        check_uniforms(uniforms, block.draft_length)
        return self._judge(block, uniforms < probability)

    def _decide(self, block: Block, uniforms: Array) -> Array:
        return count_until_false(self.trace(block, uniforms=uniforms).verdict)

    def _judge(self, block: Block, match: Array) -> FlyTrace:
        xp, draft_length = array_namespace(match), block.draft_length
        position = xp.arange(draft_length, device=device(match))
        gate = self.gate_open(block) | xp.zeros_like(match)
        boundary = (position < self.judgeable(draft_length)) | xp.zeros_like(match)
        clear = [xp.all(match[..., j + 1 : j + 1 + self.window_length], axis=-1) for j in range(draft_length)]
        window = xp.stack(clear, axis=-1)
        verdict = match | (gate & boundary & window)
        kept = count_until_false(verdict)[..., None]
        cause = xp.zeros_like(match, dtype=xp.int32)
        for why, applies in (
            (Cause.WINDOW, ~match),
            (Cause.BOUNDARY, ~match & ~boundary),
            (Cause.GATE, ~match & ~gate),
            (Cause.EARLIER, position > kept),
            (Cause.KEPT, position < kept),
        ):
            cause = xp.where(applies, int(why), cause)
        return FlyTrace(match, gate, boundary, window, verdict, cause)

    @property
    def claims(self) -> tuple[Claim, ...]:
        strict = replace(self, theta=_SHUT)  # type: ignore[type-var]
        return (
            KeepsAtLeast(strict.spec),
            KeptMonotoneIn("theta", looser="smaller"),
            KeptMonotoneIn("window", looser="smaller"),
        )


@dataclass(frozen=True, kw_only=True)
class Fly(DeferredWindow):
    """Training-free loosely speculative decoding, as the paper writes it, at temperature 0.

    Statement
    ---------
    y_i = argmax p_i, and draft i matches when it equals y_i. Of the mismatches j from left to right, reject at j when
    H(p_j) / log V < theta; else forgive j when j + W <= K and drafts j+1..j+W all match; else reject at j. Emit the
    drafts before the first rejected one and its y_j, or all K and the bonus token y_{K+1}.

    The window counts all later mismatches, forgiven or not: two within W steps end the round at the first of them.

    Guarantee
    ---------
    At most one mismatch in W + 1 tokens, and every other token is the target's argmax. Never fewer drafts are kept
    than by strict verification, which theta > 1 or W >= K gives. No ceiling: the forgiven token may have any
    probability, even 0, and is emitted for certain.

    Reference
    ---------
    FLy (arXiv 2511.22972), section 2.2 and Algorithm 1. The released code differs, see `fly-released`.

    Examples
    --------
    The third token has probability 0.001 and is forgiven: a gate on the entropy says nothing of the token.

    >>> import fly_theory as ft
    >>> row = [0.5, 0.499, 0.001]
    >>> block = ft.Block([row] * 3, [row] * 2, [2, 0])
    >>> fly = ft.block_rule("fly:theta=0.3,window=1")
    >>> fly.length_law(block).tolist()
    [0.0, 0.0, 1.0]
    >>> fly.trace(block).forgiven.tolist()
    [True, False]
    """

    name: ClassVar[str] = "fly"
    theta: Number = parameter(
        Interval(0, None),
        "a mismatch is deferred where the entropy over log V is at least theta",
        default=0.3,
        typical=(0, 0.3, 0.6, 1),
    )
    window: int = parameter(
        Integers(0), "how many drafts after a deferred mismatch must match", default=6, typical=(0, 4, 6, 8)
    )

    @property
    def statistic(self) -> Callable[[Array], Array]:
        return normalised_entropy

    @property
    def window_length(self) -> int:
        return self.window
