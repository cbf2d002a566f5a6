"""Allowed sets: boolean masks (..., V) of the tokens that a truncation of the target p (..., V) keeps.

Ties at a threshold are kept (p >= threshold) unless a function says otherwise.
"""

from fly_theory.arrays import Array, Number, array_namespace, constant, scalar
from fly_theory.entropies import entropy

__all__ = ["epsilon", "eta", "min_p", "relative_to_entropy", "top_k", "top_p"]


def top_k(p: Array, k: int) -> Array:
    """The k most probable tokens and every token tied with the k-th (released code of transformers)."""
    xp = array_namespace(p)
    ascending = xp.sort(p, axis=-1)
    return p >= ascending[..., -min(k, p.shape[-1])][..., None]


def top_p(p: Array, mass: Number) -> Array:
    """The most probable tokens until their mass reaches `mass`; among equals the lowest id comes first.

    A token is dropped when it and all less probable ones hold at most 1 - mass (released code of transformers).
    """
    xp = array_namespace(p)
    ascending = xp.flip(xp.argsort(p, axis=-1, descending=True, stable=True), axis=-1)
    up_to_here = xp.cumulative_sum(xp.take_along_axis(p, ascending, axis=-1), axis=-1)
    rank = xp.argsort(ascending, axis=-1, stable=True)
    kept = xp.take_along_axis(up_to_here, rank, axis=-1) > 1 - scalar(mass, p)
    return kept | (rank == p.shape[-1] - 1)


def min_p(p: Array, base: Number) -> Array:
    """Tokens with p >= base * max p (Nguyen et al. 2024, arXiv 2407.01082)."""
    return p >= scalar(base, p) * array_namespace(p).max(p, axis=-1, keepdims=True)


def epsilon(p: Array, threshold: Number) -> Array:
    """Tokens with p >= threshold, and always the most probable one (Hewitt et al. 2022, arXiv 2210.15191)."""
    return (p >= scalar(threshold, p)) | (p == array_namespace(p).max(p, axis=-1, keepdims=True))


def eta(p: Array, eps: Number) -> Array:
    """Tokens with p >= min(eps, sqrt(eps) exp(-H)), H in nats (released code of transformers; Hewitt et al. 2022)."""
    xp = array_namespace(p)
    return p >= _entropy_threshold(p, eps, xp.sqrt(constant(eps, p)))


def relative_to_entropy(p: Array, eps: Number, delta: Number, *, keep_ties: bool) -> Array:
    """Tokens with p >= min(eps, delta exp(-H)), or > without ties (Cai et al. 2024, arXiv 2401.10774)."""
    threshold = _entropy_threshold(p, eps, constant(delta, p))
    return p >= threshold if keep_ties else p > threshold


def _entropy_threshold(p: Array, eps: Number, delta: Array) -> Array:
    xp = array_namespace(p)
    return xp.minimum(constant(eps, p), delta * xp.exp(-entropy(p)))[..., None]
