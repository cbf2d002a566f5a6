"""fly-theory: exact analysis, simulation, proof and replay of speculative-decoding verification rules.

Names resolve on first use, so importing the package costs little and needs neither jax nor torch. Target p, draft q,
vocabulary V, draft length K: this order, these letters, everywhere; logs are natural.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_EXPORTS = {
    "Block": "fly_theory.blocks",
    "BlockRule": "fly_theory.blocks",
    "Claim": "fly_theory.claims",
    "ContextTreePair": "fly_theory.pairs",
    "DraftTree": "fly_theory.trees",
    "ExactArray": "fly_theory.exact",
    "Interpreter": "fly_theory.interpreters",
    "Lengths": "fly_theory.joint_law",
    "MarkovPair": "fly_theory.pairs",
    "Report": "fly_theory.report",
    "Rule": "fly_theory.rules.base",
    "TreeRule": "fly_theory.trees",
    "Verdict": "fly_theory.rules.base",
    "block_efficiency": "fly_theory.closed_form",
    "block_rule": "fly_theory.registry",
    "conformance": "fly_theory.conformance",
    "conformance_engine": "fly_theory.conformance",
    "check": "fly_theory.check",
    "entropy": "fly_theory.distributions",
    "exact": "fly_theory.exact",
    "expected_lengths": "fly_theory.joint_law",
    "joint_law": "fly_theory.joint_law",
    "normalised_entropy": "fly_theory.distributions",
    "rule": "fly_theory.registry",
    "rules": "fly_theory.registry",
    "softmax": "fly_theory.distributions",
    "target_law": "fly_theory.joint_law",
    "tokenwise": "fly_theory.blocks",
    "top_k_entropy": "fly_theory.distributions",
    "tree_rule": "fly_theory.registry",
    "warp": "fly_theory.distributions",
    "waste": "fly_theory.closed_form",
}
_SUBMODULES = (
    "allowed_sets",
    "claims",
    "closed_form",
    "cost",
    "distributions",
    "divergence",
    "errors",
    "false_acceptance",
    "published",
    "renewal",
    "testing",
    "trees",
)

__version__ = "0.1.0"
__all__ = [*_EXPORTS, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    """Exported names, submodules, and registered rule classes by class name (`ft.Lenience`)."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"fly_theory.{name}")
    if name[:1].isupper():
        from fly_theory.registry import class_by_name

        found = class_by_name(name)
        if found is not None:
            return found
    msg = f"module 'fly_theory' has no attribute {name!r}"
    raise AttributeError(msg)


class _Package(ModuleType):
    """Keeps an exported function in its place when a submodule of the same name (`rules`, `check`) is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _EXPORTS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
