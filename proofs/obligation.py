"""One thing to be shown: hypotheses, a conclusion, and the SMT-LIB2 text on which two solvers must agree."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import z3

from proofs import second_opinion
from proofs.symbolic.terms import Term, subterms

Answer = Literal["proved", "refuted", "unknown"]
_ANSWERS: dict[str, Answer] = {"unsat": "proved", "sat": "refuted"}
_SECONDS = 10


class Hypothesis(NamedTuple):
    """What is known, in words and as a formula over the constants it names; `definition` when it says what one of
    them is."""

    text: str
    formula: Term
    constants: frozenset[str]
    definition: bool


@dataclass(frozen=True, eq=False)
class Obligation:
    """Hypotheses and a conclusion over real and truth-valued constants, in the logic QF_NRA.

    `legend` says what each constant stands for.
    """

    title: str
    hypotheses: tuple[Hypothesis, ...]
    conclusion: Term
    legend: Mapping[str, Term]

    def smt2(self) -> str:
        """The text whose unsatisfiability is the obligation: the hypotheses, and the conclusion denied."""
        lines = [f"; {self.title}", "(set-logic QF_NRA)", "(set-info :status unsat)"]
        for name, meaning in sorted(self.legend.items()):
            sort = "Bool" if z3.is_bool(meaning) else "Real"
            lines.append(f"(declare-const |{name}| {sort})")
        for known in self.hypotheses:
            lines += [f"; {known.text}", f"(assert {known.formula.sexpr()})"]
        lines += ["; the conclusion, denied", f"(assert (not {self.conclusion.sexpr()}))", "(check-sat)", ""]
        return "\n".join(lines)

    def nearby(self) -> "Obligation":
        """The same conclusion from those hypotheses only that speak of nothing but its constants and what defines
        them."""
        reach = constants_in(self.conclusion)
        definitions = [known.constants for known in self.hypotheses if known.definition]
        while further := [constants for constants in definitions if constants & reach and not constants <= reach]:
            reach = reach.union(*further)
        return self._only({i for i, known in enumerate(self.hypotheses) if known.constants <= reach})

    def solve(self, *, seconds: float = _SECONDS) -> tuple[Answer, "Obligation", z3.ModelRef | None]:
        """Ask z3: when proved, the same conclusion from those hypotheses only that were used; else also where it fails.

        The answer depends on the text alone, not on what was asked before.
        """
        context = z3.Context()
        *hypotheses, denied = z3.parse_smt2_string(self.smt2(), ctx=context)
        solver = z3.Solver(ctx=context)
        solver.set("timeout", int(seconds * 1000))
        for i, formula in enumerate(hypotheses):
            solver.assert_and_track(formula, z3.Bool(f"hypothesis {i}", context))
        solver.add(denied)
        result = solver.check()
        if result == z3.unsat:
            used = {int(str(label).split()[-1].strip("|")) for label in solver.unsat_core()}
            return "proved", self._only(used), None
        return ("refuted", self, solver.model()) if result == z3.sat else ("unknown", self, None)

    def _only(self, used: set[int]) -> "Obligation":
        kept = tuple(known for i, known in enumerate(self.hypotheses) if i in used)
        spoken = constants_in(self.conclusion).union(*(known.constants for known in kept))
        return replace(self, hypotheses=kept, legend={name: t for name, t in self.legend.items() if name in spoken})

    def agreed(self) -> bool:
        """Whether z3 and cvc5 both prove it, from its text."""
        return self.check() == "proved" and self.recheck() == "proved"

    def check(self) -> Answer:
        """Ask z3 from the text, with another of its procedures than `solve`."""
        solver = z3.SolverFor("QF_NRA", ctx=z3.Context())
        solver.set("timeout", _SECONDS * 1000)
        solver.from_string(self.smt2())
        return _ANSWERS.get(str(solver.check()), "unknown")

    def recheck(self) -> Answer:
        """Ask cvc5 from the text."""
        return _ANSWERS.get(second_opinion.ask(self.smt2(), seconds=_SECONDS), "unknown")


def constants_in(formula: Term) -> frozenset[str]:
    """The names of the constants of a formula."""
    return frozenset(t.decl().name() for t in subterms(formula) if z3.is_app_of(t, z3.Z3_OP_UNINTERPRETED))


def rational(model: z3.ModelRef, term: Term) -> Fraction:
    """The value of a term in a model, as a fraction (to ten digits where it is irrational)."""
    found: Any = model.eval(term.translate(model.ctx), model_completion=True)
    if z3.is_algebraic_value(found):
        found = found.approx(10)
    return Fraction(found.as_fraction())
