"""The rule keeps as many drafts as another one."""

from dataclasses import dataclass

from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant
from fly_theory.registry import block_rule

__all__ = ["KeepsAtLeast"]


@dataclass(frozen=True)
class KeepsAtLeast(BlockInvariant):
    """On average at least as many drafts are kept as by the named rule."""

    rule: str

    @property
    def name(self) -> str:
        return f"keeps at least as many drafts as {self.rule}"

    def judge(self, case: BlockCase) -> Violation | None:
        other = case.of(block_rule(self.rule))
        if case.exceeds(other.kept, case.kept):
            return Violation("expected drafts kept", values(case.kept), values(other.kept), relation=">=")
        return None
