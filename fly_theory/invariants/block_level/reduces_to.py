"""At stated parameters the rule is another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant
from fly_theory.registry import block_rule

__all__ = ["ReducesTo"]


@dataclass(frozen=True)
class ReducesTo(BlockInvariant):
    """With the parameters set to `at`, length law and next-token laws on every block are those of the named rule."""

    rule: str
    at: Mapping[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        return f"{self.rule} at {', '.join(f'{name}={value}' for name, value in self.at.items()) or 'every setting'}"

    def judge(self, case: BlockCase) -> Violation | None:
        reduced, other = case.having(self.at), case.of(block_rule(self.rule))
        if case.differ(reduced.length_law, other.length_law):
            return Violation("length law", values(reduced.length_law), values(other.length_law), inputs=self.at)
        if case.differ(reduced.next_token, other.next_token):
            return Violation("next token", values(reduced.next_token), values(other.next_token), inputs=self.at)
        return None
