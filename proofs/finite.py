"""Vocabularies of a few tokens, spelled out: the second way to read a rule, as a check on the first and for witnesses.

Here a row is as many symbols as there are tokens, a sum is a sum, and nothing is known but that p and q are
distributions: no lemma, no generic token.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import z3

from fly_theory.arrays import array_namespace
from fly_theory.claims import Claim, MonotoneIn
from fly_theory.errors import FlyTheoryError
from fly_theory.parameters import parameters
from proofs.derivation import Derivation
from proofs.obligation import Answer, rational
from proofs.statements import statements
from proofs.subjects import read_by_symbols
from proofs.symbolic import SymbolicArray, World
from proofs.symbolic.array import elementwise
from proofs.theorem import Subject

__all__ = ["Model", "ask", "is_distribution", "row"]


class Model(NamedTuple):
    """Where a claim fails, as z3 sees it: the claim of a rule, values of parameters, target p and draft q."""

    claim: Callable[[Any], Claim]
    settings: Mapping[str, Fraction]
    looser: Fraction | None
    p: list[Fraction]
    q: list[Fraction]


def ask(subject: Subject, size: int, *, substitute: Any = None, seconds: float = 2) -> tuple[Answer, Model | None]:
    """Whether a claim holds for every p and q over `size` tokens, at every value of the parameters that are left open.

    The answer is "unknown" when z3 does not find one in time, or when symbols cannot read the rule.
    """
    d = Derivation({} if substitute is None else {subject.rule: substitute})
    try:
        rule = d.rule(subject.rule, **subject.settings)
        p, q = (row(d.world, [d.number(f"{name}{i + 1}") for i in range(size)]) for name in "pq")
        d.suppose("p and q are distributions", *is_distribution(p), *is_distribution(q))
        with read_by_symbols(subject.rule):
            count = len(subject.claims(rule))
            answers = [_ask(d, rule, lambda r, i=i: subject.claims(r)[i], p, q, seconds) for i in range(count)]
    except FlyTheoryError:
        return "unknown", None
    return next((a for a in answers if a[0] != "proved"), ("proved", None))


def _ask(
    d: Derivation, rule: Any, about: Callable[[Any], Claim], p: SymbolicArray, q: SymbolicArray, seconds: float
) -> tuple[Answer, Model | None]:
    claim = about(rule)
    looser = d.moved(rule, claim.parameter, looser=claim.looser) if isinstance(claim, MonotoneIn) else None
    holds = [cell for part in statements(claim, rule, p, q, looser=looser) for cell in part.cells.flat]
    answer, model = d.ask(z3.And(holds), seconds=seconds)
    if model is None:
        return answer, None

    def value(x: Any) -> Any:
        return rational(model, x.term) if isinstance(x, SymbolicArray) else x

    settings = {declared.name: value(getattr(rule, declared.name)) for declared in parameters(type(rule))}
    moved = value(getattr(looser, claim.parameter)) if isinstance(claim, MonotoneIn) else None
    return answer, Model(about, settings, moved, *([value(x[i]) for i in range(x.shape[0])] for x in (p, q)))


def row(world: World, entries: Sequence[Any]) -> SymbolicArray:
    """A row over a vocabulary of as many tokens as there are entries: symbols, integers or fractions."""
    cells = np.empty(len(entries), dtype=object)
    cells[:] = [elementwise(lambda a: a, entry, world=world).term for entry in entries]
    return SymbolicArray(world, cells)


def is_distribution(x: SymbolicArray) -> tuple[SymbolicArray, SymbolicArray]:
    """That a row is nowhere negative and sums to one."""
    return x >= 0, array_namespace(x).sum(x, axis=-1) == 1
