"""Theorems about verification rules, machine-checked for every vocabulary size, or refuted with a counterexample.

    proofs.theorems()         names of all theorems, in the order of the book
    proofs.prove("lossless")  Proof(outcome, method, seconds, certificate, witness)

README.md in this folder says why a proof about one generic token and a few sums holds for every vocabulary.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from proofs.theorem import find, theorems

if TYPE_CHECKING:
    from proofs.prover import Proof

__all__ = ["prove", "theorems"]


def prove(name: str, *, substitutes: Mapping[str, type] | None = None) -> "Proof":
    """Prove the theorem of that name, about the registered rules or about the classes put in their place, by rule name.

    Raises
    ------
    UnknownName
        With the nearest names.
    MissingExtra
        When the solvers are not installed.
    """
    theorem = find(name)
    from proofs.prover import prove_theorem

    return prove_theorem(theorem, substitutes or {})
