"""Divergences between a target p (..., V) and another distribution out (..., V), in that order; results (...,).

Batch axes broadcast. Correct at zeros: 0 log 0 = 0, and infinite where the definition is infinite. Logs are natural.
"""

from fly_theory.arrays import Array, Number, array_namespace, positive_part, scalar
from fly_theory.distributions import as_pair
from fly_theory.errors import ParameterError

__all__ = ["DIVERGENCES", "chi2", "hellinger", "js", "kl", "max_ratio", "renyi", "reverse_kl", "total_variation"]

_INFINITY = float("inf")


def total_variation(p: Array, out: Array) -> Array:
    """``TV(p, out) = 1/2 sum |p - out|``, the largest difference in the probability of an event."""
    p, out = as_pair(p, out)
    xp = array_namespace(p, out)
    return xp.sum(xp.abs(p - out), axis=-1) / 2


def kl(p: Array, out: Array) -> Array:
    """KL(p || out) = sum p log(p / out) in nats; infinite when p has mass where out has none."""
    p, out = as_pair(p, out)
    return _relative_entropy(p, out)


def reverse_kl(p: Array, out: Array) -> Array:
    """KL(out || p) = sum out log(out / p) in nats; infinite when out leaves the support of p."""
    p, out = as_pair(p, out)
    return _relative_entropy(out, p)


def js(p: Array, out: Array) -> Array:
    """Jensen-Shannon divergence in nats: the mean of KL(p || m) and KL(out || m), m the midpoint; at most log 2."""
    p, out = as_pair(p, out)
    middle = (p + out) / 2
    return (_relative_entropy(p, middle) + _relative_entropy(out, middle)) / 2


def chi2(p: Array, out: Array) -> Array:
    """Pearson's chi-squared divergence sum (out - p)^2 / p; infinite when out leaves the support of p."""
    p, out = as_pair(p, out)
    xp = array_namespace(p, out)
    possible = p > 0
    terms = (out - p) ** 2 / xp.where(possible, p, xp.ones_like(p))
    return _infinite_where(xp.any(~possible & (out > 0), axis=-1), xp.sum(terms, axis=-1))


def hellinger(p: Array, out: Array) -> Array:
    """Hellinger distance sqrt(1/2 sum (sqrt p - sqrt out)^2), in [0, 1]."""
    p, out = as_pair(p, out)
    xp = array_namespace(p, out)
    return xp.sqrt(xp.sum((xp.sqrt(p) - xp.sqrt(out)) ** 2, axis=-1) / 2)


def renyi(p: Array, out: Array, *, alpha: Number) -> Array:
    """Renyi divergence of order alpha in nats: log(sum p^alpha out^(1 - alpha)) / (alpha - 1).

    Order 1 is KL(p || out), order 0 is -log out(support of p), order infinity is log max p/out.

    Raises
    ------
    ParameterError
        For alpha < 0 or NaN.
    """
    if not alpha >= 0:
        msg = f"alpha={alpha!r} is outside [0, inf]"
        raise ParameterError(msg)
    p, out = as_pair(p, out)
    if alpha == 1:
        return _relative_entropy(p, out)
    xp = array_namespace(p, out)
    one = xp.ones_like(p + out)
    both = (p > 0) & (out > 0)
    outside, disjoint = xp.any((p > 0) & (out == 0), axis=-1), ~xp.any(both, axis=-1)
    log_p, log_out = xp.log(xp.where(both, p, one)), xp.log(xp.where(both, out, one))
    if alpha == _INFINITY:
        return _infinite_where(outside, xp.max(xp.where(both, log_p - log_out, -_INFINITY), axis=-1))
    order = scalar(alpha, p)
    terms = xp.where(both, order * log_p + (1 - order) * log_out, -_INFINITY)
    shift = xp.where(disjoint, 0, xp.max(terms, axis=-1))
    total = xp.sum(xp.exp(terms - shift[..., None]), axis=-1)
    value = (xp.log(xp.where(disjoint, 1, total)) + shift) / (order - 1)
    return _infinite_where(outside if alpha > 1 else disjoint, value)


def max_ratio(p: Array, out: Array) -> Array:
    """Overshoot max out/p over tokens with out > 0; infinite when out leaves the support of p."""
    p, out = as_pair(p, out)
    xp = array_namespace(p, out)
    possible = p > 0
    ratio = xp.where(possible, out / xp.where(possible, p, xp.ones_like(p)), xp.zeros_like(out))
    return _infinite_where(xp.any(~possible & (out > 0), axis=-1), xp.max(ratio, axis=-1))


def _relative_entropy(a: Array, b: Array) -> Array:
    """KL(a || b), clipped at zero where rounding leaves a negative sum."""
    xp = array_namespace(a, b)
    if hasattr(xp, "row_relative_entropy"):  # arrays that bound rows as a whole
        return xp.row_relative_entropy(a, b)
    one = xp.ones_like(a + b)
    both = (a > 0) & (b > 0)
    ratio = xp.where(both, a, one) / xp.where(both, b, one)
    terms = xp.where(both, a * xp.log(ratio), xp.zeros_like(a + b))
    return _infinite_where(xp.any((a > 0) & (b == 0), axis=-1), positive_part(xp.sum(terms, axis=-1)))


def _infinite_where(mask: Array, value: Array) -> Array:
    xp = array_namespace(value)
    return xp.where(mask, xp.full_like(value, _INFINITY), value)


DIVERGENCES = {
    "total_variation": total_variation,
    "kl": kl,
    "reverse_kl": reverse_kl,
    "js": js,
    "chi2": chi2,
    "hellinger": hellinger,
    "max_ratio": max_ratio,
}
