"""One thing to be shown: hypotheses, a conclusion, and the SMT-LIB2 text on which two solvers must agree."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import z3

from proofs.symbolic.terms import Term, subterms

Answer = Literal["proved", "refuted", "unknown"]
_SECONDS = 20


@dataclass(frozen=True, eq=False)
class Obligation:
    """Hypotheses and a conclusion over real and truth-valued constants, in the logic QF_NRA.

    `legend` says what each constant stands for.
    """

    title: str
    hypotheses: tuple[tuple[str, Term], ...]
    conclusion: Term
    legend: Mapping[str, Term]

    def smt2(self) -> str:
        """The text whose unsatisfiability is the obligation: the hypotheses, and the conclusion denied."""
        lines = [f"; {self.title}", "(set-logic QF_NRA)", "(set-info :status unsat)"]
        for name, meaning in sorted(self.legend.items()):
            sort = "Bool" if z3.is_bool(meaning) else "Real"
            lines.append(f"(declare-const |{name}| {sort})")
        for text, formula in self.hypotheses:
            lines += [f"; {text}", f"(assert {formula.sexpr()})"]
        lines += ["; the conclusion, denied", f"(assert (not {self.conclusion.sexpr()}))", "(check-sat)", ""]
        return "\n".join(lines)

    def check(self) -> tuple[Answer, z3.ModelRef | None]:
        """Ask z3, from the text; when the conclusion need not hold, also where it fails."""
        solver = z3.SolverFor("QF_NRA")
        solver.set("timeout", _SECONDS * 1000)
        solver.from_string(self.smt2())
        result = solver.check()
        if result == z3.unsat:
            return "proved", None
        return ("refuted", solver.model()) if result == z3.sat else ("unknown", None)

    def distilled(self) -> "Obligation":
        """The same conclusion from those hypotheses only that z3 used; a shorter text, and easier for another solver."""
        solver = z3.Solver()
        solver.set("timeout", _SECONDS * 1000)
        for i, (_, formula) in enumerate(self.hypotheses):
            solver.assert_and_track(formula, f"hypothesis {i}")
        solver.add(z3.Not(self.conclusion))
        if solver.check() != z3.unsat:
            return self
        needed = {int(str(label).split()[-1].strip("|")) for label in solver.unsat_core()}
        kept = tuple(hypothesis for i, hypothesis in enumerate(self.hypotheses) if i in needed)
        spoken = subterms(self.conclusion, *(formula for _, formula in kept))
        constants = {term.decl().name() for term in spoken if z3.is_app_of(term, z3.Z3_OP_UNINTERPRETED)}
        return replace(self, hypotheses=kept, legend={name: t for name, t in self.legend.items() if name in constants})

    def recheck(self) -> Answer:
        """Ask cvc5, from the same text."""
        import cvc5

        solver = cvc5.Solver(cvc5.TermManager())
        solver.setOption("tlimit-per", str(_SECONDS * 1000))
        parser = cvc5.InputParser(solver)
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, self.smt2(), self.title)
        symbols = parser.getSymbolManager()
        answer = ""
        while not (command := parser.nextCommand()).isNull():
            answer = command.invoke(solver, symbols).strip() or answer
        return {"unsat": "proved", "sat": "refuted"}.get(answer, "unknown")  # type: ignore[return-value]


def rational(model: z3.ModelRef, term: Term) -> Fraction:
    """The value of a term in a model, as a fraction (to ten digits where it is irrational)."""
    found: Any = model.eval(term, model_completion=True)
    if z3.is_algebraic_value(found):
        found = found.approx(10)
    return Fraction(found.as_fraction())
