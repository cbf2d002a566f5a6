"""What the terms of a proof mean, evaluated in full: many random vocabularies at once, sums added up token by token.

Written apart from the prover: it knows nothing of lemmas, axioms or linearity, only what each symbol stands for.
"""

from typing import Any

import numpy as np
import z3

from proofs.symbolic import World

TOLERANCE = 1e-9


class Vocabularies:
    """`count` vocabularies of `size` tokens: values (count, size, ...) for families, and (count,) for numbers."""

    def __init__(self, world: World, values: dict[str, Any], tokens: dict[str, Any], size: int) -> None:
        self.world, self.size = world, size
        self._values, self._tokens = values, tokens
        self.count = len(next(iter(values.values())))
        self._known: dict[Any, Any] = {}

    def everywhere(self, statement: z3.ExprRef) -> Any:
        """Whether a statement holds (count,), at every value of the generic token."""
        generic = str(self.world.generic)
        return np.all([self.holds(statement, {generic: self._token_id(i)}) for i in range(self.size)], axis=0)

    def _token_id(self, i: int) -> Any:
        return np.full(self.count, i)

    def holds(self, statement: z3.ExprRef, tokens: dict[str, Any]) -> Any:
        """Whether a statement holds; equations and <= up to rounding."""
        parts = statement.children()
        if z3.is_and(statement):
            return np.all([self.holds(part, tokens) for part in parts], axis=0)
        if z3.is_or(statement):
            return np.any([self.holds(part, tokens) for part in parts], axis=0)
        if z3.is_implies(statement):
            return ~self.value(parts[0], tokens) | self.holds(parts[1], tokens)
        if z3.is_le(statement):
            return self.value(parts[0], tokens) <= self.value(parts[1], tokens) + TOLERANCE
        if z3.is_ge(statement):
            return self.value(parts[0], tokens) >= self.value(parts[1], tokens) - TOLERANCE
        if z3.is_eq(statement) and z3.is_arith(parts[0]):
            return np.abs(self.value(parts[0], tokens) - self.value(parts[1], tokens)) <= TOLERANCE
        return self.value(statement, tokens)

    def value(self, term: z3.ExprRef, tokens: dict[str, Any]) -> Any:
        """The value of a term (count,), with tokens (count,) in place."""
        key = (term.get_id(), *((name, ids.tobytes()) for name, ids in sorted(tokens.items())))
        if key not in self._known:
            self._known[key] = term, self._evaluated(term, tokens)
        return self._known[key][1]

    def _evaluated(self, term: z3.ExprRef, tokens: dict[str, Any]) -> Any:
        if z3.is_rational_value(term):
            return np.full(self.count, float(term.as_fraction()))
        if z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED):
            return self._symbol(term, tokens)
        return _OPERATIONS[term.decl().kind()](*(self.value(part, tokens) for part in term.children()))

    def _symbol(self, term: z3.ExprRef, tokens: dict[str, Any]) -> Any:
        name, arguments = term.decl().name(), [self.value(part, tokens) for part in term.children()]
        if name in tokens:
            return tokens[name]
        if name in self.world.definitions:
            return self._defined(name, arguments)
        if name.removesuffix("_at") in self.world.definitions:
            there = self._over_tokens(name.removesuffix("_at"), arguments)
            return there.argmax(axis=0)
        if str(term.sort()) == "Token":
            return self._tokens[name]
        return self._values[name][(np.arange(self.count), *arguments)]

    def _over_tokens(self, name: str, arguments: list[Any]) -> Any:
        """What a definition ranges over, (size, count)."""
        definition = self.world.definitions[name]
        places = {str(place): ids for place, ids in zip(definition.places, arguments, strict=True)}
        bound = str(definition.bound)
        return np.stack(
            [self.value(definition.body[0], {**places, bound: self._token_id(i)}) for i in range(self.size)]
        )

    def _defined(self, name: str, arguments: list[Any]) -> Any:
        definition = self.world.definitions[name]
        if definition.bound is not None:
            there = self._over_tokens(name, arguments)
            return {"sum": there.sum, "largest": there.max, "some": there.any}[definition.kind](axis=0)
        places = {str(place): ids for place, ids in zip(definition.places, arguments, strict=True)}
        return _FUNCTIONS[definition.kind](*(self.value(part, places) for part in definition.body))


def _reciprocal(x: Any) -> Any:
    return np.divide(1, x, out=np.zeros_like(x), where=x != 0)


def _log(x: Any) -> Any:
    return np.log(x, out=np.zeros_like(x), where=x > 0)


_FUNCTIONS: dict[str, Any] = {
    "reciprocal": _reciprocal,
    "power": lambda base, exponent: np.power(np.maximum(base, 0), exponent),
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0)),
    "exp": np.exp,
    "log": _log,
}

_OPERATIONS: dict[int, Any] = {
    z3.Z3_OP_TRUE: lambda: np.True_,
    z3.Z3_OP_FALSE: lambda: np.False_,
    z3.Z3_OP_ADD: lambda *x: np.sum(x, axis=0),
    z3.Z3_OP_SUB: lambda a, *others: a - np.sum(others, axis=0),
    z3.Z3_OP_UMINUS: np.negative,
    z3.Z3_OP_MUL: lambda *x: np.prod(x, axis=0),
    z3.Z3_OP_LE: np.less_equal,
    z3.Z3_OP_GE: np.greater_equal,
    z3.Z3_OP_LT: np.less,
    z3.Z3_OP_GT: np.greater,
    z3.Z3_OP_EQ: np.equal,
    z3.Z3_OP_DISTINCT: np.not_equal,
    z3.Z3_OP_AND: lambda *x: np.all(x, axis=0),
    z3.Z3_OP_OR: lambda *x: np.any(x, axis=0),
    z3.Z3_OP_NOT: np.logical_not,
    z3.Z3_OP_IMPLIES: lambda a, b: ~a | b,
    z3.Z3_OP_ITE: np.where,
}
