"""The few z3 terms that rules are made of: real numbers, truth values and tokens, with 0 and 1 folded away."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import z3

Term = Any

TOKEN = z3.DeclareSort("Token")
TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


def token(name: str) -> Term:
    """A token by name: any element of the vocabulary."""
    return z3.Const(name, TOKEN)


def number(x: Fraction | int) -> Term:
    """A rational constant."""
    x = Fraction(x)
    return z3.Q(x.numerator, x.denominator)


def value(term: Term) -> Fraction | None:
    """The rational a term is by its looks, or None."""
    return Fraction(term.as_fraction()) if z3.is_rational_value(term) else None


def add(a: Term, b: Term) -> Term:
    """a + b."""
    if value(a) == 0:
        return b
    if value(b) == 0:
        return a
    return _folded(a + b, a, b)


def subtract(a: Term, b: Term) -> Term:
    """a - b."""
    if value(b) == 0:
        return a
    if value(a) == 0:
        return negate(b)
    return _folded(a - b, a, b)


def multiply(a: Term, b: Term) -> Term:
    """a b."""
    if value(a) == 0 or value(b) == 1:
        return a
    if value(b) == 0 or value(a) == 1:
        return b
    return _folded(a * b, a, b)


def negate(a: Term) -> Term:
    """-a."""
    return _folded(-a, a)


def choose(condition: Term, a: Term, b: Term) -> Term:
    """a where the condition holds, else b."""
    if a.eq(b) or z3.is_true(condition):
        return a
    return b if z3.is_false(condition) else z3.If(condition, a, b)


def total(terms: Sequence[Term]) -> Term:
    """The sum of finitely many terms."""
    result = number(0)
    for term in terms:
        result = add(result, term)
    return result


def product(terms: Sequence[Term]) -> Term:
    """The product of finitely many terms."""
    result = number(1)
    for term in terms:
        result = multiply(result, term)
    return result


def _folded(term: Term, *parts: Term) -> Term:
    return z3.simplify(term) if all(value(part) is not None for part in parts) else term


def subterms(*terms: Term) -> Iterator[Term]:
    """Every distinct subterm, parents before children."""
    pending, seen = list(reversed(terms)), set()
    while pending:
        term = pending.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            pending.extend(reversed(term.children()))


def is_token(term: Term) -> bool:
    """Whether a term denotes a token (a constant, or a function of other tokens such as an argmax)."""
    return bool(term.sort() == TOKEN)


def tokens_in(*terms: Term) -> list[Term]:
    """The token constants that terms depend on, in order of appearance."""
    return [t for t in subterms(*terms) if is_token(t) and t.num_args() == 0]


def mentions(term: Term, part: Term) -> bool:
    """Whether `part` occurs in `term`."""
    return any(t.eq(part) for t in subterms(term))


def at(term: Term, places: Sequence[Term], tokens: Sequence[Term]) -> Term:
    """`term` with tokens put in the given places; a token is equal to itself."""
    if not places:
        return term
    trivial = [(t == t, TRUE) for t in tokens]
    return z3.substitute(z3.substitute(term, *zip(places, tokens, strict=True)), *trivial)
