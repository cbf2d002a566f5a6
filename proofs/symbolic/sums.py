"""Sums over the vocabulary, by linearity.

`sum_over` writes the sum of a term as a combination of sums of its irreducible parts. It uses nothing but: a sum is
linear, factors and conditions that do not depend on the token come out, what lies off a set is the whole less what
lies on it, a distribution sums to one, and a case distinction at one single token changes the sum by what it changes
at that token.
"""

from collections.abc import Iterator

import z3

from fly_theory.errors import SymbolicError
from proofs.symbolic.terms import (
    Term,
    add,
    at,
    choose,
    mentions,
    multiply,
    negate,
    number,
    product,
    subtract,
    total,
    value,
)
from proofs.symbolic.world import World

Factors = tuple[Term, ...]


def sum_over(world: World, term: Term, bound: Term) -> Term:
    """The sum of `term` over all values of the token `bound`.

    Raises
    ------
    SymbolicError
        When a part of the term does not depend on the token: its sum would count the vocabulary.
    """
    collected: dict[tuple[str, ...], tuple[Term, Factors]] = {}
    for coefficient, factors in _monomials(term, bound):
        alike = tuple(sorted(factor.sexpr() for factor in factors))
        known = collected[alike][0] if alike in collected else number(0)
        collected[alike] = add(known, coefficient), factors
    parts = [multiply(c, _sum_of_product(world, factors, bound)) for c, factors in collected.values() if value(c) != 0]
    return total(parts)


def _monomials(term: Term, bound: Term) -> Iterator[tuple[Term, Factors]]:
    """`term` as a sum of products: (what does not depend on `bound`, factors that do)."""
    if not mentions(term, bound):
        yield term, ()
    elif z3.is_add(term):
        for part in term.children():
            yield from _monomials(part, bound)
    elif z3.is_sub(term):
        first, *others = term.children()
        yield from _monomials(first, bound)
        for part in others:
            yield from _negated(_monomials(part, bound))
    elif z3.is_app_of(term, z3.Z3_OP_UMINUS):
        yield from _negated(_monomials(term.arg(0), bound))
    elif z3.is_mul(term):
        products: list[tuple[Term, Factors]] = [(number(1), ())]
        for part in term.children():
            parts = list(_monomials(part, bound))
            products = [(multiply(c, d), f + g) for c, f in products for d, g in parts]
        yield from products
    elif z3.is_app_of(term, z3.Z3_OP_ITE) and not mentions(term.arg(0), bound):
        condition, yes, no = term.children()
        for coefficient, factors in _monomials(yes, bound):
            yield choose(condition, coefficient, number(0)), factors
        for coefficient, factors in _monomials(no, bound):
            yield choose(condition, number(0), coefficient), factors
    elif z3.is_app_of(term, z3.Z3_OP_ITE) and value(term.arg(1)) == 0:
        condition, zero, elsewhere = term.children()
        yield from _monomials(elsewhere, bound)
        yield from _negated(_monomials(choose(condition, elsewhere, zero), bound))
    else:
        yield number(1), (term,)


def _negated(monomials: Iterator[tuple[Term, Factors]]) -> Iterator[tuple[Term, Factors]]:
    for coefficient, factors in monomials:
        yield negate(coefficient), factors


def _sum_of_product(world: World, factors: Factors, bound: Term) -> Term:
    if not factors:
        msg = (
            "a term that is the same at every token was summed over the vocabulary, whose size is unknown; "
            "multiply it by p, q or the mask of a set first"
        )
        raise SymbolicError(msg)
    for i, factor in enumerate(factors):
        single = _case_at_one_token(factor, bound)
        if single is not None:
            where, there, elsewhere = single
            others = product(factors[:i] + factors[i + 1 :])
            change = at(multiply(others, subtract(there, elsewhere)), [bound], [where])
            return add(sum_over(world, multiply(others, elsewhere), bound), change)
    if len(factors) == 1 and _is_distribution(world, factors[0], bound):
        return number(1)
    return world.defined("sum", [product(sorted(factors, key=lambda factor: factor.sexpr()))], bound=bound)


def _case_at_one_token(term: Term, bound: Term) -> tuple[Term, Term, Term] | None:
    """(t, a, b) when `term` is "a if bound = t else b"."""
    if not z3.is_app_of(term, z3.Z3_OP_ITE) or not z3.is_eq(term.arg(0)):
        return None
    condition, there, elsewhere = term.children()
    left, right = condition.children()
    for one, other in ((left, right), (right, left)):
        if one.eq(bound) and not mentions(other, bound):
            return other, there, elsewhere
    return None


def _is_distribution(world: World, term: Term, bound: Term) -> bool:
    if world.families.get(term.decl().name()) != "distribution":
        return False
    *context, last = term.children()
    return last.eq(bound) and not any(mentions(part, bound) for part in context)
