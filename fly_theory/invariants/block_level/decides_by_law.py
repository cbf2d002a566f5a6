"""The decisions follow the length law."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fly_theory.blocks.base import Block
from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant
from fly_theory.invariants.sampling import Axis

__all__ = ["DecidesByLaw"]


@dataclass(frozen=True)
class DecidesByLaw(BlockInvariant):
    """`decide`, integrated over its uniforms, gives the length law.

    The uniforms are cut where the tests of the rule change (its `passes`, if it has them); `decide` must not change
    within a piece.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "decisions follow the length law"

    def judge(self, case: BlockCase) -> Violation | None:
        tests = getattr(case.rule, "passes", None)
        passes = values(case.ask(lambda: tests(case.block))) if tests else [()] * len(case.block.tokens)
        for index, points in enumerate(passes):
            axes = [Axis.through(points[i : i + 1], is_exact=case.is_exact) for i in range(case.draft_length)]
            violation = self._judge(case, index, axes)
            if violation is not None:
                return violation
        return None

    def _judge(self, case: BlockCase, index: int, axes: list[Axis]) -> Violation | None:
        coins = list(itertools.product(*(axis.coins for axis in axes)))
        block = Block(*(part[index] for part in case.block))
        decided = np.asarray(case.decide(block, case.array(coins))).reshape([len(axis.coins) for axis in axes])
        inputs = {"drafts": tuple(case.block.tokens[index].tolist())}
        law: list[Any] = [0] * (case.draft_length + 1)
        for piece in itertools.product(*(range(len(axis.lengths)) for axis in axes)):
            ends = decided[np.ix_(*((2 * i, 2 * i + 1) for i in piece))]
            if (ends != ends.flat[0]).any():
                return Violation("decide within a piece", tuple(ends.flat), (ends.flat[0],), inputs=inputs)
            law[ends.flat[0]] += np.prod([axis.lengths[i] for axis, i in zip(axes, piece, strict=True)])
        got, expected = case.array(law), case.length_law[index]
        if case.differ(got, expected):
            return Violation("law of decide", values(got), values(expected), inputs=inputs)
        return None
