"""A perfect draft changes nothing."""

from dataclasses import dataclass

from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant

__all__ = ["FixedPoint"]


@dataclass(frozen=True)
class FixedPoint(BlockInvariant):
    """With the target's rows as draft every draft is kept and the text is the target's. The draft is not looked at."""

    @property
    def name(self) -> str:
        return "accepts everything at p = q"

    def judge(self, case: BlockCase) -> Violation | None:
        equal = BlockCase(case.rule, case.pair.target, case.pair.target, case.draft_length)
        inputs = {"draft": values(case.pair.target)}
        if case.differ(equal.kept, case.array(case.draft_length)):
            return Violation("expected drafts kept", values(equal.kept), case.draft_length, inputs=inputs)
        if case.differ(equal.text_law, equal.target_text_law):
            return Violation("law of the text", values(equal.text_law), values(equal.target_text_law), inputs=inputs)
        return None
