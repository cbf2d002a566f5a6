"""What is true of the symbols of a proof by definition.

This list, the rules of `proofs.derivation` and the linearity of `proofs.symbolic.sums` are all that a proof may use;
README.md argues why each is true over any finite or countable vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import z3

from proofs.symbolic.terms import Term
from proofs.symbolic.world import World

Axiom = tuple[str, Term]

# The axioms that tie a symbol to the terms it stands for.
DEFINITIONS = frozenset(
    {
        "the largest value is attained",
        "what exists has an example",
        "a quotient undoes its divisor",
        "the square root squares to its argument",
    }
)


def of_symbol(world: World, symbol: Term) -> Iterator[Axiom]:
    """What is true of one symbol."""
    name = symbol.decl().name()
    if world.families.get(name) == "distribution":
        yield "probabilities lie between 0 and 1", z3.And(symbol >= 0, symbol <= 1)
    if world.families.get(name) == "infinite":
        yield "infinity is positive", symbol > 0
    definition = world.definitions.get(name)
    if definition is None:
        return
    if definition.bound is None:
        yield from _BY_VALUE[definition.kind](symbol, *definition.unfold(symbol.children()))
    elif definition.witness is not None:
        witness = definition.witness(*symbol.children())
        (there,) = definition.unfold(symbol.children(), witness)
        if definition.kind == "largest":
            yield "the largest value is attained", there == symbol
        else:
            yield "what exists has an example", z3.Implies(symbol, there)


def at_token(world: World, symbol: Term, token: Term) -> Iterator[Axiom]:
    """What is true of a symbol that speaks of all tokens, at one of them."""
    definition = world.definitions.get(symbol.decl().name())
    if definition is not None and definition.kind in ("largest", "some"):
        (there,) = definition.unfold(symbol.children(), token)
        if definition.kind == "largest":
            yield "nothing exceeds the largest value", there <= symbol
        else:
            yield "an example shows existence", z3.Implies(there, symbol)


def of_pair(world: World, one: Term, other: Term) -> Iterator[Axiom]:
    """What is true of two symbols together."""
    name = one.decl().name()
    if world.families.get(name) == "distribution" and other.decl().name() == name:
        *context, token = one.children()
        *same, another = other.children()
        if all(a.eq(b) for a, b in zip(context, same, strict=True)):
            yield "two tokens share one unit of mass", z3.Or(token == another, one + other <= 1)
        return
    kinds = _kind(world, one), _kind(world, other)
    if kinds in (("log", "log"), ("exp", "exp")):
        (x,), (y,) = _unfolded(world, one), _unfolded(world, other)
        positive = z3.And(x > 0, y > 0) if kinds[0] == "log" else z3.BoolVal(True)
        increasing = z3.And((x <= y) == (one <= other), (y <= x) == (other <= one))
        yield f"{kinds[0]} is increasing", z3.Implies(positive, increasing)
    elif set(kinds) == {"log", "exp"}:
        log, exp = (one, other) if kinds[0] == "log" else (other, one)
        (x,), (y,) = _unfolded(world, log), _unfolded(world, exp)
        yield "log undoes exp", z3.Implies(x > 0, (exp <= x) == (y <= log))


def _kind(world: World, symbol: Term) -> str | None:
    definition = world.definitions.get(symbol.decl().name())
    return definition.kind if definition else None


def _unfolded(world: World, symbol: Term) -> tuple[Term, ...]:
    return world.definitions[symbol.decl().name()].unfold(symbol.children())


def _reciprocal(symbol: Term, x: Term) -> Iterator[Axiom]:
    yield "a quotient undoes its divisor", z3.Implies(x != 0, symbol * x == 1)


def _power(symbol: Term, base: Term, exponent: Term) -> Iterator[Axiom]:
    yield "powers of positive numbers are positive", z3.Implies(base > 0, symbol > 0)
    yield "positive powers of 0 are 0", z3.Implies(z3.And(base == 0, exponent > 0), symbol == 0)


def _sqrt(symbol: Term, x: Term) -> Iterator[Axiom]:
    yield "the square root squares to its argument", z3.Implies(x >= 0, z3.And(symbol >= 0, symbol * symbol == x))


def _exp(symbol: Term, x: Term) -> Iterator[Axiom]:
    yield "exp is positive", symbol > 0


def _log(symbol: Term, x: Term) -> Iterator[Axiom]:
    return iter(())


_BY_VALUE: dict[str, Callable[..., Iterator[Axiom]]] = {
    "reciprocal": _reciprocal,
    "power": _power,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
}


def congruences(values: Sequence[Term], equations: Sequence[Term]) -> Iterator[Axiom]:
    """Equal tokens have equal values: for each equation between tokens, each pair of values that differs just there."""
    for equation, (one, other) in product(equations, combinations(values, 2)):
        if one.decl().eq(other.decl()):
            pairs = zip(one.children(), other.children(), strict=True)
            differing = [{a.get_id(), b.get_id()} for a, b in pairs if not a.eq(b)]
            if differing == [{token.get_id() for token in equation.children()}]:
                yield "equal tokens have equal values", z3.Implies(equation, one == other)
