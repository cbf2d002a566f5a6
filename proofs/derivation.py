"""A proof under way: hypotheses, lemmas and goals, each a statement about arrays that symbols were put in.

A derivation knows three rules. *Pointwise*: what follows from the known facts and the axioms holds, at every token.
*Sum*: an inequality (or equation) that holds at every token holds between sums over the vocabulary. *Sum apart from t*:
if it holds at every token other than t, it holds between the sums less their terms at t.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, count
from typing import Any, Literal, TypeVar

import z3

from fly_theory.arrays import as_fraction
from fly_theory.claims import Claim
from fly_theory.errors import InvalidInput
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class
from proofs import multipliers
from proofs.knowledge import Knowledge
from proofs.obligation import Answer, Obligation, rational
from proofs.statements import altered, statements
from proofs.steps import Part, Role, Step, Unproved
from proofs.subjects import domain, with_symbols
from proofs.symbolic import SymbolicArray, World, terms
from proofs.symbolic.array import elementwise
from proofs.symbolic.sums import sum_over
from proofs.symbolic.terms import Term

S = TypeVar("S", str, tuple[str, Mapping[str, Any]])


class Derivation:
    """What is known so far, and the obligations that were met on the way."""

    def __init__(self, substitutes: Mapping[str, Any] | None = None, *, only: str | None = None) -> None:
        self.steps: list[Step] = []
        self.obligations: list[Obligation] = []
        self._substitutes, self._only = substitutes or {}, only
        self._start("")

    def _start(self, part: str) -> None:
        self.world = World()
        self.part = Part(part, self.world, [])
        self._knowledge = Knowledge(self.world)

    def begin(self, part: str) -> None:
        """Start afresh with new symbols and nothing known."""
        self.finish()
        self._start(part)

    def parts(self, subjects: Iterable[S]) -> Iterator[S]:
        """The rules that a theorem is about, by name or by (name, settings), each begun as a part of the proof of its
        own.

        When only one rule is wanted, the others are passed over.
        """
        for subject in subjects:
            name, settings = (subject, {}) if isinstance(subject, str) else subject
            if self._only in (None, name):
                self.begin(" ".join([name, *(f"{key}={value}" for key, value in settings.items())]))
                yield subject

    def finish(self) -> None:
        """Show, with all that is known, that nothing was divided by zero; and see that it is free of contradiction."""
        divisors = []
        for definition in list(self.world.definitions.values()):
            if definition.kind == "reciprocal":
                tokens = [self.world.generic, *(terms.token(f"t{i}") for i in range(len(definition.places)))]
                divisors += definition.unfold(tokens[: len(definition.places)])
        for divisor in divisors:
            self._show("no divisor is zero", divisor != 0)
        if divisors:
            self._learn("lemma", "no divisor is zero", z3.And([divisor != 0 for divisor in divisors]))
        nothing = self._build("what is known contradicts itself", terms.FALSE, self.world.generic, None)
        if nothing.solve(seconds=2)[0] == "proved":
            raise Unproved(nothing.title, nothing, "unknown")

    # -- rules ---------------------------------------------------------------------------------------------------------

    def rule(self, name: str, **settings: Any) -> Any:
        """The registered rule, with a symbol for every numeric parameter that is not given; see `proofs.subjects`.

        A class or an object that was substituted for the rule takes its place.
        """
        return self._subject(self._substitutes.get(name) or rule_class(name), settings)

    def block_rule(self, name: str, **settings: Any) -> Any:
        """The registered block-level rule, with symbols for parameters as `rule`."""
        return self._subject(self._substitutes.get(name) or rule_class(name, level="block"), settings)

    def _subject(self, subject: Any, settings: Mapping[str, Any]) -> Any:
        rule, bounds = with_symbols(subject, self.world, settings) if isinstance(subject, type) else (subject, [])
        for text, bound in bounds:
            self.suppose(text, bound)
        return rule

    def moved(self, rule: Any, parameter: str, *, looser: Literal["smaller", "larger"]) -> Any:
        """The same rule with a parameter moved in its looser direction, to any other value of its domain."""
        (declared,) = (p for p in parameters(type(rule)) if p.name == parameter)
        value = self.number(f"looser_{parameter}")
        present = as_fraction(getattr(rule, parameter))
        self.suppose(f"{parameter} gets {looser}", value <= present if looser == "smaller" else value >= present)
        for text, bound in domain(declared, value):
            self.suppose(text, bound)
        return altered(rule, **{parameter: value})

    # -- symbols -------------------------------------------------------------------------------------------------------

    def row(self, name: str, *context: Term) -> SymbolicArray:
        """A distribution over the vocabulary (after the tokens in `context`)."""
        return self._family(name, "distribution", context)

    def pair(self) -> tuple[SymbolicArray, SymbolicArray]:
        """A target p and a draft q."""
        return self.row("p"), self.row("q")

    def function(self, name: str) -> SymbolicArray:
        """Any real function of the token."""
        return self._family(name, "real", ())

    def subset(self, name: str = "A") -> SymbolicArray:
        """Any set of tokens, as a mask."""
        return self._family(name, "set", ())

    def number(self, name: str) -> SymbolicArray:
        """Any real number."""
        return SymbolicArray(self.world, self.world.family(name, (), "scalar"))

    def token(self, name: str) -> Term:
        """Any token."""
        return terms.token(name)

    def _family(self, name: str, kind: Any, context: Sequence[Term]) -> SymbolicArray:
        cell = self.world.family(name, [*context, self.world.generic], kind)
        return SymbolicArray(self.world, cell, per_token=True)

    # -- sums ----------------------------------------------------------------------------------------------------------

    def total(self, x: SymbolicArray, *, over: Term | None = None) -> SymbolicArray:
        """The sum of x over the vocabulary: over the generic token, or over a token that x depends on."""
        over = self.world.generic if over is None else over
        return elementwise(lambda term: sum_over(self.world, term, over), SymbolicArray(self.world, x.cells))

    # -- statements ----------------------------------------------------------------------------------------------------

    def suppose(self, text: str, *claims: SymbolicArray) -> None:
        """Take claims as hypotheses of the theorem."""
        for claim in _cells(claims):
            self._learn("hypothesis", text, claim)

    def lemma(self, text: str, *claims: SymbolicArray) -> None:
        """Show claims, at every token, and know them from here on."""
        for claim in _cells(claims):
            self._show(text, claim)
            self._learn("lemma", text, claim)

    def goal(self, text: str, *claims: SymbolicArray) -> None:
        """Show what the theorem says."""
        for claim in _cells(claims):
            self._show(text, claim)
            self._learn("goal", text, claim)

    def claim(
        self, rule: Any, kind: type[Claim] | Claim, p: SymbolicArray, q: SymbolicArray, *, looser: Any = None
    ) -> None:
        """Show a claim, or the claims of a kind that the rule itself makes."""
        claims = [c for c in rule.claims if isinstance(c, kind)] if isinstance(kind, type) else [kind]
        if not claims:
            msg = f"{type(rule).__name__} makes no claim of the kind {kind.__name__}"  # type: ignore[union-attr]
            raise InvalidInput(msg)
        for claim in claims:
            self.goal(str(claim), *statements(claim, rule, p, q, looser=looser))

    def cases(self, text: str, holds: Any) -> None:
        """Show a statement about finitely many cases by trying each: an array of truth values, one a case."""
        if not holds.all():
            raise Unproved(text, None, "refuted")
        self._step("cases", text, holds.size)

    def ask(self, claim: Term, *, seconds: float) -> tuple[Answer, z3.ModelRef | None]:
        """Whether a claim follows from what is known, and where it fails if not; it is not known from here on."""
        answer, _, model = self._build("asked", claim, self.world.generic, None).solve(seconds=seconds)
        return answer, model

    def attempt(self, step: Callable[[], Any]) -> Unproved | None:
        """Take a step, or undo it and return why it failed."""
        steps, obligations, knowledge = len(self.steps), len(self.obligations), self._knowledge.copy()
        names = self.part.names.copy()
        try:
            step()
        except Unproved as failure:
            del self.steps[steps:], self.obligations[obligations:]
            self._knowledge, self.part.names[:] = knowledge, names
            return failure
        return None

    def induction(
        self,
        text: str,
        claim: Callable[..., SymbolicArray],
        *,
        start: Sequence[Any],
        step: Callable[..., Sequence[Any]],
        at: Sequence[Any],
    ) -> None:
        """Show a claim about every member of the sequence x_0 = start, x_{k+1} = step(x_k), and know it of the member
        `at`.

        The claim is shown for `start`, and for `step(x)` whenever it holds for x.
        """
        any_member = [self._like(example) for example in at]
        self._show(f"{text}: at the start", claim(*start).term)
        self._show(f"{text}: from one step to the next", implies(claim(*any_member), claim(*step(*any_member))).term)
        self._learn("lemma", text, claim(*at).term)

    def _like(self, example: Any) -> SymbolicArray:
        name = next(n for n in (f"x_{i}" for i in count(1)) if n not in self.world.families)
        return self.function(name) if getattr(example, "per_token", False) else self.number(name)

    def mass(self, text: str, x: SymbolicArray, *, over: Term | None = None) -> SymbolicArray:
        """Show that x is nowhere negative; then its sum is not negative either, and at least each single value of x."""
        self._must_be_arbitrary(self.world.generic if over is None else over)
        self._show(text, (x >= 0).term)
        whole = self.total(x, over=over)
        self._learn("sum", text, z3.And(whole.term >= 0, x.term <= whole.term), (x >= 0).term)
        return whole

    def sum_lemma(
        self,
        text: str,
        claim: SymbolicArray,
        *,
        modulo: Sequence[SymbolicArray] = (),
        over: Term | None = None,
        apart_from: Term | None = None,
    ) -> None:
        """Show f <= g (or f = g, or either under a condition on scalars) at every token, and know it of the sums.

        With `modulo` n_1, n_2, ... it is enough that f <= g + sum_j c_j n_j for constants c_j, which are searched
        for; what is known then is sum f <= sum g + sum_j c_j sum n_j. With `apart_from` t the claim need not hold at
        t, and the sums run over the other tokens.
        """
        over = self.world.generic if over is None else over
        self._must_be_arbitrary(over)
        condition, relation, left, right = _parse(claim.term, over)
        null = [n.term for n in modulo]

        def with_multipliers(c: multipliers.Multipliers) -> Term:
            return terms.total([right, *(terms.multiply(terms.number(x), n) for x, n in zip(c, null, strict=True))])

        def works(c: multipliers.Multipliers) -> multipliers.Failure | None:
            claim = _under(condition, relation(left, with_multipliers(c)))
            answer, obligation, model = self._solve(text, claim, over, apart_from)
            if answer == "proved":
                return None
            if model is None or not null:
                raise Unproved(text, obligation, answer)
            return self._failure(obligation, model, left, right, null)

        found, last = multipliers.search(len(null), works, equation=z3.is_eq(relation(left, right)))
        if found is None:
            tried = self._build(text, _under(condition, relation(left, with_multipliers(last))), over, apart_from)
            without = f"{text} (for no multiple of what sums to zero)"
            raise Unproved(without, tried, "unknown")
        others = terms.TRUE if apart_from is None else z3.Not(over == apart_from)
        at_each_token = _under(others, relation(left, with_multipliers(found)))
        sums = relation(*(self._sum_apart(side, over, apart_from) for side in (left, with_multipliers(found))))
        self._learn("sum", text, _under(condition, sums), _under(condition, at_each_token))

    def _must_be_arbitrary(self, token: Term) -> None:
        """Refuse to sum over a named token about which something was supposed."""
        if not token.eq(self.world.generic):
            for step in self.steps:
                if step.role == "hypothesis" and terms.mentions(step.says, token):
                    msg = f"a sum over {token} would use the hypothesis {step.text!r}, which is about that token alone"
                    raise InvalidInput(msg)

    def _sum_apart(self, term: Term, over: Term, apart_from: Term | None) -> Term:
        whole = sum_over(self.world, term, over)
        return whole if apart_from is None else terms.subtract(whole, terms.at(term, [over], [apart_from]))

    def _failure(
        self, obligation: Obligation, model: z3.ModelRef, left: Term, right: Term, null: Sequence[Term]
    ) -> multipliers.Failure:
        constants = [(meaning, _constant(name, meaning)) for name, meaning in obligation.legend.items()]

        def value(term: Term) -> Fraction:
            return rational(model, z3.substitute(term, *constants))

        return value(left) - value(right), [value(n) for n in null]

    # -- solving -------------------------------------------------------------------------------------------------------

    def name(self, **quantities: SymbolicArray) -> None:
        """Give names to terms: a step is first tried on the names alone, with what is known of them."""
        for name, x in quantities.items():
            if z3.is_app_of(x.term, z3.Z3_OP_UNINTERPRETED):
                continue  # a symbol has a name
            taken = {*self.world.families, *self.world.definitions, *(known for known, _ in self.part.names)}
            unused = next(n for n in chain([name], (f"{name}_{i}" for i in count(2))) if n not in taken)
            self.part.names.append((unused, x.term))
        self.part.names.sort(key=lambda named: -sum(1 for _ in terms.subterms(named[1])))

    def _show(self, text: str, claim: Term) -> None:
        answer, obligation, _ = self._solve(text, claim, self.world.generic, None)
        if answer != "proved":
            raise Unproved(text, obligation, answer)

    def _solve(
        self, text: str, claim: Term, over: Term, apart_from: Term | None
    ) -> tuple[Answer, Obligation, z3.ModelRef | None]:
        """Ask, with names for terms and then without, from what is nearby and then from all that is known.

        What z3 and cvc5 agree on is shown, and recorded.
        """
        for names in [self.part.names, []] if self.part.names else [[]]:
            everything = self._build(text, claim, over, apart_from, names)
            for obligation in (everything.nearby(), everything):
                answer, settled, model = obligation.solve()
                if answer == "proved":
                    if settled.agreed():
                        self.obligations.append(settled)
                        return "proved", settled, None
                    answer = "unknown"
        return answer, settled, model

    def _build(
        self,
        text: str,
        claim: Term,
        over: Term,
        apart_from: Term | None,
        opaque: Sequence[tuple[str, Term]] = (),
    ) -> Obligation:
        given = [] if apart_from is None else [("another token", z3.Not(over == apart_from))]
        title = f"{self.part.title}: {text}" if self.part.title else text
        return self._knowledge.obligation(title, claim, given=given, opaque=opaque)

    def _learn(self, role: Role, text: str, claim: Term, at_each_token: Term | None = None) -> None:
        self._knowledge.learn(text, claim)
        self._step(role, text, claim, at_each_token)

    def _step(self, role: Role, text: str, says: Term | int, at_each_token: Term | None = None) -> None:
        before = self.steps[-1].obligations.stop if self.steps else 1
        shown_by = range(before, len(self.obligations) + 1)
        self.steps.append(Step(self.part, role, text, says, at_each_token, shown_by))


def implies(condition: SymbolicArray, conclusion: SymbolicArray) -> SymbolicArray:
    """The conclusion wherever the condition holds."""
    return elementwise(z3.Implies, condition, conclusion)


def _under(condition: Term, conclusion: Term) -> Term:
    return conclusion if z3.is_true(condition) else z3.Implies(condition, conclusion)


def _constant(name: str, term: Term) -> Term:
    return z3.Bool(name) if z3.is_bool(term) else z3.Real(name)


def _cells(claims: Sequence[SymbolicArray]) -> list[Term]:
    return [cell for claim in claims for cell in claim.cells.flat]


def _parse(claim: Term, over: Term) -> tuple[Term, Any, Term, Term]:
    """(condition, relation, left side, right side) of a claim to be summed."""
    condition = terms.TRUE
    while z3.is_implies(claim):
        condition, claim = claim.arg(0) if z3.is_true(condition) else z3.And(condition, claim.arg(0)), claim.arg(1)
    if terms.mentions(condition, over):
        msg = "the condition of a claim to be summed depends on the token; put it inside with where"
        raise InvalidInput(msg)
    left, right = claim.children()
    if z3.is_eq(claim):
        return condition, lambda a, b: a == b, left, right
    if z3.is_le(claim):
        return condition, lambda a, b: a <= b, left, right
    if z3.is_ge(claim):
        return condition, lambda a, b: a <= b, right, left
    msg = f"{claim} is neither an equation nor one of <= and >="
    raise InvalidInput(msg)
