"""What replay measures of a rule on the rows of one block, and what each measure tells a reader."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from math import log as natural_log
from typing import NamedTuple, TypeVar

from fly_theory import divergence
from fly_theory.arrays import Array, array_namespace, holds_values, positive_part, take
from fly_theory.closed_form import block_efficiency
from fly_theory.distributions import trusted_inputs
from fly_theory.rules.accept_set import AllowedSetRule
from fly_theory.rules.base import Rule, lacks_residual
from gpu.replaying.elementary import largest, log, log_of_one_and_share

__all__ = [
    "BASELINE",
    "DISTANCES",
    "KEEP",
    "LEAST",
    "MATCHED",
    "MEASURES",
    "MOST",
    "UNDEFINED",
    "Further",
    "Judged",
    "Measure",
    "Pair",
    "efficiency",
    "measure",
    "measure_draft",
    "measure_rows",
    "of_block",
    "prefixed",
]


T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """A named quantity, what it tells, and between which ends its mean lies."""

    label: str
    meaning: str
    low: float = 0.0
    high: float = inf


MEASURES = {
    "tokens_per_call": Measure(
        "tokens per call",
        "block efficiency: tokens a target call yields, the recovered or bonus token counted. Speed-up follows from it "
        "and from what a draft step costs",
        low=1,
    ),
    "accepted_per_call": Measure(
        "accepted per call",
        "the same without the recovered or bonus token: how many draft tokens of a block survive on average",
    ),
    "gain_over_lossless": Measure(
        "gain",
        "tokens per call more than lossless verification makes of the same draft tokens; the interval is that of the "
        "paired difference",
        low=-inf,
    ),
    "acceptance": Measure(
        "accepted",
        "probability that a draft token survives, over every position of the drafted paths, also those that a decoder "
        "reaches only if all earlier tokens survive",
        high=1,
    ),
    "tv": Measure(
        "TV",
        "total variation between output and target: the probability that an emitted token is not the one the target "
        "alone would have emitted, however well the two are coupled",
        high=1,
    ),
    "kl": Measure(
        "KL(p‖out)",
        "excess nats a token of the target's own text costs under the output; infinite where the output rules out a "
        "token that the target can write",
    ),
    "reverse_kl": Measure(
        "KL(out‖p)",
        "excess nats a token of the output costs under the target, as a perplexity measured with the target would show "
        "it; infinite where the output leaves the target's support",
    ),
    "js": Measure(
        "JS", "Jensen-Shannon divergence in nats, at most log 2, finite whatever the supports", high=natural_log(2)
    ),
    "max_ratio": Measure(
        "max out/p",
        "overshoot: the largest factor by which a token is made more likely than under the target. Large factors come "
        "from tokens the target finds nearly impossible; what matters is whether a rule bounds them",
    ),
    "waste": Measure(
        "waste",
        "distance from the TV line: the divergence that buys no acceptance. At zero no rule with this acceptance is "
        "closer to the target",
        high=2,
    ),
    "argmax_flip": Measure(
        "argmax flips",
        "share of positions where no most probable output token is a most probable token of the target",
        high=1,
    ),
    "outside_support": Measure(
        "outside support", "probability of emitting a token to which the target gives none", high=1
    ),
}

# The measures of an output against a target.
DISTANCES = ("tv", "kl", "reverse_kl", "js", "max_ratio", "waste", "argmax_flip", "outside_support")

# Prefixes: the same measures against the matched truncated target p_A, and those of what a rule is held against:
# lossless verification of p_A, or of the rule's own output law (`gpu.replaying.baselines`).
MATCHED = "matched_"
BASELINE = "baseline_"

# Prefixes: the ends between which a measure surely lies, where tokens are unseen; without prefix, what stands between.
LEAST = "least_"
MOST = "most_"


class Pair(NamedTuple):
    """Target and draft on some rows of a block, and what every rule needs of them.

    p, q : (rows, V)
        Target and draft.
    peak : (rows, 1)
        The greatest probability of the target.
    apart : (rows,)
        TV(p, q).
    """

    p: Array
    q: Array
    peak: Array
    apart: Array

    @classmethod
    def of(cls, p: Array, q: Array) -> "Pair":
        """A pair of valid rows."""
        xp = array_namespace(p, q)
        with trusted_inputs():
            return cls(p, q, xp.max(p, axis=-1, keepdims=True), divergence.total_variation(p, q))


class Judged(NamedTuple):
    """What a rule does on some rows of a block.

    p, q, accepted, out : (rows, V)
        Target, draft, the draft mass that survives, and the distribution of the emitted token.
    tokens : (rows,)
        The draft tokens.
    """

    rule: Rule
    p: Array
    q: Array
    accepted: Array
    out: Array
    tokens: Array


# Further values of a rule beside its measures, by name: one a row, (rows,) each. A plan carries such functions
# (`Plan.further`); each is called once a rule and chunk of rows, in the same pass as the measures, and its values land
# in the tally of the rule under their names. It is written like a rule: array operations only, no branch on values, no
# random numbers, so that it can be compiled into the pass; a frozen dataclass carries constants.
Further = Callable[[Judged], dict[str, Array]]

# Of rows being traced: where there is nothing to redraw from, which could not be raised as an error.
UNDEFINED = "undefined"

# Probability that the draft token of a row survives, from which `of_block` makes block efficiency.
KEEP = "keep"


def measure(
    rule: Rule, p: Array, q: Array, tokens: Array, further: Iterable[Further] = (), *, checked: bool = True
) -> dict[str, Array]:
    """Every measure of a rule on one block: target p (K, V), draft q (K, V), draft tokens (K,), rows known to be valid.

    Returns one array (K,) a measure, or (1,) where it belongs to the whole block. A rule with an allowed set A is also
    measured against the target truncated to A (names with the prefix `matched_`), beside the lossless verification of
    that target (prefix `baseline_`). The values of `further` join them.

    Raises
    ------
    ZeroResidualError
        The rule rejects in some row and has nothing to redraw from. Unless `checked`: then the measures of the output
        (`DISTANCES`, also with the prefix `matched_`) mean nothing in that row.
    """
    return of_block(measure_rows(rule, Pair.of(p, q), tokens, further, checked=checked))


def measure_rows(
    rule: Rule, pair: Pair, tokens: Array, further: Iterable[Further] = (), *, checked: bool = True
) -> dict[str, Array]:
    """`measure` on any rows of a block, one value a row: what `of_block` needs in place of the values of a block."""
    p, q = pair.p, pair.q
    xp = array_namespace(p, q)
    with trusted_inputs():
        verdict = rule.verdict(p, q)
        out = rule.induced_from(verdict, q, checked=checked)
        rejected = xp.sum(q - verdict.accepted, axis=-1)
        compared = _compared(pair, out)
        measures = efficiency(verdict.accepted, q, tokens) | _distances(compared, rejected)
        if isinstance(rule, AllowedSetRule):
            measures |= _matched(rule, pair, tokens, compared, rejected)
        judged = Judged(rule, p, q, verdict.accepted, out, tokens)
        for values in further:
            measures |= values(judged)
        if checked and not holds_values(out):
            measures[UNDEFINED] = xp.astype(lacks_residual(rejected, verdict.residual), q.dtype)
    return measures


def measure_draft(pair: Pair, tokens: Array) -> dict[str, Array]:
    """The pair itself: the distances of the draft from the target, and which draft tokens q gives no mass; (rows,)."""
    q, apart = pair.q, pair.apart
    xp = array_namespace(q)
    distances = _distances(_compared(pair, q), xp.zeros_like(apart))
    return distances | {"impossible_drafts": xp.astype(take(q, tokens) == 0, q.dtype)}


def of_block(measures: dict[str, Array]) -> dict[str, Array]:
    """The values of all rows of a block, with those that belong to the block as a whole, (1,), in their places."""
    finished = dict(measures)
    for prefix in ("", BASELINE):
        if f"{prefix}{KEEP}" in finished:
            keep = finished.pop(f"{prefix}{KEEP}")
            finished[f"{prefix}accepted_per_call"] = block_efficiency(keep).accepted_per_call[None]
    return finished


def efficiency(accepted: Array, q: Array, tokens: Array) -> dict[str, Array]:
    """Acceptance (rows,) of a verifier from the draft mass (rows, V) it accepts, and what `of_block` needs of it."""
    xp = array_namespace(accepted)
    survives, drafted = take(accepted, tokens), take(q, tokens)
    return {
        "acceptance": xp.sum(accepted, axis=-1),
        KEEP: survives / xp.where(drafted > 0, drafted, xp.ones_like(drafted)),
    }


class _Compared(NamedTuple):
    """An output beside a target.

    target, out, ratio, logs : (rows, V)
        Both distributions, t = out / target, and log t; finite, and without meaning where target or out is 0.
    modes : (rows, V)
        Which tokens are most probable under the target.
    apart : (rows,)
        Total variation between the target and the draft.
    """

    target: Array
    out: Array
    ratio: Array
    logs: Array
    modes: Array
    apart: Array


def _compared(pair: Pair, out: Array) -> _Compared:
    xp = array_namespace(out)
    ratio = out * (1 / xp.clip(pair.p, min=xp.finfo(out.dtype).smallest_normal))
    return _Compared(pair.p, out, ratio, log(ratio), pair.p == pair.peak, pair.apart)


def _matched(rule: AllowedSetRule, pair: Pair, tokens: Array, compared: _Compared, rejected: Array) -> dict[str, Array]:
    """The measures against the matched target p_A, and those of its lossless verification.

    On A, out / p_A is p(A) times out / p, and so one logarithm a token serves both; TV(p, p_A) is 1 - p(A).
    """
    p, q = pair.p, pair.q
    xp = array_namespace(p, q)
    allowed = xp.where(rule.allowed_set(p), p, xp.zeros_like(p))
    mass = xp.sum(allowed, axis=-1, keepdims=True)
    target = rule.matched_target(p)
    matched = _Compared(
        target=target,
        out=compared.out,
        ratio=mass * compared.ratio,
        logs=log(mass) + compared.logs,
        modes=allowed == xp.max(allowed, axis=-1, keepdims=True),
        apart=divergence.total_variation(target, q),
    )
    baseline = efficiency(xp.minimum(q, target), q, tokens) | {"tv": positive_part(1 - mass[..., 0])}
    return prefixed(MATCHED, _distances(matched, rejected)) | prefixed(BASELINE, baseline)


def _distances(compared: _Compared, rejected: Array) -> dict[str, Array]:
    """The divergences of `fly_theory.divergence` and the other distances, from sums that share their terms.

    With t = out / target, Jensen-Shannon is sum (target + out)/2 log(1 + |target - out| / (target + out)) less half of
    sum min(target, out) |log t|: two logarithms a token, and none that loses digits where out is close to the target.
    """
    target, out, ratio, logs, modes, apart = compared
    xp = array_namespace(target, out)
    zero = xp.zeros_like(out)
    gap, both = xp.abs(target - out), target + out

    def total(terms: Array) -> Array:
        return xp.sum(terms, axis=-1)

    outside = total(xp.where(target == 0, out, zero))
    missing = total(xp.where(out == 0, target, zero))
    middle = total(both * log_of_one_and_share(gap, both))
    shared = total(xp.minimum(target, out) * xp.abs(logs))
    tv = total(gap) / 2
    return {
        "tv": tv,
        "kl": _infinite_where(missing > 0, positive_part(-total(target * logs))),
        "reverse_kl": _infinite_where(outside > 0, positive_part(total(out * logs))),
        "js": positive_part(middle - shared) / 2,
        "max_ratio": _infinite_where(outside > 0, largest(ratio)),
        # The gap is never negative; rounding would make it so.
        "waste": positive_part(tv - apart + rejected),
        "argmax_flip": xp.astype(largest(xp.where(modes, out, zero)) < largest(out), out.dtype),
        "outside_support": outside,
    }


def _infinite_where(mask: Array, value: Array) -> Array:
    xp = array_namespace(value)
    return xp.where(mask, xp.full_like(value, inf), value)


def prefixed(prefix: str, measures: dict[str, T]) -> dict[str, T]:
    """Measures under names that begin with a prefix."""
    return {f"{prefix}{name}": values for name, values in measures.items()}
