"""Modes of block rules that defer mismatches, as FLy does: what ends their rounds, and what they forgive."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from fly_theory.arrays import Array, array_namespace, device, positive_part, take
from fly_theory.blocks import Block
from fly_theory.blocks.fly import Endings
from gpu.replaying.modes.classes import CODE, NUMBER
from gpu.replaying.modes.excess import TAIL
from gpu.replaying.modes.flips import SURE
from gpu.replaying.modes.mode import Finding, Level, Mode

__all__ = ["DEFERRAL_MODES", "DeferralRows"]


class DeferralRows(NamedTuple):
    """A deferring block rule on one block of K drafts.

    Attributes
    ----------
    block
        What it judges.
    match, gate
        Probability that a draft matches, and where the gate is open; (K,) each.
    ended
        What becomes of mismatches.
    window
        How many drafts after a mismatch have to match.
    entropy
        Entropy in nats of the target at temperature 1 (K,).
    classes
        Masks (V,) of the token classes that are known; see `TokenClasses`.
    """

    block: Block
    match: Array
    gate: Array
    ended: Endings
    window: int
    entropy: Array
    classes: Mapping[str, Array]

    @property
    def lost_from(self) -> Array:
        """Drafts (K,) that are lost when the round ends at each."""
        xp, k = array_namespace(self.match), self.block.draft_length
        return xp.astype(k - xp.arange(k, device=device(self.match)), self.match.dtype)

    @property
    def lost(self) -> Array:
        """Drafts that are lost in this round: what the modes of ends explain a share of."""
        return array_namespace(self.match).sum(self.ended.rejected * self.lost_from)


def _dead_gate(rows: DeferralRows) -> Finding:
    """The first mismatch finds its gate shut, and every position after it matches or has its gate shut as well."""
    xp, k = array_namespace(rows.match), rows.block.draft_length
    harmless = xp.where(rows.gate, rows.match, xp.ones_like(rows.match))
    first = xp.stack([xp.prod(rows.match[:j]) * xp.prod(harmless[j + 1 :]) for j in range(k)]) * (1 - rows.match)
    return _ends(rows, xp.where(rows.gate, 0 * first, first))


def _boundary_loss(rows: DeferralRows) -> Finding:
    return _ends(rows, rows.ended.boundary_only)


def _window_kill(rows: DeferralRows) -> Finding:
    """A judged mismatch is spared by shut gates when every later mismatch in its window finds its gate open."""
    xp = array_namespace(rows.match)
    harmless = xp.where(rows.gate, xp.ones_like(rows.match), rows.match)
    spared = xp.stack([xp.prod(harmless[j + 1 : j + 1 + rows.window]) for j in range(rows.block.draft_length)])
    judged = rows.ended.window + rows.ended.forgiven
    return _ends(rows, positive_part(judged * spared - rows.ended.forgiven))


def _ends(rows: DeferralRows, ended: Array) -> Finding:
    return Finding(ended, ended * rows.lost_from)


def _forgiven_sure(rows: DeferralRows) -> Finding:
    return _forgiven(rows, rows.entropy < SURE)


def _forgiven_tail(rows: DeferralRows) -> Finding:
    return _forgiven(rows, rows.block.target_at_tokens < TAIL)


def _forgiven_class(rows: DeferralRows, token_class: str) -> Finding:
    members = rows.classes[token_class]
    top = array_namespace(rows.match).argmax(rows.block.judging, axis=-1)
    return _forgiven(rows, take(members, top) | take(members, rows.block.tokens))


def _forgiven(rows: DeferralRows, where: Array) -> Finding:
    forgiven = array_namespace(rows.match).where(where, rows.ended.forgiven, 0 * rows.match)
    return Finding(forgiven, forgiven)


DEFERRAL_MODES = (
    Mode(
        "dead_gate",
        "dead gate",
        "the round ends at a mismatch, and the gate is shut at every mismatch of the block: the rule is strict "
        "verification there. Explains the drafts lost",
        Level.BLOCK,
        _dead_gate,
        of="lost",
        per="rounds",
    ),
    Mode(
        "boundary_loss",
        "boundary loss",
        "the mismatch that ends the round is rejected only because the block is too short for the window after it: its "
        "gate is open and the drafts that follow all match. Explains the drafts lost",
        Level.BLOCK,
        _boundary_loss,
        of="lost",
        per="rounds",
    ),
    Mode(
        "window_kill",
        "window kill",
        "the mismatch that ends the round is rejected for another mismatch in its window, and the gate is open at all "
        "of them: harmless alone, fatal together. Explains the drafts lost",
        Level.BLOCK,
        _window_kill,
        of="lost",
        per="rounds",
    ),
    Mode(
        "forgiven_sure",
        "forgiven where sure",
        f"a mismatch is forgiven where the target was sure: its entropy is below {SURE:g} nats. Explains mismatches "
        "forgiven",
        Level.BLOCK,
        _forgiven_sure,
        of="forgiven",
        per="rounds",
    ),
    Mode(
        "forgiven_tail",
        "forgiven in the tail",
        f"a draft token with p below {TAIL:g} is forgiven, and emitted for certain. Explains mismatches forgiven",
        Level.BLOCK,
        _forgiven_tail,
        of="forgiven",
        per="rounds",
    ),
    Mode(
        "forgiven_number",
        "forgiven number",
        "a mismatch is forgiven whose draft token, or the target's own, is a number token. Explains mismatches "
        "forgiven",
        Level.BLOCK,
        partial(_forgiven_class, token_class=NUMBER),
        of="forgiven",
        per="rounds",
        token_class=NUMBER,
    ),
    Mode(
        "forgiven_code",
        "forgiven code",
        "a mismatch is forgiven whose draft token, or the target's own, is a code token. Explains mismatches forgiven",
        Level.BLOCK,
        partial(_forgiven_class, token_class=CODE),
        of="forgiven",
        per="rounds",
        token_class=CODE,
    ),
)
