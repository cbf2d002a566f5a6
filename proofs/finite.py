"""Vocabularies of a few tokens, spelled out: the second way to read a rule, for witnesses and as a check on the first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fly_theory.arrays import array_namespace
from proofs.symbolic import SymbolicArray, World
from proofs.symbolic.array import elementwise


def rows(world: World, *entries: Sequence[Any]) -> tuple[SymbolicArray, ...]:
    """Rows over a vocabulary of as many tokens as there are entries: symbols, integers or fractions."""
    return tuple(_row(world, row) for row in entries)


def _row(world: World, entries: Sequence[Any]) -> SymbolicArray:
    cells = np.empty(len(entries), dtype=object)
    cells[:] = [elementwise(lambda a: a, entry, world=world).term for entry in entries]
    return SymbolicArray(world, cells)


def is_distribution(row: SymbolicArray) -> tuple[SymbolicArray, SymbolicArray]:
    """That a row is nowhere negative and sums to one."""
    return row >= 0, array_namespace(row).sum(row, axis=-1) == 1
