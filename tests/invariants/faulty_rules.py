"""Small rules, each with one fault of its own."""

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fly_theory.arrays import array_namespace, inverse_cdf, normalise, one_hot, positive_part, take
from fly_theory.parameters import Interval, parameter
from fly_theory.rules.base import Rule, Verdict


@dataclass(frozen=True)
class Sound(Rule):
    """The lossless rule, for the others to spoil."""

    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(p, q), positive_part(p - q))


class Crashes(Sound):
    def verdict(self, p, q):
        if p[0] == 0:
            msg = "no luck"
            raise RuntimeError(msg)
        return super().verdict(p, q)


class WrongShape(Sound):
    def verdict(self, p, q):
        accepted, residual = super().verdict(p, q)
        return Verdict(accepted[..., :1], residual)


class SamplerCrashes(Sound):
    def sample(self, p, q, tokens, uniforms):
        msg = "no residual"
        raise IndexError(msg)


class ForgetsToRedraw(Sound):
    """Its verdict has a residual, its sampler has none."""

    def residual_after(self, p, q, tokens):
        return p * 0


class AcceptsMoreThanDrafted(Sound):
    def verdict(self, p, q):
        return Verdict(2 * array_namespace(p, q).minimum(p, q), positive_part(p - q))


class NegativeResidual(Sound):
    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(p, q), p - q)


class NegativeAccepted(Sound):
    def verdict(self, p, q):
        return Verdict(p - q, p)


class EmptyResidual(Sound):
    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(p, q), p * 0)


class NotRenormalised(Sound):
    def induced(self, p, q):
        accepted, residual = self.verdict(p, q)
        return accepted + residual * residual


class Negative(Sound):
    def induced(self, p, q):
        return 2 * p - q


class OffTheClosedForm(Sound):
    """Its sampler redraws from the target."""

    def residual_after(self, p, q, tokens):
        return p


class CoinTheOtherWay(Sound):
    """Keeps on the upper part of [0, 1): the right law from the wrong coins."""

    def sample(self, p, q, tokens, uniforms):
        xp = array_namespace(p, q)
        flipped = xp.stack([1 - uniforms[..., 0], uniforms[..., 1]], axis=-1)
        return super().sample(p, q, tokens, xp.where(flipped < 1, flipped, flipped * 0))


class OneUniformForBoth(Sound):
    def sample(self, p, q, tokens, uniforms):
        xp = array_namespace(p, q)
        return super().sample(p, q, tokens, xp.stack([uniforms[..., 0], uniforms[..., 0]], axis=-1))


class KeepsAtTheEdge(Sound):
    """Accepts with u <= m/q, hence tokens without mass at u = 0."""

    def sample(self, p, q, tokens, uniforms):
        xp = array_namespace(p, q)
        accepted, residual = self.verdict(p, q)
        kept = uniforms[..., 0] * take(q, tokens) <= take(accepted, tokens)
        return xp.where(kept, tokens, inverse_cdf(residual, uniforms[..., 1]))


class RedrawsFromTheTop(Sound):
    """Runs its inverse CDF from the last token down."""

    def sample(self, p, q, tokens, uniforms):
        xp = array_namespace(p, q)
        accepted, residual = self.verdict(p, q)
        kept = uniforms[..., 0] * take(q, tokens) < take(accepted, tokens)
        return xp.where(kept, tokens, p.shape[-1] - 1 - inverse_cdf(xp.flip(residual, axis=-1), uniforms[..., 1]))


class KeepsTheImpossible(Sound):
    """Says of tokens that the draft cannot produce that they are kept."""

    def keep(self, p, q, tokens):
        xp = array_namespace(p, q)
        kept = super().keep(p, q, tokens)
        return xp.where(take(q, tokens) > 0, kept, xp.ones_like(kept))


class SamplesFromNothing(EmptyResidual):
    """Emits token 0 where it has nothing to redraw from."""

    def sample(self, p, q, tokens, uniforms):
        return tokens * 0


class LikesTokenZero(Sound):
    """Keeps token 0 whatever the target says."""

    def verdict(self, p, q):
        first = one_hot(np.asarray(0), p)
        accepted = array_namespace(p, q).minimum(p, q) * (1 - first) + q * first
        return Verdict(accepted, positive_part(p - accepted))


class CountsTokens(Sound):
    """Accepts less, the larger the vocabulary."""

    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(p, q) / p.shape[-1], p)


class SharesRows(Sound):
    """Looks at the whole batch where it should look at a row."""

    def verdict(self, p, q):
        xp = array_namespace(p, q)
        return Verdict(xp.minimum(p, q) * xp.max(p), p)


class Mutates(Sound):
    """Renormalises its target in place."""

    def verdict(self, p, q):
        found = super().verdict(p, q)
        if isinstance(p, np.ndarray):
            p[...] = normalise(p * p)
        return found


_calls = itertools.count()


class Forgets(Sound):
    """Another answer at every call."""

    def verdict(self, p, q):
        accepted, _ = super().verdict(p, q)
        accepted = accepted / (next(_calls) + 1)
        return Verdict(accepted, p - accepted)


class ChangesItsMind(Sound):
    """Redraws from the target at every third call, and is sound at the others."""

    def verdict(self, p, q):
        found = super().verdict(p, q)
        return Verdict(found.accepted, p) if next(_calls) % 3 == 0 else found


class Guesses(Sound):
    """Answers NaN with a distribution instead of an error."""

    def induced(self, p, q):
        return super().induced(np.full_like(p, 1 / len(p)), q) if np.isnan(p).any() else super().induced(p, q)


class HidesEmptyResiduals(EmptyResidual):
    """Puts the lost mass on token 0 and says nothing."""

    def induced(self, p, q):
        accepted, _ = self.verdict(p, q)
        return accepted + one_hot(np.asarray(0), p) * (1 - array_namespace(p).sum(accepted, axis=-1))


@dataclass(frozen=True)
class Greedy(Rule):
    """Keeps all of the draft up to a share, which is unsound in every way a claim can name."""

    share: Fraction = parameter(
        Interval(0, 1), "kept share of the draft", default=Fraction(1, 2), typical=(0, Fraction(1, 2), 1)
    )

    def verdict(self, p, q):
        share = self.exact("share") if getattr(p, "is_exact", False) else float(self.share)
        return Verdict(q * share, p)


@dataclass(frozen=True)
class Floored(Rule):
    """Keeps a little mass everywhere in the residual, so that it never is empty."""

    floor: Fraction

    def verdict(self, p, q):
        residual = positive_part(p - q)
        floor = self.floor if getattr(p, "is_exact", False) else float(self.floor)
        return Verdict(array_namespace(p, q).minimum(p, q), residual + floor)
