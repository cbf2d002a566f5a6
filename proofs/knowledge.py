"""What is known in a proof: facts at every token spoken of, and the axioms about every symbol spoken of."""

from collections.abc import Sequence
from itertools import chain

import z3

from fly_theory.errors import InvalidInput
from proofs import axioms
from proofs.obligation import Hypothesis, Obligation, constants_in
from proofs.symbolic.terms import Term, at, is_token, mentions, subterms
from proofs.symbolic.world import World

Fact = tuple[str, Term]


class Knowledge:
    """Facts and axioms, closed under: a fact holds at every token, and a symbol that is spoken of obeys its axioms."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._general: list[Fact] = []
        self._hypotheses: dict[int, Fact] = {}
        self._seen: dict[int, Term] = {}
        self._symbols: list[Term] = []
        self._tokens: list[Term] = []
        self._flat: dict[tuple[str, ...], dict[int, tuple[Term, Term, frozenset[str]]]] = {}
        self._absorb([("", world.generic == world.generic)], as_hypotheses=False)

    def learn(self, text: str, fact: Term) -> None:
        """Know a fact; where it speaks of the generic token it holds at every token."""
        self._general.append((text, fact))
        self._absorb([(text, at(fact, [self._world.generic], [token])) for token in self._tokens])

    def copy(self) -> "Knowledge":
        """The same knowledge, to be added to separately."""
        other = object.__new__(Knowledge)
        other._world = self._world
        other._general = self._general.copy()
        other._hypotheses, other._seen = self._hypotheses.copy(), self._seen.copy()
        other._symbols, other._tokens = self._symbols.copy(), self._tokens.copy()
        other._flat = self._flat
        return other

    def obligation(
        self, title: str, conclusion: Term, *, given: Sequence[Fact] = (), opaque: Sequence[tuple[str, Term]] = ()
    ) -> Obligation:
        """The obligation that `conclusion` follows from what is known and what is given, over constants.

        Values at tokens and equations between tokens become constants (Ackermann's reduction). So do the terms in
        `opaque`, under the given names: what holds whatever they are holds for what they are.
        """
        extended = self.copy()
        extended._absorb(list(given))
        extended._absorb([("", conclusion)], as_hypotheses=False)
        return extended._over_constants(title, conclusion, opaque)

    def _absorb(self, facts: Sequence[Fact], *, as_hypotheses: bool = True) -> None:
        pending = list(facts)
        while pending:
            if as_hypotheses:
                self._hypotheses.update((fact.get_id(), (text, fact)) for text, fact in pending)
            as_hypotheses = True
            pending = [fact for fact in self._consequences(pending) if fact[1].get_id() not in self._hypotheses]

    def _consequences(self, facts: Sequence[Fact]) -> list[Fact]:
        """The axioms about symbols, and the facts at tokens, that are spoken of for the first time."""
        new = [term for term in subterms(*(fact for _, fact in facts)) if term.get_id() not in self._seen]
        self._seen.update((term.get_id(), term) for term in new)
        tokens = [term for term in new if is_token(term)]
        symbols = [term for term in new if self._has_axioms(term)]
        found: list[Fact] = []
        for symbol in symbols:
            found += axioms.of_symbol(self._world, symbol)
            for token in chain(self._tokens, tokens):
                found += axioms.at_token(self._world, symbol, token)
            for other in self._symbols:
                found += axioms.of_pair(self._world, symbol, other)
            self._symbols.append(symbol)
        for token in tokens:
            found += [(text, at(fact, [self._world.generic], [token])) for text, fact in self._general]
            for symbol in self._symbols:
                found += axioms.at_token(self._world, symbol, token)
        self._tokens += tokens
        return found

    def _has_axioms(self, term: Term) -> bool:
        name = term.decl().name()
        return name in self._world.families or name in self._world.definitions

    def _over_constants(self, title: str, conclusion: Term, opaque: Sequence[tuple[str, Term]]) -> Obligation:
        seen = list(self._seen.values())
        values = [term for term in seen if z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED) and not is_token(term)]
        equations = [term for term in seen if z3.is_eq(term) and is_token(term.arg(0))]
        hypotheses = [*self._hypotheses.values(), *axioms.congruences(values, equations)]
        hidden = [instance for name, term in opaque for instance in self._instances(name, term)]
        plain = [(_name(term), term) for term in (*values, *equations)]
        _must_differ([*hidden, *((_name(term), term) for term in values)])

        renamed = [(term, _constant(name, term)) for name, term in plain]
        known = self._flat.setdefault(tuple(name for name, _ in opaque), {})

        def flat(formula: Term) -> tuple[Term, frozenset[str]]:
            if formula.get_id() not in known:
                simpler = formula
                for name, term in hidden:
                    simpler = z3.substitute(simpler, (term, _constant(name, term)))
                simpler = z3.substitute(simpler, *renamed)
                known[formula.get_id()] = formula, simpler, constants_in(simpler)
            return known[formula.get_id()][1:]

        flattened = tuple(Hypothesis(text, *flat(formula), text in axioms.DEFINITIONS) for text, formula in hypotheses)
        return Obligation(title, flattened, flat(conclusion)[0], dict([*hidden, *plain]))

    def _instances(self, name: str, term: Term) -> list[tuple[str, Term]]:
        """A named term at every token, or as it is when it does not depend on one."""
        generic = self._world.generic
        if not mentions(term, generic):
            return [(name, term)]
        return [(f"{name}[{_name(token)}]", at(term, [generic], [token])) for token in self._tokens]


def _must_differ(named: Sequence[tuple[str, Term]]) -> None:
    known: dict[str, Term] = {}
    for name, term in named:
        if not known.setdefault(name, term).eq(term):
            msg = f"two symbols of a proof are called {name!r}; rename the parameter or quantity of that name"
            raise InvalidInput(msg)


def _constant(name: str, term: Term) -> Term:
    return z3.Bool(name) if z3.is_bool(term) else z3.Real(name)


def _name(term: Term) -> str:
    if z3.is_eq(term):
        return "=".join(sorted(_name(part) for part in term.children()))
    arguments = ",".join(_name(part) for part in term.children())
    return f"{term.decl().name()}[{arguments}]" if arguments else term.decl().name()
