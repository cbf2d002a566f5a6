"""Every next token stays under a multiple of the target."""

from dataclasses import dataclass

import numpy as np

from fly_theory.arrays import Array, Number
from fly_theory.claims import Bound
from fly_theory.invariants.base import Violation, values
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant

__all__ = ["Ceiling"]


@dataclass(frozen=True)
class Ceiling(BlockInvariant):
    """Given the text before it, no token has more than factor * p; the factor may be a function of the rows (p, q)."""

    factor: Number | Bound
    formula: str = ""

    @property
    def name(self) -> str:
        return f"ceiling {self.formula or self.factor}"

    def judge(self, case: BlockCase) -> Violation | None:
        vocabulary = case.pair.vocabulary
        texts = case.xp.reshape(case.text_law, (-1,))
        for length in range(case.draft_length + 1):
            here = case.xp.sum(case.xp.reshape(texts, (vocabulary**length, vocabulary, -1)), axis=-1)
            last = np.tile(np.arange(vocabulary), vocabulary ** (length - 1)) if length else np.zeros(1, dtype=int)
            limit = self._limit(case, last) * case.xp.sum(here, axis=-1, keepdims=True)
            if case.exceeds(here, limit):
                inputs = {"texts, one a row, of length": length + 1}
                return Violation("law of the text", values(here), values(limit), "<=", inputs)
        return None

    def _limit(self, case: BlockCase, last: Array) -> Array:
        p, q = case.pair.target[last], case.pair.draft[last]
        factor = case.evaluate(self.factor, p, q)
        factor = case.xp.broadcast_to(factor, last.shape)[:, None]
        finite = case.xp.isfinite(factor)
        one = case.xp.ones_like(p)
        return case.xp.where(finite, case.xp.where(finite, factor, one) * p, one)
