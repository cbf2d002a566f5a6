"""Counterexamples: the smallest pair of rational distributions at which a claim of a rule fails, judged exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import fly_theory as ft
from fly_theory.claims import Claim, MonotoneIn
from fly_theory.errors import ExactnessError, FlyTheoryError, UndecidableError, ZeroResidualError
from fly_theory.parameters import parameters
from proofs.statements import altered, statements
from proofs.theorem import Subject

# Vocabulary size and largest denominator: pairs are tried with growing size, then growing denominator.
_EXTENT = ((2, 10), (3, 6), (4, 4))
_LISTED = 4


@dataclass(frozen=True)
class Witness:
    """A pair of distributions at which a claim fails: target p and draft q, and what the rule induces there, as fractions."""

    rule: str
    claim: str
    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    out: tuple[Fraction, ...] | None
    acceptance: Fraction

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, fractions as text."""
        return {
            "rule": self.rule,
            "claim": self.claim,
            "p": [str(x) for x in self.p],
            "q": [str(x) for x in self.q],
            "out": None if self.out is None else [str(x) for x in self.out],
            "acceptance": str(self.acceptance),
        }

    def __str__(self) -> str:
        def row(values: tuple[Fraction, ...]) -> str:
            return f"({', '.join(map(str, values))})"

        emitted = "no law: it rejects with nothing to redraw from" if self.out is None else f"out = {row(self.out)}"
        return f"{self.rule} at p = {row(self.p)}, q = {row(self.q)}: {emitted}, acceptance {self.acceptance}"


def refute(subject: Subject, cls: type) -> Witness | None:
    """The first counterexample to a subject, read with class `cls` in place of the registered rule; None when none is found."""
    for rule in _instances(cls, subject):
        for claim in subject.claims(rule):
            for other in _looser(rule, claim):
                for p, q in _pairs():
                    failed = _first_failure(claim, rule, p, q, other)
                    if failed is not None:
                        return _witness(claim, rule, other, p[failed], q[failed])
    return None


def _instances(cls: type, subject: Subject) -> Iterator[Any]:
    """The rule at its typical parameters."""
    values = []
    for declared in parameters(cls):
        if declared.name in subject.settings:
            values.append([subject.settings[declared.name]])
        else:
            values.append(list(declared.typical[:_LISTED]) or [declared.default])
    for chosen in product(*values):
        yield cls(**dict(zip((p.name for p in parameters(cls)), chosen, strict=True)))


def _looser(rule: Any, claim: Claim) -> Iterator[Any]:
    if not isinstance(claim, MonotoneIn):
        yield None
        return
    present = getattr(rule, claim.parameter)
    (declared,) = (p for p in parameters(type(rule)) if p.name == claim.parameter)
    for value in declared.typical:
        if value != present and (value < present) == (claim.looser == "smaller"):
            yield altered(rule, **{claim.parameter: value})


def _pairs() -> Iterator[tuple[Any, Any]]:
    """All pairs of distributions over V tokens in multiples of 1/D, one exact batch (..., V) for each V and D."""
    for size, largest in _EXTENT:
        for denominator in range(1, largest + 1):
            rows = list(_rows(size, denominator))
            targets, drafts = zip(*product(rows, rows), strict=True)
            yield ft.exact(list(targets)), ft.exact(list(drafts))


def _rows(size: int, denominator: int) -> Iterator[list[Fraction]]:
    for counts in product(range(denominator + 1), repeat=size - 1):
        if sum(counts) <= denominator:
            yield [Fraction(n, denominator) for n in (*counts, denominator - sum(counts))]


def _first_failure(claim: Claim, rule: Any, p: Any, q: Any, looser: Any) -> int | None:
    try:
        return _first_false(claim, rule, p, q, looser)
    except (ExactnessError, UndecidableError):  # irrational figures that cannot be compared show nothing
        return None
    except ZeroResidualError:
        for row in range(p.shape[0]):
            try:
                if _first_false(claim, rule, p[row : row + 1], q[row : row + 1], looser) is not None:
                    return row
            except ZeroResidualError:
                return row
    return None


def _first_false(claim: Claim, rule: Any, p: Any, q: Any, looser: Any) -> int | None:
    broken = np.zeros(p.shape[0], dtype=bool)
    for holds in statements(claim, rule, p, q, looser=looser):
        false = ~np.asarray(holds)
        broken |= false.any(axis=-1) if false.ndim > 1 else false
    return int(broken.argmax()) if broken.any() else None


def _witness(claim: Claim, rule: Any, looser: Any, p: Any, q: Any) -> Witness:
    """The law that the rule induces at the counterexample; the pair is judged once more, on its own."""
    if _first_failure(claim, rule, p[None, :], q[None, :], looser) is None:
        msg = f"{rule.spec} kept {claim} at p={p}, q={q} on its own, but not in a batch"
        raise FlyTheoryError(msg)
    try:
        out = tuple(rule.induced(p, q).tolist())
    except ZeroResidualError:
        out = None
    said = f"{claim}, against {looser.spec}" if looser is not None else str(claim)
    return Witness(rule.spec, said, tuple(p.tolist()), tuple(q.tolist()), out, rule.acceptance(p, q).item())
