"""FLy as a renewal process: the law of the draft tokens a round keeps when matches come by chance.

A draft token matches the target's argmax with some probability. A match is kept. A mismatch is forgiven when its gate
is open (probability `gate`) and the `following` positions after it all match; nothing is forgiven in the last `window`
positions of a block; the first mismatch that is not forgiven ends the round, and the scan goes on behind the hits that
a forgiven mismatch has used up. A round emits one token more than it keeps: the correction, or the bonus token.

`following` is `window` in the FLy paper (arXiv 2511.22972, section 2.2) and `window - 1` in its released code.
Lengths are laid out as in block rules: entry n belongs to n kept draft tokens, n = 0..K.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from fly_theory import published
from fly_theory.arrays import Array, Number, array_namespace, device
from fly_theory.errors import InvalidInput, ParameterError, ShapeError
from fly_theory.parameters import Integers, Interval, Parametrised, parameter

__all__ = [
    "Adequacy",
    "Effects",
    "Fit",
    "Observed",
    "Optimum",
    "Process",
    "Profile",
    "adequacy",
    "expected_tokens",
    "fit",
    "fly_table4",
    "fly_table9",
    "iid",
    "implied_gate",
    "kept",
    "markov",
    "optimal_draft_length",
    "profile",
]

Floats = npt.NDArray[np.float64]
_PROBABILITY = Interval(0, 1)


# -- the process -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Process(Parametrised):
    """One round of FLy on matches that form a two-state Markov chain; `iid` and `markov` build it.

    With Fractions for all probabilities every result is an exact Fraction.

    Raises
    ------
    ParameterError
        For a probability outside [0, 1], K < 1, a negative window, or more following hits than the window is wide.
    """

    first: Number = parameter(_PROBABILITY, "probability of a match at the first position of a block")
    after_match: Number = parameter(_PROBABILITY, "probability of a match after a match")
    after_mismatch: Number = parameter(_PROBABILITY, "probability of a match after a mismatch")
    gate: Number = parameter(_PROBABILITY, "probability that a mismatch finds its gate open")
    window: int = parameter(Integers(0), "positions at the end of a block in which nothing is forgiven")
    draft_length: int = parameter(Integers(1), "draft length K")
    following: int = parameter(Integers(0), "hits that must follow a mismatch that is forgiven")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.following > self.window:
            msg = (
                f"following={self.following} is outside 0..window={self.window}: hits are looked for inside the window"
            )
            raise ParameterError(msg)

    def length_law(self) -> npt.NDArray[Any]:
        """Probability (K+1,) that exactly n draft tokens are kept, n = 0..K; float64, or object for Fractions."""
        law = _length_law(
            self.first,
            self.after_match,
            self.after_mismatch,
            self.gate,
            self.window,
            self.draft_length,
            self.following,
        )
        return np.array(law, dtype=object if any(isinstance(x, Fraction) for x in law) else np.float64)

    def expected_tokens(self) -> Any:
        """Expected number of tokens a round emits, the correction or bonus token counted."""
        return _mean_tokens(self.length_law())

    def variance(self) -> Any:
        """Variance of the number of tokens a round emits."""
        tokens = np.arange(1, self.draft_length + 2)
        law = self.length_law()
        return (law * (tokens - _mean_tokens(law)) ** 2).sum()

    def effects(self) -> "Effects":
        """What matches, gate, window and draft length are each worth in expected tokens a round."""
        settings = (self.window, self.draft_length, self.following)

        def slope(match_step: complex, gate_step: complex) -> float:
            first, after_match, after_mismatch = (
                float(match) + match_step for match in (self.first, self.after_match, self.after_mismatch)
            )
            law = _length_law(first, after_match, after_mismatch, float(self.gate) + gate_step, *settings)
            return float(_mean_tokens(np.array(law)).imag) / _COMPLEX_STEP

        here = float(self.expected_tokens())
        wider = dataclasses.replace(self, window=self.window + 1, following=self.following + 1)
        longer = dataclasses.replace(self, draft_length=self.draft_length + 1)
        return Effects(
            match=slope(_COMPLEX_STEP * 1j, 0),
            gate=slope(0, _COMPLEX_STEP * 1j),
            window=float(wider.expected_tokens()) - here,
            draft_length=float(longer.expected_tokens()) - here,
        )


# The law is a polynomial in the probabilities, so the imaginary part at a step this small is the derivative itself.
_COMPLEX_STEP = 1e-30


class Effects(NamedTuple):
    """Changes of the expected tokens a round.

    match, gate : slope in the probability of a match (at all positions alike) and of an open gate; a threshold theta
        acts through the gate alone, with slope -gate * density of the gate statistic at theta.
    window : change when the window and the hits it asks for grow by one.
    draft_length : change when K grows by one.
    """

    match: float
    gate: float
    window: float
    draft_length: float


def iid(match: Number, gate: Number, window: int, draft_length: int, *, following: int | None = None) -> Process:
    """The process in which every position matches independently with probability `match`."""
    return Process(
        first=match,
        after_match=match,
        after_mismatch=match,
        gate=gate,
        window=window,
        draft_length=draft_length,
        following=window if following is None else following,
    )


def markov(
    after_match: Number,
    after_mismatch: Number,
    gate: Number,
    window: int,
    draft_length: int,
    *,
    first: Number | None = None,
    following: int | None = None,
) -> Process:
    """The process in which a match depends on whether the position before matched.

    `first` is the probability at the first position, by default the stationary one.
    """
    if first is None:
        leaving, entering = 1 - after_match, after_mismatch
        if leaving + entering == 0:
            msg = "after_match=1 with after_mismatch=0 has no unique stationary law; give `first`"
            raise ParameterError(msg)
        first = entering / (leaving + entering)
    return Process(
        first=first,
        after_match=after_match,
        after_mismatch=after_mismatch,
        gate=gate,
        window=window,
        draft_length=draft_length,
        following=window if following is None else following,
    )


def expected_tokens(
    match: Number, gate: Number, window: int, draft_length: int, *, following: int | None = None
) -> Any:
    """Expected tokens a round with i.i.d. matches: probability `match` of a match, `gate` of an open gate.

    Counts the correction or bonus token. A float, or a Fraction when `match` and `gate` are Fractions. With `gate` 0
    or a window of at least K it is the strict value (1 - match^(K+1)) / (1 - match).

    Examples
    --------
    >>> import fly_theory as ft
    >>> round(float(ft.renewal.expected_tokens(0.9265, 0.91, 6, 15)), 2)
    12.63
    """
    return iid(match, gate, window, draft_length, following=following).expected_tokens()


def _length_law(
    first: Any, after_match: Any, after_mismatch: Any, gate: Any, window: int, draft_length: int, following: int
) -> list[Any]:
    # behind_match[j], behind_mismatch[j]: probability that position j is scanned, by what was kept just before it
    behind_match: list[Any] = [0] * (draft_length + 1)
    behind_mismatch: list[Any] = [0] * (draft_length + 1)
    all_follow = after_mismatch * after_match ** (following - 1) if following else 1
    law = []
    for j in range(draft_length):
        start = 1 if j == 0 else 0
        hit = start * first + behind_match[j] * after_match + behind_mismatch[j] * after_mismatch
        miss = start * (1 - first) + behind_match[j] * (1 - after_match) + behind_mismatch[j] * (1 - after_mismatch)
        forgiving = gate * all_follow if j + window < draft_length else 0
        law.append(miss * (1 - forgiving))
        behind_match[j + 1] += hit
        if forgiving != 0:
            behind = behind_match if following else behind_mismatch
            behind[j + 1 + following] += miss * forgiving
    law.append(behind_match[draft_length] + behind_mismatch[draft_length])
    return law


def _mean_tokens(law: npt.NDArray[Any]) -> Any:
    return (law * np.arange(1, len(law) + 1)).sum()


def kept(matches: Array, gates: Array, window: int, *, following: int | None = None) -> Array:
    """Draft tokens (...,) that a round keeps on given tapes: matches and open gates, both boolean (..., K)."""
    xp = array_namespace(matches, gates)
    length = matches.shape[-1]
    following = window if following is None else following
    forgiven = gates
    for step in range(1, following + 1):
        beyond = xp.zeros_like(matches[..., : min(step, length)])
        forgiven = forgiven & xp.concat([matches[..., step:], beyond], axis=-1)
    inside = xp.arange(length, device=device(matches)) + window < length
    stands = matches | (forgiven & inside)
    return xp.sum(xp.cumulative_prod(xp.astype(stands, xp.int32), axis=-1), axis=-1)


# -- the draft length that pays ----------------------------------------------------------------------------------------


class Optimum(NamedTuple):
    """The draft length K with most tokens per unit of time, and that rate for K = 1..longest."""

    draft_length: int
    rates: Floats


def optimal_draft_length(process: Process, round_time: Callable[[int], float], *, longest: int = 64) -> Optimum:
    """The draft length that maximises expected tokens a round over `round_time(K)`, searched over K = 1..longest.

    A result equal to `longest` means that the search was too short.
    """
    lengths = range(1, longest + 1)
    rates = [float(dataclasses.replace(process, draft_length=k).expected_tokens()) / round_time(k) for k in lengths]
    return Optimum(int(np.argmax(rates)) + 1, np.array(rates))


# -- fit to published figures ------------------------------------------------------------------------------------------


class Observed(NamedTuple):
    """A measured number of tokens a round, bonus counted, with its settings.

    `gate` is None where the probability of an open gate is to be fitted, else its known value: 1 for a gate that is
    off (theta = 0), 0 for one that never opens (theta = 1). `following` is as in `iid`.
    """

    tokens: float
    window: int
    draft_length: int
    gate: float | None = None
    following: int | None = None


class Fit(NamedTuple):
    """Probabilities of a match and of an open gate, and the relative errors predicted / observed - 1 they leave."""

    match: float
    gate: float
    errors: Floats


class Profile(NamedTuple):
    """At each value of one parameter: the best value of the other, and the sum of squared relative errors there."""

    values: Floats
    best_other: Floats
    objective: Floats


def fly_table4() -> list[Observed]:
    """The nine distinct settings of FLy Table 4 (70B) that two probabilities speak about; theta = 0.6 is left out."""
    base = {"W": 6, "theta": 0.3, "K": 15}
    gates = {0.0: 1.0, 0.3: None, 1.0: 0.0}
    settings: dict[tuple[int, float, int], float] = {}
    for row in published.table("fly_table4_ablation"):
        s = base | {row["hyperparameter"]: row["value"]}
        settings[int(s["W"]), s["theta"], int(s["K"])] = row["tau"]
    return [Observed(tau, w, k, gates[theta]) for (w, theta, k), tau in settings.items() if theta in gates]


def fly_table9() -> list[Observed]:
    """The four settings of FLy Table 9 (405B): W = 6, theta = 0.3, K from 15 to 30."""
    return [Observed(row["tau"], 6, int(row["K"])) for row in published.table("fly_table9_405b_k")]


def fit(published: Sequence[Observed]) -> Fit:
    """Match and gate probabilities by least squares of the relative errors of expected tokens, with those errors.

    Raises
    ------
    InvalidInput
        For fewer than two observations, or none with an unknown gate.

    Examples
    --------
    >>> import fly_theory as ft
    >>> match, gate, errors = ft.renewal.fit(ft.renewal.fly_table4())
    >>> f"{match:.3f} {gate:.2f} {abs(errors).max():.3f}"
    '0.926 0.91 0.031'
    """
    _check_identified(published)
    grid = np.linspace(0.05, 0.95, 10)
    start = min(((m, g) for m in grid for g in grid), key=lambda at: float((_errors(published, *at) ** 2).sum()))
    found = optimize.least_squares(lambda at: _errors(published, *at), start, bounds=(0, 1), xtol=1e-14, ftol=1e-14)
    match, gate = (float(x) for x in found.x)
    return Fit(match, gate, _errors(published, match, gate))


def profile(published: Sequence[Observed], over: Literal["match", "gate"], values: Sequence[float]) -> Profile:
    """The objective of `fit` along one parameter, minimised over the other: how sharply the data pin it down."""
    _check_identified(published)
    if over not in ("match", "gate"):
        msg = f"over={over!r} is neither 'match' nor 'gate'"
        raise InvalidInput(msg)

    def objective(other: float, value: float) -> float:
        match, gate = (value, other) if over == "match" else (other, value)
        return float((_errors(published, match, gate) ** 2).sum())

    best = [optimize.minimize_scalar(objective, bounds=(0, 1), args=(value,), method="bounded") for value in values]
    return Profile(np.array(values, dtype=np.float64), np.array([b.x for b in best]), np.array([b.fun for b in best]))


def implied_gate(observed: Observed, match: float) -> float:
    """The probability of an open gate at which `match` explains an observation: what a threshold theta amounts to.

    Raises
    ------
    InvalidInput
        When no gate explains it, with the tokens a closed and an open gate would give.
    """

    def excess(gate: float) -> float:
        return _predicted(observed, match, gate) - observed.tokens

    closed, opened = excess(0.0), excess(1.0)
    if not closed <= 0 <= opened:
        msg = (
            f"no gate explains {observed.tokens} tokens a round at match={match}: "
            f"{observed.tokens + closed:.4g} with it closed, {observed.tokens + opened:.4g} with it open"
        )
        raise InvalidInput(msg)
    return float(optimize.brentq(excess, 0.0, 1.0)) if opened > closed else 0.0


def _predicted(o: Observed, match: float, gate: float) -> float:
    following = o.window if o.following is None else o.following
    gate = gate if o.gate is None else o.gate
    return float(_mean_tokens(np.array(_length_law(match, match, match, gate, o.window, o.draft_length, following))))


def _errors(published: Sequence[Observed], match: float, gate: float) -> Floats:
    return np.array([_predicted(o, match, gate) / o.tokens - 1 for o in published])


def _check_identified(published: Sequence[Observed]) -> None:
    if len(published) < 2 or all(o.gate is not None for o in published):
        unknown = sum(o.gate is None for o in published)
        msg = f"{len(published)} observations, {unknown} with an unknown gate; two probabilities need at least 2 and 1"
        raise InvalidInput(msg)
    for o in published:
        if not o.tokens > 0:
            msg = f"an observation has tokens={o.tokens!r}; a round emits at least one"
            raise InvalidInput(msg)


# -- are matches independent? ------------------------------------------------------------------------------------------


class Adequacy(NamedTuple):
    """Whether the i.i.d. model explains match tapes.

    match, after_match, after_mismatch, gate : estimated probabilities.
    statistic, p_value : likelihood-ratio test of i.i.d. matches against a two-state Markov chain, on the transitions
        inside blocks; chi-squared with one degree of freedom when matches are independent.
    observed, standard_error : mean tokens a round on the tapes.
    iid, markov : expected tokens a round under either model.
    """

    match: float
    after_match: float
    after_mismatch: float
    gate: float
    statistic: float
    p_value: float
    observed: float
    standard_error: float
    iid: float
    markov: float


def adequacy(matches: Array, gates: Array, window: int, *, following: int | None = None) -> Adequacy:
    """Hold the i.i.d. model and its Markov extension against recorded rounds.

    The i.i.d. model is inadequate when `p_value` is small; how much that matters is the distance of `iid` from
    `observed`, next to `standard_error`.

    Parameters
    ----------
    matches, gates : (rounds, K)
        Whether each draft token matches the target's argmax, and whether the gate at its position is open.
    window, following :
        As in `iid`.

    Raises
    ------
    ShapeError
        When the tapes are not two arrays of one shape with at least two rounds of at least two positions.
    InvalidInput
        When no block has a mismatch followed by another position: then there is nothing to compare.
    """
    matches, gates = np.asarray(matches, dtype=bool), np.asarray(gates, dtype=bool)
    if matches.shape != gates.shape or matches.ndim != 2 or min(matches.shape) < 2:
        msg = f"matches {matches.shape} and gates {gates.shape} are to be of one shape (rounds >= 2, K >= 2)"
        raise ShapeError(msg)
    before, after = matches[:, :-1], matches[:, 1:]
    hits = np.array([after[~before].sum(), after[before].sum()], dtype=np.float64)
    cases = np.array([(~before).sum(), before.sum()], dtype=np.float64)
    if not cases.all():
        msg = (
            f"{int(cases[1])} positions come after a match and {int(cases[0])} after a mismatch; both kinds are needed"
        )
        raise InvalidInput(msg)
    pooled = hits.sum() / cases.sum()
    statistic = 2 * (_log_likelihood(hits, cases, hits / cases) - _log_likelihood(hits, cases, pooled))
    after_mismatch, after_match = (float(x) for x in hits / cases)
    match, gate = float(matches.mean()), float(gates[~matches].mean())
    length = matches.shape[1]
    tokens = 1 + kept(matches, gates, window, following=following)
    first = float(matches[:, 0].mean())
    chain = markov(after_match, after_mismatch, gate, window, length, first=first, following=following)
    return Adequacy(
        match=match,
        after_match=after_match,
        after_mismatch=after_mismatch,
        gate=gate,
        statistic=statistic,
        p_value=float(stats.chi2.sf(statistic, df=1)),
        observed=float(tokens.mean()),
        standard_error=float(tokens.std(ddof=1) / np.sqrt(len(tokens))),
        iid=float(expected_tokens(match, gate, window, length, following=following)),
        markov=float(chain.expected_tokens()),
    )


def _log_likelihood(hits: Floats, cases: Floats, probability: Any) -> float:
    misses = cases - hits
    return float((special.xlogy(hits, probability) + special.xlogy(misses, 1 - probability)).sum())
