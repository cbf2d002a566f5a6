"""The part of `check` that judges token-level rules: every invariant on drawn pairs, the refuted on small ones."""

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fly_theory
from fly_theory import divergence, invariants
from fly_theory.arrays import Array
from fly_theory.claim_text import TARGET_SUPPORT
from fly_theory.claims import Claim, FixedPoint, Lossless, OnTheLine
from fly_theory.distributions import trusted_inputs
from fly_theory.errors import ExactnessError, UndecidableError
from fly_theory.exact import exact
from fly_theory.interpreters import Interpreter
from fly_theory.invariants import FLOAT_TOLERANCE, Case, Invariant, RuleFailure, Violation
from fly_theory.invariants.base import values
from fly_theory.provers import theorem
from fly_theory.report import Report, Result, VerdictName, Witness, show
from fly_theory.rules.base import Rule
from fly_theory.search import Pair, drawn, smallest

__all__ = ["Source", "check_rule", "quoted"]

# How many simpler pairs are tried in place of a shrunk one; none for what was not asked, which is shown in passing.
_ENUMERATED = 2000

# Judged for every rule, claimed or not: they say what the rule is.
_INFORMATIVE = tuple(map(invariants.of_claim, (Lossless(), OnTheLine(), TARGET_SUPPORT, FixedPoint())))


class Source(NamedTuple):
    """How Python code makes a rule."""

    expression: str
    imports: tuple[str, ...] = ()


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True)
class _Arithmetic:
    """The numbers a rule is judged in."""

    description: str
    array: Callable[[Sequence[Fraction]], Array]

    def case(self, rule: Rule, pair: Pair) -> Case:
        return Case(rule, *map(self.array, pair))


_EXACT = _Arithmetic("exact", exact)


def _float64(reason: str) -> _Arithmetic:
    description = f"float64 within {FLOAT_TOLERANCE:g}, not exact: {reason}"
    return _Arithmetic(description, lambda row: np.array(row, dtype=np.float64))


@dataclass
class _Tally:
    """What the drawn pairs said about one invariant."""

    invariant: Invariant
    judged: int = 0
    refuted_by: Pair | None = None
    undecided: str = ""

    def look(self, case: Case, pair: Pair) -> None:
        if self.refuted_by is not None or not self.invariant.applies(case):
            return
        try:
            violation = self.invariant.judge(case)
        except RuleFailure:
            return
        except UndecidableError as error:
            self.undecided = str(error)
            return
        self.judged += 1
        self.refuted_by = pair if violation is not None else None


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
    pairs = drawn(cases, seed)
    arithmetic, tallies, extremes = _judged(rule, [*asked, *told], pairs)

    results = []
    for tally in tallies:
        invariant = tally.invariant
        proof = theorem(rule, claimed[invariant.name][1]) if invariant.name in claimed else None
        enumerated = _ENUMERATED if invariant in asked else 0
        find = partial(smallest, cases=cases, seed=seed, enumerated=enumerated)
        witness = _witness(tally, arithmetic, rule, source, find)
        if witness is not None:
            pair = witness.inputs["p"], witness.inputs["q"]
            extremes.look(arithmetic.case(rule, pair), pair)
        results.append(_result(tally, proof, witness, asked=invariant in asked))
    return Report(
        subject=subject,
        verdict=_verdict(results, slower=bool(extremes.measures)),
        results=tuple(results),
        tv=extremes.tv,
        max_ratio=extremes.max_ratio,
        measures=extremes.measures if _outcome(results, "lossless") != "refuted" else {},
        settings={
            "arithmetic": arithmetic.description,
            "pairs": len(pairs),
            "seed": seed,
            "fly-theory": fly_theory.__version__,
        },
    )


def _judged(
    rule: Rule, judged: Sequence[Invariant], pairs: Sequence[Pair]
) -> tuple[_Arithmetic, list[_Tally], _Extremes]:
    """Every pair under every invariant: exactly, or in float64 when the rule cannot be read exactly."""
    declared = rule.unreadable.get(Interpreter.EXACT)
    if declared is None:
        try:
            return _EXACT, *_tallied(rule, judged, pairs, _EXACT)
        except ExactnessError as error:
            declared = str(error)
    arithmetic = _float64(declared)
    return arithmetic, *_tallied(rule, judged, pairs, arithmetic)


def _tallied(
    rule: Rule, judged: Sequence[Invariant], pairs: Sequence[Pair], arithmetic: _Arithmetic
) -> tuple[list[_Tally], _Extremes]:
    tallies, extremes = [_Tally(invariant) for invariant in judged], _Extremes()
    for number, pair in enumerate(pairs):
        case = arithmetic.case(rule, pair)
        extremes.look(case, pair)
        for tally in tallies:
            if number % tally.invariant.stride == 0:
                tally.look(case, pair)
    return tallies, extremes


# -- results -----------------------------------------------------------------------------------------------------------


def _result(tally: _Tally, proof: str | None, witness: Witness | None, *, asked: bool) -> Result:
    name, cases = tally.invariant.name, tally.judged
    if witness is not None:
        detail = f"although {proof} says it is proved" if proof else "" if asked else _briefly(witness)
        return Result(name, "refuted", cases, witness if asked else None, detail, asked)
    if tally.undecided:
        return Result(name, "undecided", cases, detail=tally.undecided, asked=asked)
    if proof is not None:
        return Result(name, "proved", cases, detail=f"{proof}; held on {cases} pairs", asked=asked)
    return Result(name, "held" if cases else "not applicable", cases, asked=asked)


def _briefly(witness: Witness) -> str:
    inputs = ", ".join(f"{name} = {show(value)}" for name, value in witness.inputs.items())
    return f"at {inputs}: {witness.quantity} is {show(witness.got)}"


def _outcome(results: Sequence[Result], name: str) -> str:
    return next(result.outcome for result in results if result.name == name)


def _verdict(results: Sequence[Result], *, slower: bool) -> VerdictName:
    if any(_outcome(results, invariant.name) == "refuted" for invariant in invariants.STRUCTURAL):
        return "invalid"
    match _outcome(results, "lossless"):
        case "refuted":
            return "lossy"
        case "undecided":
            return "undecided"
    return "lossless but slower" if slower else "lossless"


# -- witnesses ---------------------------------------------------------------------------------------------------------


def _witness(
    tally: _Tally,
    arithmetic: _Arithmetic,
    rule: Rule,
    source: Source,
    find: Callable[[Callable[[Pair], bool]], Pair | None],
) -> Witness | None:
    if tally.refuted_by is None:
        return None

    def violation(pair: Pair) -> Violation | None:
        case = arithmetic.case(rule, pair)
        try:
            return tally.invariant.judge(case) if tally.invariant.applies(case) else None
        except (RuleFailure, UndecidableError, ExactnessError):
            return None

    pair = find(lambda pair: violation(pair) is not None) or tally.refuted_by
    found = violation(pair)
    if found is None:  # the rule answers differently from call to call, which `Pure` reports
        return None
    return Witness(
        inputs={"p": pair[0], "q": pair[1], **found.inputs},
        quantity=found.quantity,
        got=found.got,
        expected=found.expected,
        relation=found.relation,
        test=_test(tally.invariant, pair, source, is_exact=arithmetic is _EXACT),
    )


def _test(invariant: Invariant, pair: Pair, source: Source, *, is_exact: bool) -> str:
    """A pytest case that fails for as long as the rule breaks the invariant at the pair."""
    name = re.sub(r"\W+", "_", invariant.name).strip("_").lower()
    judge = _expression(invariant)
    imports = ["import fly_theory as ft", "from fly_theory import invariants", *source.imports]
    if "claim_from_text(" in judge:
        imports.insert(2, "from fly_theory.claim_text import claim_from_text")
    if "Fraction(" in judge + source.expression:
        imports.insert(0, "from fractions import Fraction\n")
    if not is_exact:
        imports.insert(0, "import numpy as np\n")
    rows = [", ".join(quoted(str(entry)) if is_exact else str(entry) for entry in row) for row in pair]
    p, q = (f"[{row}]" if is_exact else f"np.array([{row}], dtype=float)" for row in rows)
    body = [
        f"    rule = {source.expression}",
        f"    violation = {judge}.examine(rule, {p}, {q})",
        "    assert violation is None, violation",
    ]
    return "\n".join([*imports, "", "", f"def test_{name}():", *body])


def _expression(invariant: Invariant) -> str:
    """How Python code makes an invariant; one that holds a function is looked up by its name."""
    if all(field.repr for field in dataclasses.fields(invariant)):  # type: ignore[arg-type]
        return f"invariants.{invariant!r}"
    if invariant.name == str(TARGET_SUPPORT):
        return 'invariants.of_claim(claim_from_text("support"))'
    return f"invariants.of_claim(next(claim for claim in rule.claims if str(claim) == {quoted(invariant.name)}))"
