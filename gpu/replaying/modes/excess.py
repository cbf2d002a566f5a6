"""Modes of a token-level rule that gives tokens too much: above a ceiling, in the tail, towards the draft."""

from fly_theory import divergence
from fly_theory.arrays import Array, array_namespace, positive_part
from gpu.replaying.modes.mode import ROUNDING, Finding, Level, Mode
from gpu.replaying.modes.rows import UNCLAIMED_CEILING, RuleRows

__all__ = ["EXCESS_MODES", "TAIL"]

# Mass that is worth a finding; above a ceiling that a rule claims, all mass beyond rounding is.
_NOTABLE = 1e-2

TAIL = 1e-3
_LIKELY = 1e-2


def _ceiling_violation(rows: RuleRows) -> Finding:
    """The mass above c p is the hockey-stick divergence sum (out - c p)+, zero exactly when the ceiling holds."""
    p, out = rows.pair.p, rows.out
    xp = array_namespace(p, out)
    ceiling = rows.ceiling * p if isinstance(rows.ceiling, float) else rows.ceiling[..., None] * p
    # Where the target gives nothing any factor leaves nothing, an infinite one too.
    ceiling = xp.where(p > 0, ceiling, xp.zeros_like(p))
    above = out > ceiling
    mass = xp.sum(xp.where(above, out - ceiling, xp.zeros_like(out)), axis=-1)
    return _at(mass > (ROUNDING if rows.claimed else _NOTABLE), _gain(rows, above))


def _tail_leak(rows: RuleRows) -> Finding:
    leaked = (rows.pair.p < TAIL) & (rows.out >= _LIKELY)
    return Finding(array_namespace(leaked).any(leaked, axis=-1), _gain(rows, leaked))


def _draft_domination(rows: RuleRows) -> Finding:
    closer = divergence.total_variation(rows.pair.q, rows.out) < rows.tv - ROUNDING
    return _at(closer & (rows.tv >= _NOTABLE), rows.tv)


def _gain(rows: RuleRows, tokens: Array) -> Array:
    """The part of TV(p, out) = sum (out - p)+ that some tokens (K, V) make up."""
    xp = array_namespace(rows.out)
    return xp.sum(xp.where(tokens, positive_part(rows.out - rows.pair.p), xp.zeros_like(rows.out)), axis=-1)


def _at(found: Array, value: Array) -> Finding:
    xp = array_namespace(value)
    return Finding(found, xp.where(found, value, xp.zeros_like(value)))


EXCESS_MODES = (
    Mode(
        "ceiling_violation",
        "ceiling violation",
        f"tokens with out > c p, where c is the ceiling the rule claims and {UNCLAIMED_CEILING} where it claims none; "
        f"found where their mass above c p passes {ROUNDING:g} (unclaimed: {_NOTABLE:g}). Explains what these tokens "
        "gain over p",
        Level.RULE,
        _ceiling_violation,
    ),
    Mode(
        "tail_leak",
        "tail leak",
        f"a token with p below {TAIL:g} that the output gives at least {_LIKELY:g}. Explains what such tokens gain",
        Level.RULE,
        _tail_leak,
    ),
    Mode(
        "draft_domination",
        "draft domination",
        f"the output is closer to the draft than to the target, in total variation, and at least {_NOTABLE:g} from the "
        "target",
        Level.RULE,
        _draft_domination,
    ),
)
