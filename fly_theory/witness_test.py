"""Counterexamples as pytest cases, ready to paste."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Source", "pytest_case", "quoted"]


class Source(NamedTuple):
    """How Python code makes a rule."""

    expression: str
    imports: tuple[str, ...] = ()


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def pytest_case(name: str, judge: str, source: Source, arguments: Sequence[str], needed: Sequence[str]) -> str:
    """A test that fails for as long as the rule breaks an invariant there.

    `judge` is the expression that makes the invariant, `arguments` are those of its `examine` after the rule, and
    `needed` what must be imported beyond fly_theory's invariants.
    """
    identifier = re.sub(r"\W+", "_", name).strip("_").lower()
    code = " ".join([judge, source.expression, *arguments])
    fractions = ["from fractions import Fraction\n"] if "Fraction(" in code else []
    numpy = ["import numpy as np\n"] if "np." in code else []
    imports = [
        *fractions,
        *numpy,
        "import fly_theory as ft",
        "from fly_theory import invariants",
        *needed,
        *source.imports,
    ]
    body = [
        f"    rule = {source.expression}",
        f"    violation = {judge}.examine(rule, {', '.join(arguments)})",
        "    assert violation is None, violation",
    ]
    return "\n".join([*imports, "", "", f"def test_{identifier}():", *body])
