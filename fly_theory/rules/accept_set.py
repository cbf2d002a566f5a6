"""Shared shape of the rules built on an allowed set A of the target (RULES: accept-set and truncated families)."""

from fly_theory.arrays import Array, array_namespace, positive_part
from fly_theory.claims import Claim, Induces, SupportWithin
from fly_theory.distributions import restrict
from fly_theory.rules.base import Rule, Verdict


def splice(allowed: Array, q: Array, rest: Array) -> Array:
    """The draft q on the allowed set, all other mass from the law `rest`: q 1_A + (1 - q(A)) rest, all (..., V)."""
    xp = array_namespace(q, rest)
    zero = xp.zeros_like(q)
    return xp.where(allowed, q, zero) + xp.sum(xp.where(allowed, zero, q), axis=-1, keepdims=True) * rest


class AllowedSetRule(Rule):
    """A rule that speaks of an allowed set of the target."""

    def allowed_set(self, p: Array) -> Array:
        """The allowed set of a target p (..., V), a boolean mask (..., V)."""
        raise NotImplementedError

    def matched_target(self, p: Array) -> Array:
        """The target p (..., V) conditioned on the allowed set: what the fair lossless baseline samples from."""
        return restrict(p, self.allowed_set(p))


class AcceptSetRule(AllowedSetRule):
    """Accept exactly the tokens of the allowed set, redraw from the target."""

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        return Verdict(accepted=xp.where(self.allowed_set(p), q, xp.zeros_like(q)), residual=p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Induces("q 1_A + (1 - q(A)) p", self._law),)

    def _law(self, p: Array, q: Array) -> Array:
        return splice(self.allowed_set(p), q, p)


class TruncatedTargetRule(AllowedSetRule):
    """Verify losslessly against the truncated target: the matched fair baseline of an accept-set rule."""

    def verdict(self, p: Array, q: Array) -> Verdict:
        xp = array_namespace(p, q)
        target = self.matched_target(p)
        return Verdict(accepted=xp.minimum(q, target), residual=positive_part(target - q))

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (
            Induces("p_A", lambda p, q: self.matched_target(p)),
            SupportWithin("the allowed set", lambda p, q: self.allowed_set(p)),
        )
