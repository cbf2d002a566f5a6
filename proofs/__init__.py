"""Theorems about verification rules, machine-checked for every vocabulary size, or refuted with a counterexample.

    proofs.theorems()        names of all theorems
    proofs.prove("lossless") -> Proof(outcome, method, seconds, certificate, witness)
"""

from typing import Any

from proofs.theorem import theorems

__all__ = ["prove", "theorems"]


def prove(name: str, **substitutes: Any) -> Any:
    raise NotImplementedError
