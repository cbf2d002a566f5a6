"""At stated parameters the rule is another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fly_theory.invariants.base import Case, Invariant, Violation, values
from fly_theory.registry import rule as rule_named

__all__ = ["ReducesTo"]


@dataclass(frozen=True)
class ReducesTo(Invariant):
    """With the parameters set to `at`, acceptance and out are those of the rule with the SPEC `rule`."""

    rule: str
    at: Mapping[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        return f"{self.rule} at {', '.join(f'{name}={value}' for name, value in self.at.items()) or 'every setting'}"

    def judge(self, case: Case) -> Violation | None:
        reduced, other = case.having(self.at), case.of(rule_named(self.rule))
        if case.differ(reduced.acceptance, other.acceptance):
            return Violation("acceptance", values(reduced.acceptance), values(other.acceptance), inputs=self.at)
        if case.differ(reduced.out, other.out):
            return Violation("out", values(reduced.out), values(other.out), inputs=self.at)
        return None
