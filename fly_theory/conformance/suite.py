"""The cases a verifier is tried on: those a caller describes, or a standing suite from smallest to largest."""

import functools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fly_theory.conformance.cases import Case
from fly_theory.conformance.exploration import Opaque, explore
from fly_theory.conformance.laws import ROUNDING, Law, Row, Table, Text, constant, pair_laws, read_row, read_table
from fly_theory.conformance.numbers import exact_array
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.pairs import ContextTreePair

__all__ = ["Setting", "Suite", "described", "standing"]

Drafter = Any
Goal = Callable[[Any, Any], Any]


class Setting(NamedTuple):
    """How drafts are drawn, what the verifier is told of them, and what it must emit; None for what is usual."""

    drafter: Drafter
    told: Any
    goal: Goal | None
    candidates: tuple[Text, ...] | None
    eos: int | None


class Suite(NamedTuple):
    """The cases of a run.

    exact : for exact execution
    sampled : for tests on samples, which cost more
    plain : one case of K = 1 without ties or zeros, which is transformed to see whether the answer follows
    edges : cases of K = 1 to try at the ends of the unit interval
    """

    exact: list[Case]
    sampled: list[Case]
    plain: Case
    edges: list[Case]


def described(target: Any, setting: Setting, length: int) -> Suite:
    """The cases of a target law given by the caller: K = 1..length, or that of the candidates.

    Raises
    ------
    DistributionError, ShapeError, InvalidInput
        For tables that are no laws or do not fit together.
    """
    given = read_table(target, "target")
    tables = {name: read_table(value, name, normalised=name != "told") for name, value in _tables(setting).items()}
    if not tables:
        msg = "target is given without a draft law; give drafter= a law, or told= one that the drafter is to draw from"
        raise InvalidInput(msg)
    for name, table in tables.items():
        if table.vocabulary > given.vocabulary:
            msg = f"{name} has {table.vocabulary} tokens and target {given.vocabulary}; pad the target with zeros"
            raise ShapeError(msg)
    rounding = max(table.rounding for table in (given, *tables.values()))
    rows = tables.get("drafter") or tables["told"]
    base = _case(given, rows, given.vocabulary, setting, tables, rounding)
    if setting.candidates is not None:
        depth = _check_candidates(setting.candidates, rows.vocabulary)
        cases = [base(depth, min(length, depth + 1))]
        return Suite(cases, cases, cases[0], cases)
    cases = [base(draft_length, min(length, draft_length + 1)) for draft_length in range(1, length + 1)]
    return Suite(cases, cases, cases[0], cases[:1])


def standing(setting: Setting, length: int, seed: int) -> Suite:
    """Pairs from V = 2 with quarters for masses to random rows that differ by prefix, with zeros and ties.

    Raises
    ------
    InvalidInput
        For a setting that is given in numbers, which need a target to go with them.
    """
    numbers = [*_tables(setting), *(["candidates"] if setting.candidates is not None else [])]
    if numbers:
        msg = f"{' and '.join(numbers)} given without target; give target= the law p that goes with it"
        raise InvalidInput(msg)

    def case(laws: tuple[Law, Law], vocabulary: int, draft_length: int, positions: int) -> Case:
        return _case(*laws, vocabulary, setting, {}, Fraction(0))(draft_length, positions)

    def tree(kind: str, vocabulary: int, depth: int, shift: int = 0) -> tuple[Law, Law]:
        make = ContextTreePair.random if kind == "random" else ContextTreePair.adversarial
        return pair_laws(make(vocabulary, depth, seed + shift, exact=True))

    small = [case(laws, 2, 1, 1) for laws in _quarter_pairs()]
    awkward = [
        case(tree("adversarial", vocabulary, 2, i), vocabulary, 1, min(length, 2))
        for vocabulary in (2, 3, 4)
        for i in range(4)
    ]
    deep = [
        case(tree(kind, vocabulary, draft_length + 1), vocabulary, draft_length, min(length, draft_length + 1))
        for draft_length in range(1, length + 1)
        for kind in ("random", "adversarial")
        for vocabulary in ((2, 3) if draft_length > 1 else (3, 5))
    ]
    plain = case(tree("random", 3, 2), 3, 1, min(length, 2))
    edge = case((constant(_EDGE_TARGET), constant(_EDGE_DRAFT)), 4, 1, 1)
    block = min(length, 2)
    sampled = [plain, case(tree("adversarial", 3, 3), 3, block, min(length, block + 1))]
    return Suite([*small, *awkward, plain, *deep], sampled, plain, [edge, plain])


# Zeros at both ends of the vocabulary, for either law alone and for both.
_EDGE_TARGET = (Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(0))
_EDGE_DRAFT = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(0))


def _quarter_pairs() -> Iterator[tuple[Law, Law]]:
    rows = [(Fraction(i, 4), Fraction(4 - i, 4)) for i in range(5)]
    for p in rows:
        for q in rows:
            yield constant(p), constant(q)


def _tables(setting: Setting) -> dict[str, Any]:
    """The settings that are given in numbers."""
    named = {"drafter": setting.drafter, "told": setting.told}
    return {name: value for name, value in named.items() if value is not None and not callable(value)}


def _check_candidates(candidates: Sequence[Text], vocabulary: int) -> int:
    depths = {len(path) for path in candidates}
    if len(depths) != 1 or 0 in depths or not all(0 <= token < vocabulary for path in candidates for token in path):
        msg = f"candidates={candidates!r}: allowed are paths of one length K >= 1, of token ids 0..{vocabulary - 1}"
        raise InvalidInput(msg)
    return depths.pop()


def _case(
    given: Law, rows: Law, vocabulary: int, setting: Setting, tables: dict[str, Table], rounding: Fraction
) -> Callable[[int, int], Case]:
    """A maker of cases of given draft length and positions, from the target and draft rows of one pair."""
    told: Law | None = tables.get("told")
    drawn: Law | None = tables.get("drafter")
    goal, drafted_goal = given, False
    if told is None:
        told = rows
        if setting.told is not None:
            told, inexact = _computed(setting.told, "told", rows, width=len(rows(())), normalised=False)
            rounding = max(rounding, inexact)
    if drawn is None:
        drawn = rows if setting.drafter is None else _drawn_by(setting.drafter, told)
    if setting.goal is not None:
        goal, inexact = _computed(setting.goal, "goal", given, told, width=vocabulary)
        rounding = max(rounding, inexact)
        drafted_goal = goal(()) != _computed(setting.goal, "goal", given, given, width=vocabulary)[0](())

    def case(draft_length: int, positions: int) -> Case:
        sizes = (vocabulary, draft_length, positions)
        return Case(given, told, drawn, goal, *sizes, setting.eos, setting.candidates, rounding, drafted_goal)

    return case


def _computed(function: Any, name: str, *laws: Law, width: int, normalised: bool = True) -> tuple[Law, Fraction]:
    """The law whose rows a function makes from those of other laws, and the rounding that its numbers bring."""

    def row(text: Text) -> list[Any]:
        made = list(function(*(_array(law(text)) for law in laws)))
        if len(made) != width:
            msg = f"what {name} returns has {len(made)} entries; expected a row of {width} tokens"
            raise ShapeError(msg)
        return made

    rounding = ROUNDING if any(isinstance(value, float) for value in row(())) else Fraction(0)
    return functools.cache(lambda text: read_row(row(text), f"what {name} returns", normalised=normalised)), rounding


def _drawn_by(drafter: Callable[[Any, Any], Any], rows: Law) -> Law:
    """The law of the token that a drafter draws when it is handed a row."""

    @functools.cache
    def law(text: Text) -> Row:
        row = rows(text)
        try:
            leaves = explore(lambda rng: drafter(_array(row), rng))
        except Opaque as opaque:
            msg = (
                f"drafter cannot be followed exactly ({opaque}); it may compare rng.random() with numbers, and use "
                "rng.choice(weights)"
            )
            raise InvalidInput(msg) from None
        masses = [Fraction(0)] * len(row)
        for leaf in leaves:
            if not (isinstance(leaf.value, int | np.integer) and 0 <= leaf.value < len(row)):
                msg = f"drafter returns {leaf.value!r}; allowed are token ids 0..{len(row) - 1}"
                raise InvalidInput(msg)
            masses[leaf.value] += leaf.probability
        return tuple(masses)

    return law


def _array(row: Row) -> Any:
    return exact_array(row, (len(row),))
