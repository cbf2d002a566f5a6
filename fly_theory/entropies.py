"""Entropies of probability rows p (..., V), in nats, with 0 log 0 = 0."""

from fly_theory.arrays import Array, array_namespace, constant, one_hot

__all__ = ["entropy", "normalised_entropy", "top_k_entropy"]


def entropy(p: Array) -> Array:
    """Shannon entropy -sum p log p (...,)."""
    xp = array_namespace(p)
    if hasattr(xp, "row_entropy"):  # arrays that bound rows as a whole
        return xp.row_entropy(p)
    return -xp.sum(p * xp.log(xp.where(p > 0, p, xp.ones_like(p))), axis=-1)


def normalised_entropy(p: Array) -> Array:
    """Entropy divided by log V, in [0, 1], 0 for V = 1: the gate of FLy as the paper writes it (arXiv 2511.22972)."""
    xp = array_namespace(p)
    return entropy(p) / xp.log(constant(max(p.shape[-1], 2), p))


def top_k_entropy(p: Array, k: int) -> Array:
    """-sum p log p over the k largest probabilities, not renormalised: the gate of the released code of FLy (k = 3)."""
    xp, largest = array_namespace(p), []
    for _ in range(min(k, p.shape[-1])):
        first = one_hot(xp.argmax(p, axis=-1), p)
        largest.append(xp.max(p, axis=-1))
        p = p * (1 - first)
    return entropy(xp.stack(largest, axis=-1))
