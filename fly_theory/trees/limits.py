"""How often any verifier that emits the target's law can emit one of n drafted candidates.

The best is an optimal transport from the drafted sets to the target (SpecTr, arXiv 2310.15141). Its value is also

    min over sets H of tokens:  p(H) + 1 - Pr(all candidates in H)

(Hu et al. 2025, arXiv 2502.18779): two routes to one number.
"""

from collections import defaultdict

import numpy as np

from fly_theory.arrays import Array, array_namespace
from fly_theory.blocks.base import share
from fly_theory.distributions import as_pair, trusted_inputs
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.trees.enumeration import all_trees, assignments, check_enumerable, drafted_weights
from fly_theory.trees.tree import Drawing

__all__ = ["optimal_acceptance", "transport_acceptance"]

# Sets of tokens times drafted candidates that are looked at one by one.
_MOST = 2**24


def optimal_acceptance(p: Array, q: Array, drafts: int, *, drawing: Drawing) -> Array:
    """The largest acceptance of a lossless verifier with `drafts` candidates, by the formula over sets.

    For draws with replacement Pr(all in H) = q(H)^n is convex in q(H), so the best H holds the tokens with the smallest
    p/q: p and q are (..., V) with any V, and the result is (...,). For the other drawings all sets are looked at.

    Raises
    ------
    InvalidInput, ShapeError
        For drafts < 1, an unknown drawing, and without a closed form for batches and vocabularies that are too large.
    """
    p, q = as_pair(p, q)
    if drawing != "with-replacement":
        return _over_sets(p, q, drafts, drawing)
    if not (isinstance(drafts, int) and drafts >= 1):
        msg = f"drafts={drafts!r} is not allowed; a position has an integer number >= 1 of candidates"
        raise InvalidInput(msg)
    return _over_levels(p, q, drafts)


def _over_levels(p: Array, q: Array, drafts: int) -> Array:
    xp = array_namespace(p, q)
    order = xp.argsort(share(p, p + q), axis=-1)
    in_p, in_q = (
        xp.cumulative_sum(xp.take_along_axis(x, order, axis=-1), axis=-1, include_initial=True) for x in (p, q)
    )
    return xp.min(in_p + (1 - in_q**drafts), axis=-1)


def _over_sets(p: Array, q: Array, drafts: int, drawing: Drawing) -> Array:
    xp = array_namespace(p, q)
    drafted, weights = _drafted(p, q, drafts, drawing)
    vocabulary = p.shape[-1]
    if len(drafted) << vocabulary > _MOST:
        msg = f"V={vocabulary}, drafts={drafts}: there are 2^{vocabulary} sets of tokens, too many to look at"
        raise InvalidInput(msg)
    sets = np.arange(1 << vocabulary)
    members = xp.asarray(sets[:, None] >> np.arange(vocabulary) & 1 == 1)
    inside = xp.asarray(drafted & ~sets[:, None] == 0)
    in_p = xp.sum(xp.where(members, p[None, :], xp.zeros_like(p[None, :])), axis=-1)
    all_inside = xp.sum(xp.where(inside, weights[None, :], xp.zeros_like(weights[None, :])), axis=-1)
    return xp.min(in_p + (1 - all_inside), axis=-1)


def transport_acceptance(p: Array, q: Array, drafts: int, *, drawing: Drawing) -> float:
    """The same number as the value of the linear program, solved by HiGHS; p and q are (V,), floats.

    A plan moves mass from each drafted set S to its members y: no more than the probability of S from S, and no more
    than p(y) to y.

    Raises
    ------
    InvalidInput, ShapeError
        As `optimal_acceptance`.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    p, q = as_pair(p, q)
    drafted, weights = _drafted(p, q, drafts, drawing)
    mass: dict[int, float] = defaultdict(float)
    for drawn, weight in zip(drafted.tolist(), np.asarray(weights, dtype=float).tolist(), strict=True):
        mass[drawn] += weight
    moves = [(row, token) for row, drawn in enumerate(mass) for token in range(len(p)) if drawn >> token & 1]
    source, token = np.array(moves).T
    rows = np.concatenate([source, len(mass) + token])
    columns = np.tile(np.arange(len(moves)), 2)
    limits = coo_array((np.ones(len(rows)), (rows, columns)))
    solved = linprog(-np.ones(len(moves)), A_ub=limits, b_ub=np.concatenate([[*mass.values()], p]), method="highs")
    return -float(solved.fun)


def _drafted(p: Array, q: Array, drafts: int, drawing: Drawing) -> tuple[np.ndarray, Array]:
    """The drafted sets as bit masks (V^n,), and how likely each is."""
    if p.ndim != 1 or q.ndim != 1:
        msg = f"p has shape {tuple(p.shape)} and q {tuple(q.shape)}; candidates are enumerated for one pair, (V,) each"
        raise ShapeError(msg)
    xp, vocabulary, parents = array_namespace(p, q), p.shape[-1], (0,) * drafts
    check_enumerable(parents, vocabulary, drawing)
    rows = xp.broadcast_to(q[None, :], (drafts + 1, vocabulary))
    with trusted_inputs():
        weights = drafted_weights(all_trees(rows, rows, parents, drawing))
    return np.bitwise_or.reduce(1 << assignments(drafts, vocabulary), axis=-1), weights
