"""Loosening a parameter never keeps fewer drafts."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from fly_theory.arrays import Array
from fly_theory.invariants.base import Violation
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant

__all__ = ["KeptMonotoneIn"]

_COINS = (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(999, 1000))


@dataclass(frozen=True)
class KeptMonotoneIn(BlockInvariant):
    """On every block and the same uniforms, moving `parameter` in its looser direction never keeps fewer drafts.

    Judged between the rule's own value and the typical ones that the parameter declares, on a grid of uniforms.
    """

    parameter: str
    looser: Literal["smaller", "larger"]

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return f"keeps more drafts as {self.parameter} gets {self.looser}"

    def judge(self, case: BlockCase) -> Violation | None:
        ordered = case.settings_of(self.parameter, looser=self.looser)
        family = [self._decided(case.having({self.parameter: value})) for value in ordered]
        for (tight, fewer), (loose, more) in itertools.pairwise(zip(ordered, family, strict=True)):
            lost = np.argwhere(more < fewer)
            if len(lost):
                coin, block = lost[0]
                inputs = {
                    f"{self.parameter} (tighter, then looser)": (tight, loose),
                    "drafts": tuple(case.block.tokens[block].tolist()),
                    "uniforms": _grid(case)[coin],
                }
                return Violation(
                    "drafts kept when looser", int(more[coin, block]), int(fewer[coin, block]), ">=", inputs
                )
        return None

    def _decided(self, case: BlockCase) -> Array:
        """Drafts kept (coins, blocks)."""
        return np.stack([np.asarray(case.decide(case.block, case.array([coins]))) for coins in _grid(case)])


def _grid(case: BlockCase) -> list[tuple[Fraction, ...]]:
    return list(itertools.product(_COINS, repeat=case.draft_length))
