"""Terms as mathematics: read into sympy, and written in LaTeX."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import sympy
import z3

from proofs.symbolic.terms import Term, at, is_token, token, tokens_in
from proofs.symbolic.world import Definition, World

__all__ = ["Printer", "is_identity"]

_LETTERS = {"l": r"\ell", "infinity": r"\infty", "1/alpha": r"\tfrac1\alpha", "1/beta": r"\tfrac1\beta"}
_ONE_LINE = 60
_BOUND = token("w")
_OVER_TOKENS = {"sum": r"\sum_w", "largest": r"\max_w", "some": r"\exists w:"}
_FUNCTIONS = {"power": r"\left({0}\right)^{{{1}}}", "sqrt": r"\sqrt{{{0}}}", "exp": r"\exp {0}", "log": r"\log {0}"}


def is_identity(equation: Term) -> bool:
    """Whether the two sides of an equation over constants are the same polynomial, by sympy."""
    if not z3.is_eq(equation) or not z3.is_arith(equation.arg(0)):
        return False
    printer = Printer(World(), [])
    left, right = (printer.read(side) for side in equation.children())
    return bool(sympy.expand(left - right) == 0)


class Printer:
    """Writes the terms of one world, those that have names by their names.

    Sums that take more than a line are called by the names that certificates give them.
    """

    def __init__(self, world: World, names: Iterable[tuple[str, Term]]) -> None:
        self._world, self._names = world, list(names)
        self._tokens: list[Term] = []
        self._named: dict[int, tuple[Term, str]] = {}
        self._read: dict[int, tuple[Term, Any]] = {}
        self._meet(world.generic, _BOUND)

    def latex(self, term: Term) -> str:
        """A term in LaTeX."""
        return _written(self.read(term))

    def meaning(self, definition: Definition) -> str:
        """What a defined symbol stands for, in LaTeX."""
        return _written(self._expanded(definition, definition.places))

    def read(self, term: Term) -> Any:
        """The sympy expression of a term, as it stands."""
        self._meet(*tokens_in(term))
        return self._part(term)

    def _meet(self, *tokens: Term) -> None:
        """Know what has a name at these tokens."""
        for there in tokens:
            if not any(there.eq(known) for known in self._tokens):
                self._tokens.append(there)
                for name, term in self._names:
                    instance = at(term, [self._world.generic], [there])
                    self._named[instance.get_id()] = instance, _applied(name, [self._token(there)])

    def _part(self, term: Term) -> Any:
        if term.get_id() not in self._read:
            self._read[term.get_id()] = term, self._unread(term)
        return self._read[term.get_id()][1]

    def _unread(self, term: Term) -> Any:
        if term.get_id() in self._named:
            return sympy.Symbol(self._named[term.get_id()][1])
        if z3.is_rational_value(term):
            value = Fraction(term.as_fraction())
            return sympy.Rational(value.numerator, value.denominator)
        if z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED):
            return self._symbol(term)
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            return self._case(*term.children())
        if z3.is_eq(term) and is_token(term.arg(0)):
            return sympy.Symbol(" = ".join(self._token(t) for t in term.children()))
        return _OPERATIONS[term.decl().kind()](*(self._part(part) for part in term.children()))

    def _case(self, condition: Term, yes: Term, no: Term) -> Any:
        if z3.is_le(condition) or z3.is_ge(condition):
            low, high = condition.children() if z3.is_le(condition) else reversed(condition.children())
            if (yes.eq(low) and no.eq(high)) or (yes.eq(high) and no.eq(low)):
                bound = sympy.Min if yes.eq(low) else sympy.Max
                return bound(self._part(yes), self._part(no), evaluate=False)
            if z3.is_rational_value(low) and low.as_fraction() == 0 and yes.eq(high) and no.eq(-high):
                return sympy.Abs(self._part(yes), evaluate=False)
        return sympy.Piecewise((self._part(yes), self._part(condition)), (self._part(no), sympy.true), evaluate=False)

    def _symbol(self, term: Term) -> Any:
        name = term.decl().name()
        definition = self._world.definitions.get(name)
        if definition is not None:
            in_full = self._expanded(definition, term.children())
            if definition.kind not in _OVER_TOKENS or len(str(in_full)) <= _ONE_LINE:
                return in_full
        return sympy.Symbol(_applied(name, [self._token(t) for t in term.children()]))

    def _expanded(self, definition: Definition, tokens: Sequence[Term]) -> Any:
        """What a defined symbol stands for at the given tokens."""
        if definition.bound is not None:
            (body,) = definition.unfold(tokens, _BOUND)
            return sympy.Symbol(rf"{_OVER_TOKENS[definition.kind]}\left({self.latex(body)}\right)")
        arguments = [self.read(part) for part in definition.unfold(tokens)]
        if definition.kind == "reciprocal":
            return sympy.Pow(arguments[0], -1, evaluate=False)
        return sympy.Symbol(_FUNCTIONS[definition.kind].format(*map(_written, arguments)))

    def _token(self, term: Term) -> str:
        """A token by its letter; the one that attains a largest value, or shows an existence, is v*."""
        name = str(term.decl().name())
        return "v^{*}" if name.removesuffix("_at") in self._world.definitions else name.replace("?", "t")


def _written(expression: Any) -> str:
    return str(sympy.latex(expression, order="none"))


def _applied(name: str, tokens: list[str]) -> str:
    words = name.split("_")
    index = words.pop() if len(words) > 1 and words[-1].isdigit() else ""
    stem = " ".join(words)
    letter = _LETTERS.get(stem, stem if len(stem) == 1 or stem[1:].isdigit() else rf"\mathrm{{{stem}}}")
    letter = f"{letter}_{{{index}}}" if index else letter
    return f"{{{letter}}}({', '.join(tokens)})" if tokens else f"{{{letter}}}"


def _add(*terms: Any) -> Any:
    return sympy.Add(*terms, evaluate=False)


def _multiply(*factors: Any) -> Any:
    return sympy.Mul(*factors, evaluate=False)


def _relation(relation: Any) -> Any:
    return lambda a, b: relation(a, b, evaluate=False)


_OPERATIONS: dict[int, Any] = {
    z3.Z3_OP_TRUE: lambda: sympy.true,
    z3.Z3_OP_FALSE: lambda: sympy.false,
    z3.Z3_OP_ADD: _add,
    z3.Z3_OP_SUB: lambda first, *others: _add(first, *(_multiply(-1, x) for x in others)),
    z3.Z3_OP_UMINUS: lambda x: _multiply(-1, x),
    z3.Z3_OP_MUL: _multiply,
    z3.Z3_OP_LE: _relation(sympy.Le),
    z3.Z3_OP_GE: _relation(sympy.Ge),
    z3.Z3_OP_LT: _relation(sympy.Lt),
    z3.Z3_OP_GT: _relation(sympy.Gt),
    z3.Z3_OP_EQ: lambda a, b: (sympy.Equivalent if a.is_Boolean else sympy.Eq)(a, b, evaluate=False),
    z3.Z3_OP_DISTINCT: _relation(sympy.Ne),
    z3.Z3_OP_AND: lambda *parts: sympy.And(*parts, evaluate=False),
    z3.Z3_OP_OR: lambda *parts: sympy.Or(*parts, evaluate=False),
    z3.Z3_OP_NOT: lambda part: sympy.Not(part, evaluate=False),
    z3.Z3_OP_IMPLIES: lambda a, b: sympy.Implies(a, b, evaluate=False),
}
