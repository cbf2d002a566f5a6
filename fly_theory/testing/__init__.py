"""For the tests of other people's engines: table models, one-line checks, strategies."""

import importlib
from typing import Any

_EXPORTS = {
    "TableModel": "fly_theory.testing.table_model",
    "chains": "fly_theory.strategies",
    "conforms": "fly_theory.testing.checks",
    "distributions": "fly_theory.strategies",
    "pairs": "fly_theory.strategies",
    "pretrained_table_model": "fly_theory.testing.pretrained",
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
