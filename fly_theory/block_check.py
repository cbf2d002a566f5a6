"""The part of `check` that judges block rules: every invariant on small pairs whose rows depend on the last token."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import fly_theory
from fly_theory.arithmetic import Arithmetic, most_exact
from fly_theory.blocks.base import BlockRule
from fly_theory.claims import Claim, FixedPoint, Lossless
from fly_theory.errors import ExactnessError, UndecidableError
from fly_theory.invariants import RuleFailure, Violation, block_level
from fly_theory.invariants.base import values
from fly_theory.invariants.block_level import BlockCase, BlockInvariant
from fly_theory.provers import theorem
from fly_theory.report import Report, Witness
from fly_theory.search import drawn, shrunk
from fly_theory.strategies import Chain, chains
from fly_theory.tally import Tally, result, verdict_of
from fly_theory.witness_test import Source, pytest_case, quoted

__all__ = ["check_block_rule"]

# Judged for every block rule, claimed or not.
_INFORMATIVE = tuple(map(block_level.of_claim, (Lossless(), FixedPoint())))

# A chain costs some ten times what a pair of rows does.
_PAIRS_PER_CHAIN = 5


def check_block_rule(
    rule: BlockRule, claims: Sequence[Claim], *, subject: str, source: Source, cases: int, seed: int
) -> Report:
    """The report on a block rule that makes these claims.

    `subject` is what the report calls it; `source` is how pasted tests make it.
    """
    claimed = {invariant.name: (invariant, claim) for claim in claims for invariant in [block_level.of_claim(claim)]}
    asked = [*(invariant for invariant, _ in claimed.values()), *block_level.STRUCTURAL]
    told = [invariant for invariant in _INFORMATIVE if invariant.name not in claimed]
    cases = -(-cases // _PAIRS_PER_CHAIN)
    met = drawn(chains(), cases, seed)
    arithmetic, (tallies, tv) = most_exact(rule, partial(_tallied, rule, [*asked, *told], met))

    results = []
    for tally in tallies:
        name = tally.invariant.name
        proof = theorem(rule, claimed[name][1]) if name in claimed else None
        witness = _witness(tally, arithmetic, rule, source, cases, seed)
        results.append(result(tally, proof, witness, asked=tally.invariant in asked))
    return Report(
        subject=subject,
        verdict=verdict_of(results, [invariant.name for invariant in block_level.STRUCTURAL], slower=False),
        results=tuple(results),
        tv=tv,
        settings={
            "arithmetic": arithmetic.description,
            "pairs": len(met),
            "seed": seed,
            "fly-theory": fly_theory.__version__,
        },
    )


def _tallied(
    rule: BlockRule, judged: Sequence[BlockInvariant], met: Sequence[Chain], arithmetic: Arithmetic
) -> tuple[list[Tally], Any]:
    """Every chain under every invariant, and the largest TV between the law of the text and the target's."""
    tallies = [Tally(invariant) for invariant in judged]
    tv: Any = Fraction(0)
    for number, chain in enumerate(met):
        case = _case(rule, chain, arithmetic)
        tv = max(tv, _distance(case))
        for tally in tallies:
            if number % tally.invariant.stride == 0:
                tally.look(case, chain)
    return tallies, tv


def _case(rule: BlockRule, chain: Chain, arithmetic: Arithmetic) -> BlockCase:
    draft_length, target, draft = chain
    return BlockCase(rule, arithmetic.array(target), arithmetic.array(draft), draft_length)


def _distance(case: BlockCase) -> Any:
    try:
        return values(case.xp.sum(case.xp.abs(case.text_law - case.target_text_law)) / 2)
    except (RuleFailure, UndecidableError):
        return Fraction(0)


def _witness(
    tally: Tally, arithmetic: Arithmetic, rule: BlockRule, source: Source, cases: int, seed: int
) -> Witness | None:
    if tally.violation is None:
        return None
    invariant: BlockInvariant = tally.invariant

    def violation(chain: Chain) -> Violation | None:
        case = _case(rule, chain, arithmetic)
        try:
            return invariant.judge(case) if invariant.applies(case) else None
        except (RuleFailure, UndecidableError, ExactnessError):
            return None

    chain = shrunk(lambda chain: violation(chain) is not None, chains(), cases, seed) or tally.refuted_by
    found = violation(chain)
    if found is None:  # a rule that answers differently from call to call
        chain, found = tally.refuted_by, tally.violation
    draft_length, target, draft = chain
    return Witness(
        inputs={"drafts a round": draft_length, "target": target, "draft": draft, **found.inputs},
        quantity=found.quantity,
        got=found.got,
        expected=found.expected,
        relation=found.relation,
        test=_test(invariant, chain, source, arithmetic),
    )


def _test(invariant: BlockInvariant, chain: Chain, source: Source, arithmetic: Arithmetic) -> str:
    draft_length, target, draft = chain
    judge = f"block_level.{invariant!r}"
    if any(callable(getattr(invariant, field.name)) for field in dataclasses.fields(invariant)):  # type: ignore[arg-type]
        claim = f"next(claim for claim in rule.claims if str(claim) == {quoted(invariant.name)})"
        judge = f"block_level.of_claim({claim})"
    arguments = [arithmetic.written(target), arithmetic.written(draft), str(draft_length)]
    return pytest_case(invariant.name, judge, source, arguments, ["from fly_theory.invariants import block_level"])
