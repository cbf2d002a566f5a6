"""Modes of a token-level rule whose most probable token is not one of the target."""

from functools import partial

from fly_theory.arrays import Array, array_namespace
from gpu.replaying.modes.classes import CODE, NUMBER
from gpu.replaying.modes.mode import Finding, Level, Mode
from gpu.replaying.modes.rows import RuleRows

__all__ = ["FLIP_MODES", "SURE"]

# Entropy in nats under which a target is sure: its most probable token then has at least exp(-0.5) = 0.61.
SURE = 0.5


def _argmax_flip(rows: RuleRows) -> Finding:
    return _flips(rows, rows.flipped)


def _low_entropy_flip(rows: RuleRows) -> Finding:
    return _flips(rows, rows.flipped & (rows.pair.entropy < SURE))


def _class_flip(rows: RuleRows, token_class: str) -> Finding:
    members = rows.pair.classes[token_class]
    either = _most_probable(rows.pair.p, rows.pair.highest, members) | _most_probable(rows.out, rows.highest, members)
    return _flips(rows, rows.flipped & either)


def _most_probable(law: Array, highest: Array, members: Array) -> Array:
    """Whether a token of the class (V,) is a most probable one of a law (K, V), whose largest probability is known."""
    xp = array_namespace(law)
    return xp.max(xp.where(members, law, xp.zeros_like(law)), axis=-1) == highest


def _flips(rows: RuleRows, flipped: Array) -> Finding:
    xp = array_namespace(rows.tv)
    return Finding(flipped, xp.where(flipped, rows.tv, xp.zeros_like(rows.tv)))


FLIP_MODES = (
    Mode(
        "argmax_flip",
        "argmax flip",
        "no most probable token of the output is a most probable token of the target",
        Level.RULE,
        _argmax_flip,
    ),
    Mode(
        "low_entropy_flip",
        "low-entropy flip",
        f"an argmax flip where the target was sure: its entropy is below {SURE:g} nats, so that one token has at least "
        "0.61",
        Level.RULE,
        _low_entropy_flip,
    ),
    Mode(
        "number_flip",
        "number flip",
        "an argmax flip from, to or between number tokens",
        Level.RULE,
        partial(_class_flip, token_class=NUMBER),
        token_class=NUMBER,
    ),
    Mode(
        "code_flip",
        "code flip",
        "an argmax flip from, to or between code tokens",
        Level.RULE,
        partial(_class_flip, token_class=CODE),
        token_class=CODE,
    ),
)
