"""Prove a theorem, or refute it with a counterexample, or say what is missing."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fly_theory.errors import FlyTheoryError
from proofs.derivation import Derivation
from proofs.obligation import Answer, Obligation
from proofs.printing import is_identity
from proofs.search import Witness
from proofs.steps import Step, Unproved
from proofs.theorem import Theorem

__all__ = ["Certificate", "Proof", "prove_theorem"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was shown on the way: the steps of the proof and every obligation, with its SMT-LIB2 text."""

    steps: Sequence[Step]
    obligations: Sequence[Obligation]


@dataclass(frozen=True, eq=False)
class Proof:
    """How a theorem came out.

    outcome is "proved" (z3 and cvc5 agree on every obligation), "refuted" (with a witness judged exactly) or "unknown"
    (`missing` says which lemma failed).
    """

    theorem: Theorem
    outcome: Answer
    method: str
    seconds: float
    certificate: Certificate
    witness: Witness | None = None
    missing: str = ""

    @property
    def name(self) -> str:
        """The name of the theorem."""
        return self.theorem.name

    @property
    def as_expected(self) -> bool:
        """Whether the outcome is the one the book states."""
        return self.outcome == self.theorem.expected

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, without the texts of the obligations."""
        return {
            "name": self.name,
            "statement": self.theorem.statement,
            "outcome": self.outcome,
            "expected": self.theorem.expected,
            "method": self.method,
            "obligations": len(self.certificate.obligations),
            "seconds": round(self.seconds, 3),
            "witness": self.witness.as_json() if self.witness else None,
            "missing": self.missing or None,
        }


def prove_theorem(
    theorem: Theorem, substitutes: Mapping[str, Any], *, only: str | None = None, search: bool = True
) -> Proof:
    """Run the proof; where it fails, or there is none, search for a counterexample to what it is about.

    Of a theorem about several rules, `only` proves the part about the one of that name. `substitutes` puts classes, or
    rules, in the place of registered ones.
    """
    started = time.perf_counter()
    derivation = Derivation(substitutes, only=only)
    missing = ""
    if theorem.proof is not None:
        missing = _run(theorem.proof, derivation)
    certificate = Certificate(derivation.steps, derivation.obligations)

    def concluded(outcome: Answer, method: str, witness: Witness | None = None) -> Proof:
        seconds = time.perf_counter() - started
        return Proof(theorem, outcome, method, seconds, certificate, witness, missing)

    if theorem.proof is not None and not missing:
        return concluded("proved", _method(certificate))
    concerned = [subject for subject in theorem.about if not substitutes or subject.rule in substitutes]
    for subject in concerned if search else ():
        witness = subject.refute(substitutes.get(subject.rule))
        if witness is not None:
            return concluded("refuted", "exact search", witness)
    return concluded("unknown", "none")


def _method(certificate: Certificate) -> str:
    if any(step.role == "cases" for step in certificate.steps):
        return "all cases"
    unconditional = (o.conclusion for o in certificate.obligations if not o.hypotheses)
    return "z3, cvc5, sympy" if any(map(is_identity, unconditional)) else "z3, cvc5"


def _run(proof: Callable[[Derivation], None], derivation: Derivation) -> str:
    """Run a proof; what failed, or nothing."""
    try:
        proof(derivation)
        derivation.finish()
    except (Unproved, FlyTheoryError) as error:
        part = derivation.part.title
        return f"{part}: {error}" if part else str(error)
    return ""
