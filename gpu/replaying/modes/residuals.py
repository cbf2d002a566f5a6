"""The mode of a token-level rule that has nothing to emit."""

from fly_theory.arrays import array_namespace
from gpu.replaying.modes.mode import Finding, Level, Mode
from gpu.replaying.modes.rows import RuleRows

__all__ = ["ZERO_RESIDUAL"]


def _zero_residual(rows: RuleRows) -> Finding:
    xp = array_namespace(rows.rejected)
    return Finding(rows.stuck, xp.where(rows.stuck, rows.rejected, xp.zeros_like(rows.rejected)))


ZERO_RESIDUAL = Mode(
    "zero_residual",
    "zero residual",
    "the rule rejects, and its residual is zero: there is nothing to redraw from. The output is undefined there, and "
    "the position is left out of every figure that depends on it. Ranked by the probability of that rejection",
    Level.RULE,
    _zero_residual,
    of=None,
)
