"""Counterexamples: the smallest pair of rational distributions at which a claim of a rule fails, judged exactly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import fly_theory as ft
from fly_theory.claims import Claim, MonotoneIn
from fly_theory.errors import ExactnessError, FlyTheoryError, ParameterError, UndecidableError, ZeroResidualError
from fly_theory.parameters import parameters
from proofs.statements import altered, statements

if TYPE_CHECKING:
    from proofs.finite import Model

# Vocabulary size and largest denominator: pairs are tried with growing size, then growing denominator.
_EXTENT = ((2, 10), (3, 6), (4, 4))
_LISTED = 4


Figures = Fraction | float | tuple[Fraction, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Witness:
    """Where a claim fails: what goes in (target p and draft q, as fractions), and what the rule makes of it."""

    rule: str
    claim: str
    inputs: Mapping[str, Figures]
    found: Mapping[str, Figures]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, fractions as text."""
        return {"rule": self.rule, "claim": self.claim, "inputs": _texts(self.inputs), "found": _texts(self.found)}

    def __str__(self) -> str:
        return f"{self.rule} at {_row(self.inputs)}: {_row(self.found)}"


def _texts(figures: Mapping[str, Figures]) -> dict[str, Any]:
    return {name: list(map(str, x)) if isinstance(x, tuple) else str(x) for name, x in figures.items()}


def _row(figures: Mapping[str, Figures]) -> str:
    shown = {name: f"({', '.join(x)})" if isinstance(x, list) else x for name, x in _texts(figures).items()}
    return ", ".join(f"{name} = {x}" for name, x in shown.items())


def refute(subject: Any, settings: Mapping[str, Any], claims: Callable[[Any], Sequence[Claim]]) -> Witness | None:
    """The first counterexample to what `claims` says of a rule, or of a class of rules; None when none is found.

    Parameters of a class that are not in `settings` take their typical values, or their default; with neither, nothing
    is tried. A rule that cannot be run over batches of rationals has no counterexample here.
    """
    for rule in _instances(subject, settings) if isinstance(subject, type) else [subject]:
        for claim in claims(rule):
            for other in _looser(rule, claim):
                for p, q in _pairs():
                    failed = _first_failure(claim, rule, p, q, other)
                    if failed is not None:
                        return _witness(claim, rule, other, p[failed], q[failed])
    return None


def judged(subject: Any, model: "Model") -> Witness | None:
    """The counterexample that a solver proposes, if it is one when judged exactly."""
    try:
        rule = subject(**model.settings) if isinstance(subject, type) else subject
        claim = model.claim(rule)
        looser = altered(rule, **{claim.parameter: model.looser}) if isinstance(claim, MonotoneIn) else None
    except ParameterError:
        return None
    p, q = (ft.exact([*row[:-1], 1 - sum(row[:-1])]) for row in (model.p, model.q))
    if bool((p < 0).any() or (q < 0).any()) or _first_failure(claim, rule, p[None, :], q[None, :], looser) is None:
        return None
    return _witness(claim, rule, looser, p, q)


def _instances(cls: type, settings: Mapping[str, Any]) -> Iterator[Any]:
    values = []
    for declared in parameters(cls):
        if declared.name in settings:
            values.append([settings[declared.name]])
        else:
            values.append(list(declared.typical[:_LISTED]) or ([] if declared.required else [declared.default]))
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
            rows = list(distributions(size, denominator))
            targets, drafts = zip(*product(rows, rows), strict=True)
            yield ft.exact(list(targets)), ft.exact(list(drafts))


def distributions(size: int, denominator: int) -> Iterator[list[Fraction]]:
    """All distributions over `size` tokens in multiples of 1/denominator."""
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
    except FlyTheoryError:
        raise
    except Exception:  # whatever a rule raises that cannot be run over these numbers
        return None
    return None


def _first_false(claim: Claim, rule: Any, p: Any, q: Any, looser: Any) -> int | None:
    broken = np.zeros(p.shape[0], dtype=bool)
    for holds in statements(claim, rule, p, q, looser=looser):
        false = ~np.asarray(holds)
        broken |= false.any(axis=-1) if false.ndim > 1 else false
    return int(broken.argmax()) if broken.any() else None


def _witness(claim: Claim, rule: Any, looser: Any, p: Any, q: Any) -> Witness:
    """What the rule makes of the counterexample; the pair is judged once more, on its own."""
    if _first_failure(claim, rule, p[None, :], q[None, :], looser) is None:
        msg = f"{rule.spec} kept {claim} at p={p}, q={q} on its own, but not in a batch"
        raise FlyTheoryError(msg)
    found: dict[str, Figures] = {"acceptance": _figures(rule.acceptance(p, q))}
    try:
        found["out"] = _figures(rule.induced(p, q))
    except ZeroResidualError:
        found["residual"] = _figures(rule.verdict(p, q).residual)
    said = f"{claim}, against {looser.spec}" if looser is not None else str(claim)
    return Witness(rule.spec, said, {"p": tuple(p.tolist()), "q": tuple(q.tolist())}, found)


def _figures(x: Any) -> Figures:
    """The entries of an exact array (), or (V,), rounded if some are irrational."""
    try:
        entries = x.tolist()
    except ExactnessError:
        entries = np.asarray(x, dtype=float).tolist()
    return tuple(entries) if x.ndim else entries
