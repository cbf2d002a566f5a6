"""Is this verifier lossless? A black box is executed exactly if it lets itself, and sampled if it does not."""

import time
from collections.abc import Sequence
from typing import Any

from fly_theory.claims import Claim, Lossless
from fly_theory.conformance.explored import Explored, NotExact
from fly_theory.conformance.guard import CallFailed, Verifier
from fly_theory.conformance.observations import Observations, observe
from fly_theory.conformance.sampled import Sampled
from fly_theory.conformance.suite import Goal, Setting, Suite, described, standing
from fly_theory.conformance.summary import check_claims, invalid, summarise
from fly_theory.conformance.told import told_findings
from fly_theory.errors import InvalidInput
from fly_theory.report import Report, Result, Witness

__all__ = ["conformance"]

# A law is judged by the sequential test, an interval for its TV and one for its rate: each gets a share of the budget.
_TESTS_A_LAW = 3
# Laws beyond those of the cases: the plain case and its changes.
_CHANGED_LAWS = 10
_SHARING = "one uniform a decision"


def conformance(
    verifier: Verifier,
    drafter: Any = None,
    *,
    target: Any = None,
    told: Any = None,
    goal: Goal | None = None,
    candidates: Sequence[Sequence[int]] | None = None,
    length: int = 3,
    eos: int | None = None,
    claims: Sequence[Claim] = (Lossless(),),
    seed: int = 0,
    false_alarm: float = 1e-6,
    resolution: float = 0.03,
    call_seconds: float = 5.0,
    seconds: float = 120.0,
    coin_bits: int | None = None,
) -> Report:
    """Find the law of the text that a verifier emits, and hold it against the target's.

    The verifier is called as `verifier(target_probs, draft_probs, draft_tokens, rng)` with the target rows p (K+1, V),
    the draft rows q^ (K, V) and the drafted token ids (K,), and returns the list of emitted token ids: the drafts it
    keeps and one more token. If it uses its randomness by comparing `rng.random()` with numbers and by
    `rng.choice(weights)` alone, every outcome is explored and its law comes out as fractions. If it does not, or is
    written for floats, the law is found to within rounding, or tested on samples until a deviation of TV `resolution`
    would have been seen.

    Laws are tables: a row (V,), or rows (C, V) or (C, C, V) by the last one or two tokens, where token 0 stands for
    what is before the text. Decimals and "3/10" are read as written.

    Parameters
    ----------
    verifier : callable
        With an attribute `batch(target_probs (B, K+1, V), draft_probs (B, K, V), draft_tokens (B, K), rng)` that
        returns B lists, requests in a batch are checked too.
    drafter : table, or callable (row, rng) -> token
        The law q that drafts are really drawn from, or how they are drawn when the drafter has this row. By default
        they are drawn from the row the verifier is told.
    target : table
        The law p; by default a standing suite of small pairs, random ones among them.
    told : table, or callable row -> row
        The draft rows q^ that the verifier is handed, when they are not the drafter's.
    goal : callable (p_row, q_row) -> row
        The law the emitted tokens must follow, when it is not the target row handed over: for a verifier that warps its
        rows itself, or is lossless for another law.
    candidates : paths of K token ids
        Handed over together, with rows (M, K+1, V) and (M, K, V), to a verifier of several candidates.
    length : int
        Joint laws are compared over up to this many positions, with K = 1..length.
    eos : int
        A text ends with this token; what is emitted after it counts as wrong.
    claims : Lossless and Ceiling objects
        What `Report.ok` is about.
    seed, false_alarm, resolution
        Of random pairs and samples; the chance of calling a lossless verifier lossy, over all samples; the TV to be
        found.
    call_seconds, seconds
        Time limit of one call (in the main thread), and after which no further case is begun.
    coin_bits : int
        Explore uniforms on the grid of multiples of 2^-coin_bits instead of real ones.

    Returns
    -------
    Report
        Verdict "lossless", "lossless but slower", "lossy", "invalid" (a call failed: it raised, hung, or returned no
        token ids; the result "runs" has the inputs) or "undecided" (time ran out before the resolution was reached).

    Raises
    ------
    DistributionError, ShapeError, InvalidInput
        For laws and settings that are not allowed.

    Examples
    --------
    >>> import fly_theory as ft
    >>> def verifier(target_probs, draft_probs, draft_tokens, rng):
    ...     for i, token in enumerate(draft_tokens):
    ...         p, q = target_probs[i], draft_probs[i]
    ...         if rng.random() * q[token] >= p[token]:
    ...             return [*draft_tokens[:i], rng.choice(p)]
    ...     return [*draft_tokens, rng.choice(target_probs[-1])]
    >>> report = ft.conformance(verifier, ["3/4", "1/4"], target=["1/2", "1/2"], length=1)
    >>> report.verdict, report.tv, report["lossless"].witness.got
    ('lossy', Fraction(1, 8), (Fraction(5, 8), Fraction(3, 8)))
    """
    check_claims(claims)
    _check(length, false_alarm, resolution)
    paths = None if candidates is None else tuple(tuple(int(token) for token in path) for path in candidates)
    setting = Setting(drafter, told, goal, paths, eos)
    suite = standing(setting, length, seed) if target is None else described(target, setting, length)
    subject = getattr(verifier, "__qualname__", type(verifier).__name__)
    settings: dict[str, Any] = {"seed": seed}
    laws = len(suite.sampled) + _CHANGED_LAWS + 2 * len(paths or ())
    common: dict[str, Any] = {"verifier": verifier, "call_seconds": call_seconds}
    exact = [Explored(**common, floats=floats, coin_bits=coin_bits) for floats in (False, True)]
    chance = false_alarm / (_TESTS_A_LAW * laws)
    samples = Sampled(**common, seed=seed, chance=chance, resolution=resolution)
    told_of_drafts = list(told_findings(suite.exact)) if drafter is not None or told is not None else []
    try:
        judge, seen = _observe(exact, samples, suite, seconds)
    except CallFailed as failed:
        return invalid(subject, failed, settings, told_of_drafts)
    settings = {"method": judge.method, "calls": judge.calls, **settings}
    if judge is samples:
        settings |= {"false alarms": false_alarm, "detectable TV": samples.detectable}
    seen.informing.extend(told_of_drafts)
    return summarise(subject, seen, claims, settings, enough=not samples.out_of_time)


def _observe(
    exact: Sequence[Explored], samples: Sampled, suite: Suite, seconds: float
) -> tuple[Explored | Sampled, Observations]:
    """What is seen by the first judge that can follow the verifier."""
    for explored in exact:
        try:
            seen = observe(explored, suite.exact, suite, time.monotonic() + seconds)
        except NotExact:
            continue
        seen.informing.append(_sharing(explored))
        return explored, seen
    samples.deadline = time.monotonic() + seconds
    seen = observe(samples, suite.sampled, suite, samples.deadline)
    seen.informing.append(Result(_SHARING, "not applicable", detail="seen in exact execution alone", asked=False))
    return samples, seen


def _sharing(explored: Explored) -> Result:
    if not explored.shared:
        return Result(_SHARING, "held", explored.calls, asked=False)
    first = explored.shared[0]
    witness = Witness(
        {**first.case.shown(), "draft tokens": first.drafts}, "what one uniform decides", first.what, "one thing"
    )
    return Result(_SHARING, "refuted", explored.calls, witness, first.what, asked=False)


def _check(length: int, false_alarm: float, resolution: float) -> None:
    if not (isinstance(length, int) and length >= 1):
        msg = f"length={length!r} is not allowed; a joint law is over an integer number >= 1 of positions"
        raise InvalidInput(msg)
    for name, value in (("false_alarm", false_alarm), ("resolution", resolution)):
        if not 0 < value < 1:
            msg = f"{name}={value!r} is outside (0, 1)"
            raise InvalidInput(msg)
