"""The text is the target's."""

from dataclasses import dataclass

from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant

__all__ = ["Lossless"]


@dataclass(frozen=True)
class Lossless(BlockInvariant):
    """The joint law of the emitted text, over K + 1 tokens of repeated rounds, is the target's."""

    @property
    def name(self) -> str:
        return "lossless"

    def judge(self, case: BlockCase) -> Violation | None:
        if case.differ(case.text_law, case.target_text_law):
            return Violation("law of the text", values(case.text_law), values(case.target_text_law))
        return None
