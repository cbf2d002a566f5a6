"""The rule answers with laws."""

from dataclasses import dataclass

from fly_theory.invariants.base import RuleFailure, Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant

__all__ = ["Answers"]


@dataclass(frozen=True)
class Answers(BlockInvariant):
    """On every block the length law is a distribution over 0..K, and so is the next token's where a round may stop."""

    @property
    def name(self) -> str:
        return "answers with laws"

    def judge(self, case: BlockCase) -> Violation | None:
        try:
            lengths, following, _ = case.length_law, case.next_token, case.text_law
        except RuleFailure as failure:
            return Violation("the answer", str(failure), "laws")
        zero = case.xp.zeros_like(lengths)
        if case.exceeds(zero, lengths):
            return Violation("length law", values(lengths), values(zero), relation=">=")
        if case.exceeds(case.xp.zeros_like(following), following):
            return Violation("next token", values(following), values(case.xp.zeros_like(following)), relation=">=")
        total = case.xp.sum(lengths, axis=-1)
        if case.differ(total, case.xp.ones_like(total)):
            return Violation("sum of the length law", values(total), values(case.xp.ones_like(total)))
        mass = case.xp.sum(following, axis=-1)
        reached = case.xp.astype(lengths > case.tolerance, lengths.dtype)
        if case.differ(mass, reached):
            return Violation("sum of the next token's law", values(mass), values(reached))
        return None
