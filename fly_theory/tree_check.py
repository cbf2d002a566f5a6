"""The part of `check` that judges tree rules: every invariant on small pairs, topologies and ways to draw."""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from hypothesis import strategies as st

import fly_theory
from fly_theory.arithmetic import Arithmetic, most_exact
from fly_theory.claims import Claim, Lossless
from fly_theory.errors import ExactnessError, UndecidableError
from fly_theory.invariants import RuleFailure, Violation, tree_level
from fly_theory.invariants.base import values
from fly_theory.invariants.tree_level import TreeCase, TreeInvariant
from fly_theory.report import Report, Witness
from fly_theory.search import drawn, shrunk
from fly_theory.strategies import Distribution, distributions
from fly_theory.tally import Tally, result, verdict_of
from fly_theory.trees.base import TreeRule
from fly_theory.trees.tree import Drawing, Parents
from fly_theory.witness_test import Source, pytest_case

__all__ = ["check_tree_rule"]

Grown = tuple[Drawing, Parents, tuple[Distribution, ...], tuple[Distribution, ...]]

# A grown tree costs more than a pair of rows does.
_PAIRS_PER_TREE = 2

# Topologies from small to large, at most two tokens deep.
_TOPOLOGIES: tuple[Parents, ...] = ((0,), (0, 0), (0, 1), (0, 0, 1), (0, 1, 1), (0, 0, 1, 2), (0, 0, 1, 1))


@st.composite
def _grown(draw: st.DrawFn, drawings: tuple[Drawing, ...]) -> Grown:
    """How siblings are drawn, a topology, and rows of a target and a draft that depend on the last token."""
    drawing, size = draw(st.sampled_from(drawings)), draw(st.integers(1, 3))
    parents = draw(st.sampled_from(_TOPOLOGIES[: 5 if size == 3 else None]))
    most = max(parents.count(parent) for parent in parents)
    rows = st.lists(distributions(size, max_weight=4), min_size=size, max_size=size).map(tuple)
    needed = {"with-replacement": 0, "deterministic": 1, "without-replacement": most}[drawing]
    enough = rows.filter(lambda found: all(sum(x > 0 for x in row) >= needed for row in found))
    if drawing != "with-replacement" and most > size:
        parents = (0,)
        enough = rows
    return drawing, parents, draw(rows), draw(enough)


def check_tree_rule(
    rule: TreeRule, claims: Sequence[Claim], *, subject: str, source: Source, cases: int, seed: int
) -> Report:
    """The report on a tree rule that makes these claims.

    `subject` is what the report calls it; `source` is how pasted tests make it.
    """
    claimed = [tree_level.of_claim(claim) for claim in claims]
    asked = [*claimed, *tree_level.STRUCTURAL]
    told = [] if claimed else [tree_level.of_claim(Lossless())]
    cases = -(-cases // _PAIRS_PER_TREE)
    met = drawn(_grown(rule.drawings), cases, seed)
    arithmetic, (tallies, tv) = most_exact(rule, partial(_tallied, rule, [*asked, *told], met))
    witnesses = [_witness(tally, arithmetic, rule, source, cases, seed) for tally in tallies]
    results = [
        result(tally, None, witness, asked=tally.invariant in asked)
        for tally, witness in zip(tallies, witnesses, strict=True)
    ]
    return Report(
        subject=subject,
        verdict=verdict_of(results, [invariant.name for invariant in tree_level.STRUCTURAL], slower=False),
        results=tuple(results),
        tv=tv,
        settings={
            "arithmetic": arithmetic.description,
            "siblings": ", ".join(rule.drawings),
            "trees": len(met),
            "seed": seed,
            "fly-theory": fly_theory.__version__,
        },
    )


def _tallied(
    rule: TreeRule, judged: Sequence[TreeInvariant], met: Sequence[Grown], arithmetic: Arithmetic
) -> tuple[list[Tally], Any]:
    """Every grown tree under every invariant, and the largest TV between the law of the text and the target's."""
    tallies = [Tally(invariant) for invariant in judged]
    tv: Any = Fraction(0)
    for number, grown in enumerate(met):
        case = _case(rule, grown, arithmetic)
        tv = max(tv, _distance(case))
        for tally in tallies:
            if number % tally.invariant.stride == 0:
                tally.look(case, grown)
    return tallies, tv


def _case(rule: TreeRule, grown: Grown, arithmetic: Arithmetic) -> TreeCase:
    drawing, parents, target, draft = grown
    return TreeCase(rule, arithmetic.array(target), arithmetic.array(draft), parents, drawing)


def _distance(case: TreeCase) -> Any:
    try:
        return values(case.xp.sum(case.xp.abs(case.text_law - case.target_text_law)) / 2)
    except (RuleFailure, UndecidableError):
        return Fraction(0)


def _witness(
    tally: Tally, arithmetic: Arithmetic, rule: TreeRule, source: Source, cases: int, seed: int
) -> Witness | None:
    if tally.violation is None:
        return None
    invariant: TreeInvariant = tally.invariant

    def violation(grown: Grown) -> Violation | None:
        case = _case(rule, grown, arithmetic)
        try:
            return invariant.judge(case) if invariant.applies(case) else None
        except (RuleFailure, UndecidableError, ExactnessError):
            return None

    grown = shrunk(lambda grown: violation(grown) is not None, _grown(rule.drawings), cases, seed) or tally.refuted_by
    found = violation(grown)
    if found is None:  # a rule that answers differently from call to call
        grown, found = tally.refuted_by, tally.violation
    drawing, parents, target, draft = grown
    arguments = [arithmetic.written(target), arithmetic.written(draft), repr(parents), repr(drawing)]
    return Witness(
        inputs={"siblings": drawing, "parents": parents, "target": target, "draft": draft, **found.inputs},
        quantity=found.quantity,
        got=found.got,
        expected=found.expected,
        relation=found.relation,
        test=pytest_case(
            invariant.name,
            f"tree_level.{invariant!r}",
            source,
            arguments,
            ["from fly_theory.invariants import tree_level"],
        ),
    )
