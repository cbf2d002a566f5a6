"""The part of `check` that judges token-level rules: every invariant on drawn pairs, the refuted on small ones."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import fly_theory
from fly_theory import divergence, invariants
from fly_theory.arithmetic import Arithmetic, most_exact
from fly_theory.claim_text import TARGET_SUPPORT
from fly_theory.claims import Claim, FixedPoint, Lossless, OnTheLine
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import ExactnessError, UndecidableError
from fly_theory.invariants import Case, Invariant, RuleFailure, Violation
from fly_theory.invariants.base import values
from fly_theory.provers import theorem
from fly_theory.report import Report, Witness
from fly_theory.rules.base import Rule
from fly_theory.search import Pair, drawn_pairs, smallest
from fly_theory.tally import Tally, result, verdict_of
from fly_theory.witness_test import Source, pytest_case, quoted

__all__ = ["check_rule"]

# How many simpler pairs are tried in place of a shrunk one; none for what was not asked, which is shown in passing.
_ENUMERATED = 2000

# Judged for every rule, claimed or not: they say what the rule is.
_INFORMATIVE = tuple(map(invariants.of_claim, (Lossless(), OnTheLine(), TARGET_SUPPORT, FixedPoint())))


@dataclass
class _Extremes:
    """The largest TV(out, p) and out/p over the drawn pairs, and where acceptance falls short most."""

    tv: Any = Fraction(0)
    max_ratio: Any = Fraction(0)
    shortfall: Any = Fraction(0)
    measures: dict[str, Any] = dataclasses.field(default_factory=dict)

    def look(self, case: Case, pair: Pair) -> None:
        try:
            with trusted_inputs():
                tv, acceptance, ratio = case.total_variation, case.acceptance, divergence.max_ratio(case.p, case.out)
        except (RuleFailure, UndecidableError):
            return
        self.tv = max(self.tv, values(tv))
        self.max_ratio = max(self.max_ratio, values(ratio) if bool(case.xp.isfinite(ratio)) else float("inf"))
        possible = 1 - case.distance(case.p, case.q)
        shortfall = values(possible - acceptance)
        if shortfall > max(self.shortfall, case.tolerance):
            self.shortfall = shortfall
            self.measures = {
                "acceptance": values(acceptance),
                "where sum min(p, q) is": values(possible),
                "at p": pair[0],
                "q": pair[1],
            }


def check_rule(rule: Rule, claims: Sequence[Claim], *, subject: str, source: Source, cases: int, seed: int) -> Report:
    """The report on a rule that makes these claims.

    `subject` is what the report calls it; `source` is how pasted tests make it.
    """
    claimed = {invariant.name: (invariant, claim) for claim in claims for invariant in [invariants.of_claim(claim)]}
    asked = [*(invariant for invariant, _ in claimed.values()), *invariants.STRUCTURAL]
    told = [invariant for invariant in _INFORMATIVE if invariant.name not in claimed]
    met = drawn_pairs(cases, seed)
    arithmetic, (tallies, extremes) = most_exact(rule, partial(_tallied, rule, [*asked, *told], met))

    results = []
    for tally in tallies:
        invariant = tally.invariant
        proof = theorem(rule, claimed[invariant.name][1]) if invariant.name in claimed else None
        enumerated = _ENUMERATED if invariant in asked else 0
        find = partial(smallest, cases=cases, seed=seed, enumerated=enumerated)
        witness = _witness(tally, arithmetic, rule, source, find)
        if witness is not None:
            pair = witness.inputs["p"], witness.inputs["q"]
            extremes.look(_case(rule, pair, arithmetic), pair)
        results.append(result(tally, proof, witness, asked=invariant in asked))
    verdict = verdict_of(
        results, [invariant.name for invariant in invariants.STRUCTURAL], slower=bool(extremes.measures)
    )
    return Report(
        subject=subject,
        verdict=verdict,
        results=tuple(results),
        tv=extremes.tv,
        max_ratio=extremes.max_ratio,
        measures=extremes.measures if verdict == "lossless but slower" else {},
        settings={
            "arithmetic": arithmetic.description,
            "pairs": len(met),
            "seed": seed,
            "fly-theory": fly_theory.__version__,
        },
    )


def _tallied(
    rule: Rule, judged: Sequence[Invariant], met: Sequence[Pair], arithmetic: Arithmetic
) -> tuple[list[Tally], _Extremes]:
    """Every pair under every invariant."""
    tallies, extremes = [Tally(invariant) for invariant in judged], _Extremes()
    for number, pair in enumerate(met):
        case = _case(rule, pair, arithmetic)
        extremes.look(case, pair)
        for tally in tallies:
            if number % tally.invariant.stride == 0:
                tally.look(case, pair)
    return tallies, extremes


def _case(rule: Rule, pair: Pair, arithmetic: Arithmetic) -> Case:
    return Case(rule, *map(arithmetic.array, pair))


# -- witnesses ---------------------------------------------------------------------------------------------------------


def _witness(
    tally: Tally,
    arithmetic: Arithmetic,
    rule: Rule,
    source: Source,
    find: Callable[[Callable[[Pair], bool]], Pair | None],
) -> Witness | None:
    if tally.violation is None:
        return None

    def violation(pair: Pair) -> Violation | None:
        case = _case(rule, pair, arithmetic)
        try:
            return tally.invariant.judge(case) if tally.invariant.applies(case) else None
        except (RuleFailure, UndecidableError, ExactnessError):
            return None

    pair = find(lambda pair: violation(pair) is not None) or tally.refuted_by
    found = violation(pair)
    if found is None:  # a rule that answers differently from call to call
        pair, found = tally.refuted_by, tally.violation
    return Witness(
        inputs={"p": pair[0], "q": pair[1], **found.inputs},
        quantity=found.quantity,
        got=found.got,
        expected=found.expected,
        relation=found.relation,
        test=_test(tally.invariant, pair, source, arithmetic),
    )


def _test(invariant: Invariant, pair: Pair, source: Source, arithmetic: Arithmetic) -> str:
    judge = _expression(invariant)
    needed = ["from fly_theory.claim_text import claim_from_text"] if "claim_from_text(" in judge else []
    return pytest_case(invariant.name, judge, source, list(map(arithmetic.written, pair)), needed)


def _expression(invariant: Invariant) -> str:
    """How Python code makes an invariant; one that holds a function is looked up by its name."""
    if not any(callable(getattr(invariant, field.name)) for field in dataclasses.fields(invariant)):  # type: ignore[arg-type]
        return f"invariants.{invariant!r}"
    if invariant.name == str(TARGET_SUPPORT):
        return 'invariants.of_claim(claim_from_text("support"))'
    return f"invariants.of_claim(next(claim for claim in rule.claims if str(claim) == {quoted(invariant.name)}))"
