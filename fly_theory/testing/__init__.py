"""For the tests of other people's engines: one-line checks, adapters, table models, counters; and strategies."""

import importlib
from typing import Any

_EXPORTS = {
    "Step": "fly_theory.conformance.metrics",
    "TableModel": "fly_theory.testing.table_model",
    "TensorVerifier": "fly_theory.conformance.adapters",
    "block_rule_verifier": "fly_theory.conformance.adapters",
    "check_log_probs": "fly_theory.conformance.metrics",
    "check_metrics": "fly_theory.conformance.metrics",
    "check_stopping": "fly_theory.conformance.metrics",
    "conforms": "fly_theory.testing.checks",
    "pretrained_table_model": "fly_theory.testing.pretrained",
    "transformers_speculative_sampling": "fly_theory.conformance.adapters",
}

__all__ = [*_EXPORTS]


def __getattr__(name: str) -> Any:
    """Exported names; torch and transformers are imported by those that need them."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    msg = f"module 'fly_theory.testing' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
