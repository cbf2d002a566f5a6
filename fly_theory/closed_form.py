"""Closed forms on top of the rules: waste, block lengths and the cost factors of speculative decoding."""

from typing import NamedTuple

import numpy as np

from fly_theory import divergence
from fly_theory.arrays import Array, array_namespace
from fly_theory.distributions import as_pair
from fly_theory.errors import InvalidInput
from fly_theory.rules.base import Rule

__all__ = [
    "BlockEfficiency",
    "block_efficiency",
    "expected_tokens",
    "operations_factor",
    "walltime_factor",
    "waste",
]


class BlockEfficiency(NamedTuple):
    """Tokens a target call yields, in the two conventions of the literature.

    tokens_per_call : the recovered or bonus token counted (Leviathan, SpecTr, FLy, Medusa).
    accepted_per_call : draft tokens only (Sun et al.'s E[tau]).
    """

    tokens_per_call: Array
    accepted_per_call: Array


def waste(p: Array, q: Array, rule: Rule) -> Array:
    """Distance (...,) of a rule from the TV line at target p and draft q, (..., V) each.

    TV(out, p) - (TV(p, q) - P_rej) >= 0, and 0 exactly when no rule with this rejection probability is closer to p
    (Yin et al. 2024, arXiv 2411.00841, Theorems 4 and 5).
    """
    p, q = as_pair(p, q)
    rejected = 1 - rule.acceptance(p, q)
    return divergence.total_variation(p, rule.induced(p, q)) - (divergence.total_variation(p, q) - rejected)


def expected_tokens(acceptance: Array | float, draft_length: int) -> Array:
    """(1 - a^(K+1)) / (1 - a): expected tokens of a block whose K drafts are accepted independently with probability a.

    Leviathan et al. 2023 (arXiv 2211.17192), eq. 1; the recovered or bonus token is counted.
    """
    _check_draft_length(draft_length)
    a = _probability(acceptance, "acceptance")
    return sum((a**i for i in range(1, draft_length + 1)), start=np.ones_like(a))


def walltime_factor(acceptance: Array | float, draft_length: int, draft_cost: float) -> Array:
    """Expected speed-up (1 - a^(K+1)) / ((1 - a) (K c + 1)), c = time of a draft step over that of a target step.

    Leviathan et al. 2023 (arXiv 2211.17192), Theorem 3.8.
    """
    return expected_tokens(acceptance, draft_length) / (draft_length * _non_negative(draft_cost, "draft_cost") + 1)


def operations_factor(acceptance: Array | float, draft_length: int, draft_operations: float) -> Array:
    """Expected growth (1 - a) (K c + K + 1) / (1 - a^(K+1)) of operations, c = operations of draft over target.

    Leviathan et al. 2023 (arXiv 2211.17192), Theorem 3.11.
    """
    operations = draft_length * _non_negative(draft_operations, "draft_operations") + draft_length + 1
    return operations / expected_tokens(acceptance, draft_length)


def block_efficiency(keep: Array) -> BlockEfficiency:
    """Expected tokens of a block from the probabilities keep (..., K) that draft j is kept once all before it were.

    accepted_per_call = sum_i prod_{j <= i} keep_j, and tokens_per_call is one more.
    """
    if isinstance(keep, list | tuple):
        keep = np.asarray(keep, dtype=np.float64)
    if keep.ndim < 1 or keep.shape[-1] < 1:
        msg = f"keep has shape {tuple(keep.shape)}; expected (..., K) with K >= 1"
        raise InvalidInput(msg)
    xp = array_namespace(keep)
    reached = xp.cumulative_prod(keep, axis=-1)
    accepted = xp.sum(reached, axis=-1)
    return BlockEfficiency(tokens_per_call=accepted + 1, accepted_per_call=accepted)


def _check_draft_length(draft_length: int) -> None:
    if not isinstance(draft_length, int) or draft_length < 1:
        msg = f"draft_length={draft_length!r} is not an integer >= 1"
        raise InvalidInput(msg)


def _probability(value: Array | float, name: str) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if not np.all((array >= 0) & (array <= 1)):
        msg = f"{name}={value!r} is outside [0, 1]"
        raise InvalidInput(msg)
    return array


def _non_negative(value: float, name: str) -> float:
    if not 0 <= value < float("inf"):
        msg = f"{name}={value!r} is outside [0, inf)"
        raise InvalidInput(msg)
    return value
