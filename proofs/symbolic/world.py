"""The world of one proof: the symbols its terms are made of, and what each of them stands for.

A *family* is a function of tokens that is not defined further: the target p, the draft q, an allowed set. A *defined*
symbol stands for a term: a sum over the vocabulary, a largest value, a quotient. Equal terms get the same symbol.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import z3

from proofs.symbolic.terms import TOKEN, Term, at, token, tokens_in

FamilyKind = Literal["distribution", "real", "set", "scalar", "infinite"]
Kind = Literal["sum", "largest", "some", "reciprocal", "power", "sqrt", "exp", "log"]


@dataclass(frozen=True, eq=False)
class Definition:
    """A symbol and the terms it stands for, with tokens in `places`; sums and suprema run over the token `bound`.

    `witness`, for a largest value that is attained and for an existence, is a token that attains it.
    """

    kind: Kind
    symbol: z3.FuncDeclRef
    places: tuple[Term, ...]
    bound: Term | None
    body: tuple[Term, ...]
    witness: z3.FuncDeclRef | None

    def unfold(self, arguments: Sequence[Term], bound: Term | None = None) -> tuple[Term, ...]:
        """The terms it stands for at the given tokens."""
        places, tokens = [*self.places], [*arguments]
        if bound is not None:
            places.append(self.bound)
            tokens.append(bound)
        return tuple(at(part, places, tokens) for part in self.body)


class World:
    """Families and definitions of one proof."""

    def __init__(self) -> None:
        self.generic = token("v")
        self.families: dict[str, FamilyKind] = {}
        self.definitions: dict[str, Definition] = {}
        self._by_meaning: dict[tuple[object, ...], Definition] = {}

    def family(self, name: str, tokens: Sequence[Term], kind: FamilyKind) -> Term:
        """The value at `tokens` of the family called `name`, made known on first use."""
        if self.families.setdefault(name, kind) != kind:
            msg = f"family {name!r} is a {self.families[name]}, not a {kind}"
            raise ValueError(msg)
        range_ = z3.BoolSort() if kind == "set" else z3.RealSort()
        return z3.Function(name, *[TOKEN] * len(tokens), range_)(*tokens)

    def defined(self, kind: Kind, body: Sequence[Term], *, bound: Term | None = None, attained: bool = False) -> Term:
        """The symbol of `kind` for these terms, at the tokens they depend on."""
        definition, tokens = self._definition(kind, body, bound, attained)
        return definition.symbol(*tokens)

    def witness(self, kind: Kind, body: Sequence[Term], *, bound: Term) -> Term:
        """A token at which the largest value is attained, or one that shows an existence."""
        definition, tokens = self._definition(kind, body, bound, True)
        assert definition.witness is not None
        return definition.witness(*tokens)

    def _definition(
        self, kind: Kind, body: Sequence[Term], bound: Term | None, attained: bool
    ) -> tuple[Definition, list[Term]]:
        tokens = [t for t in tokens_in(*body) if bound is None or not t.eq(bound)]
        places = [token(f"?{i}") for i in range(len(tokens))]
        stand_in = None if bound is None else token("?")
        there = [*places, *([] if stand_in is None else [stand_in])]
        body = tuple(at(part, [*tokens, *([] if bound is None else [bound])], there) for part in body)
        meaning = (kind, attained, *(part.get_id() for part in body))
        if meaning not in self._by_meaning:
            count = 1 + sum(known.kind == kind for known in self.definitions.values())
            name = f"{kind}_{count}"
            range_ = z3.BoolSort() if kind == "some" else z3.RealSort()
            sorts = [TOKEN] * len(places)
            witness = z3.Function(f"{name}_at", *sorts, TOKEN) if attained else None
            definition = Definition(kind, z3.Function(name, *sorts, range_), tuple(places), stand_in, body, witness)
            self._by_meaning[meaning] = self.definitions[name] = definition
        return self._by_meaning[meaning], tokens
