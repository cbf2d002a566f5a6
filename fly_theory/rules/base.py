"""The token-level rule: what it decides is written once, everything else is derived here.

Notation everywhere: target p and draft q, both (..., V); a draft token x is drawn from q and survives with mass
m(x) <= q(x); a rejected token is redrawn from the residual.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from fly_theory.any_rule import AnyRule
from fly_theory.arrays import (
    Array,
    array_namespace,
    first_true,
    holds_values,
    inverse_cdf,
    normalise,
    positive_part,
    take,
)
from fly_theory.claims import Induces
from fly_theory.distributions import as_pair, trusted_inputs
from fly_theory.errors import InvalidInput, ShapeError, ZeroResidualError


class Verdict(NamedTuple):
    """What a rule decides at one position, in mass form.

    accepted : (..., V)
        m(x), the draft mass that survives at each token, 0 <= m <= q.
    residual : (..., V)
        The unnormalised distribution a rejected token is redrawn from. When the redraw depends on the rejected token
        (see `Rule.residual_after`), its average over rejected tokens, with the mass that is rejected.
    """

    accepted: Array
    residual: Array


class Rule(AnyRule):
    """Base of every token-level rule: a frozen dataclass with one pure method, `verdict`.

    A subclass writes `verdict(self, p, q)` against the array API: no backend import, no random numbers, no branch on
    array values. Its arguments are validated before it is called. Whoever writes a rule whose redraw depends on the
    rejected token also writes `residual_after`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "verdict" in cls.__dict__:
            cls.verdict = _validated(cls.__dict__["verdict"])  # type: ignore[method-assign,assignment]

    def verdict(self, p: Array, q: Array) -> Verdict:
        """What survives of the draft q (..., V), and what a rejection is redrawn from, given the target p (..., V)."""
        raise NotImplementedError

    def residual_after(self, p: Array, q: Array, tokens: Array) -> Array:
        """Unnormalised distribution (..., V) redrawn from after `tokens` (...,) were rejected."""
        return self.verdict(p, q).residual

    # -- derived -----------------------------------------------------------------------------------------------------

    def acceptance(self, p: Array, q: Array) -> Array:
        """Probability (...,) that a draft token drawn from q is accepted: the sum of the accepted mass."""
        accepted, _ = self.verdict(p, q)
        return array_namespace(accepted).sum(accepted, axis=-1)

    def keep(self, p: Array, q: Array, tokens: Array) -> Array:
        """Probability (...,) that the draft tokens (...,) are accepted: m(x)/q(x), and 0 where q(x) = 0."""
        p, q = as_pair(p, q)
        check_tokens(tokens, q)
        xp = array_namespace(p, q)
        accepted, drafted = take(self.verdict(p, q).accepted, tokens), take(q, tokens)
        return accepted / xp.where(drafted > 0, drafted, xp.ones_like(drafted))

    def induced(self, p: Array, q: Array) -> Array:
        """Distribution (..., V) of the emitted token when the draft token comes from q.

        Raises
        ------
        ZeroResidualError
            Naming the first row that rejects with positive probability and has no residual to redraw from.
        """
        p, q = as_pair(p, q)
        with trusted_inputs():
            return self.induced_from(self.verdict(p, q), q)

    def induced_from(self, verdict: Verdict, q: Array, *, checked: bool = True) -> Array:
        """`induced`, given the verdict on (p, q): for who needs both.

        Unless `checked`, a row that rejects and has no residual does not raise: it holds the accepted mass alone.
        """
        accepted, residual = verdict
        rejected = array_namespace(accepted).sum(q - accepted, axis=-1)
        if checked:
            _check_residual(self, rejected, residual)
        return accepted + rejected[..., None] * normalise(residual)

    def sample(self, p: Array, q: Array, tokens: Array, uniforms: Array) -> Array:
        """Emitted token ids (...,) for draft tokens (...,) drawn from q.

        `uniforms` (..., 2) in [0, 1): the first decides (accept when u q(x) < m(x)), the second redraws by inverse CDF
        in order of token id.

        Raises
        ------
        ZeroResidualError
            Naming the first row whose rejected token has no residual to redraw from.
        """
        p, q = as_pair(p, q)
        check_tokens(tokens, q)
        check_uniforms(uniforms, 2)
        xp = array_namespace(p, q)
        with trusted_inputs():
            accepted = take(self.verdict(p, q).accepted, tokens)
            residual = self.residual_after(p, q, tokens)
        kept = uniforms[..., 0] * take(q, tokens) < accepted
        _check_residual(self, xp.where(kept, xp.zeros_like(accepted), xp.ones_like(accepted)), residual)
        return xp.where(kept, tokens, xp.astype(inverse_cdf(residual, uniforms[..., 1]), tokens.dtype))


def _validated(verdict: Callable[[Any, Array, Array], tuple[Array, Array]]) -> Callable[[Any, Array, Array], Verdict]:
    @functools.wraps(verdict)
    def checked(self: Any, p: Array, q: Array) -> Verdict:
        return Verdict(*verdict(self, *as_pair(p, q)))

    return checked


def check_tokens(tokens: Array, q: Array) -> None:
    dtype = str(tokens.dtype).split(".")[-1]
    if "int" not in dtype:
        msg = f"tokens have dtype {dtype}; token ids are integers"
        raise InvalidInput(msg)
    if holds_values(tokens):
        xp = array_namespace(tokens)
        bad = (tokens < 0) | (tokens >= q.shape[-1])
        if bool(xp.any(bad)):
            first = int(xp.reshape(tokens, (-1,))[int(first_true(xp.reshape(bad, (-1,))))])
            msg = f"tokens contain {first}; ids of this vocabulary are 0..{q.shape[-1] - 1}"
            raise InvalidInput(msg)


def check_uniforms(uniforms: Array, count: int) -> None:
    if uniforms.ndim < 1 or uniforms.shape[-1] != count:
        msg = f"uniforms have shape {tuple(uniforms.shape)}; expected (..., {count})"
        raise ShapeError(msg)
    if holds_values(uniforms):
        xp = array_namespace(uniforms)
        bad = ~((uniforms >= 0) & (uniforms < 1))
        if bool(xp.any(bad)):
            first = xp.reshape(uniforms, (-1,))[int(first_true(xp.reshape(bad, (-1,))))]
            msg = f"uniforms contain {first}; allowed are numbers in [0, 1)"
            raise InvalidInput(msg)


# Rejection probabilities below this are rounding, not rejections.
_REJECTION_ROUNDING = {"float64": 1e-12, "float32": 1e-5}


def lacks_residual(rejected: Array, residual: Array) -> Array:
    """Where (...,) a rejection probability (...,) is no rounding and the residual (..., V) is all zero."""
    xp = array_namespace(residual)
    exact = getattr(residual, "is_exact", False)
    rounding = 0 if exact else _REJECTION_ROUNDING[str(residual.dtype).split(".")[-1]]
    return (rejected > rounding) & ~(xp.sum(residual, axis=-1) > 0)


def _check_residual(rule: Rule, rejected: Array, residual: Array) -> None:
    if not holds_values(residual):
        return
    xp = array_namespace(residual)
    empty = lacks_residual(rejected, residual)
    if bool(xp.any(empty)):
        row = int(first_true(xp.reshape(empty, (-1,))))
        probability = xp.reshape(xp.broadcast_to(rejected, empty.shape), (-1,))[row]
        where = f"row {row} (batch axes flattened)" if empty.ndim else "the only row"
        msg = f"{rule.spec} rejects with probability {probability} in {where}, but its residual there is all zero"
        raise ZeroResidualError(msg)


def redraw_other(p: Array, rejected: Array) -> Array:
    """Average residual (..., V) of the rules that redraw from p without the rejected token.

    `rejected` (..., V) is the mass rejected at each token; after x, token v is redrawn with p(v) / (1 - p(x)), v != x.
    """
    share = _passed_on(p, rejected)
    return p * positive_part(array_namespace(p).sum(share, axis=-1, keepdims=True) - share)


def law_of_redrawing_other(rejected: Callable[[Array, Array], Array]) -> Induces:
    """The law of those rules, given the mass (..., V) that one rejects at each token of a pair p, q.

    To redraw from p without x is to redraw from the whole of p, 1 / (1 - p(x)) times as often.
    """

    def law(p: Array, q: Array) -> Array:
        share = _passed_on(p, rejected(p, q))
        return q - share + p * array_namespace(p).sum(share, axis=-1, keepdims=True)

    return Induces("q - r + p sum r, r = (q - m)/(1 - p)", law)


def _passed_on(p: Array, rejected: Array) -> Array:
    xp = array_namespace(p)
    others = 1 - p
    return rejected / xp.where(others > 0, others, xp.ones_like(others))
