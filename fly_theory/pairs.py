"""Toy autoregressive pairs: a target p and a draft q over V tokens, given by tables of next-token laws.

A pair has finitely many contexts. Its tables hold one row a context, and `successor` says which context follows when a
token is emitted, so every analysis and simulation reads a pair in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fly_theory.arrays import Array, array_namespace
from fly_theory.distributions import as_distribution
from fly_theory.errors import InvalidInput, ShapeError

__all__ = ["ContextTreePair", "MarkovPair", "Pair"]


@dataclass(frozen=True, eq=False)
class Pair:
    """Base of the pairs: target p (C, V) and draft q (C, V), one row a context, and how contexts follow each other."""

    target: Array
    draft: Array

    def __post_init__(self) -> None:
        """Refuse tables that are no distributions, or do not fit together.

        Raises
        ------
        DistributionError, ShapeError
            Naming the table, its shape or the offending row.
        """
        for name in ("target", "draft"):
            table = as_distribution(getattr(self, name), name)
            object.__setattr__(self, name, table)
            if table.ndim != 2:
                msg = f"{name} has shape {tuple(table.shape)}; expected (contexts, V), one row a context"
                raise ShapeError(msg)
        if tuple(self.target.shape) != tuple(self.draft.shape):
            msg = f"target {tuple(self.target.shape)} and draft {tuple(self.draft.shape)} differ in shape"
            raise ShapeError(msg)

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens."""
        return int(self.target.shape[-1])

    @property
    def contexts(self) -> int:
        """C, the number of contexts."""
        return int(self.target.shape[0])

    @property
    def initial(self) -> Array:
        """Law (C,) of the context before the first emitted token."""
        raise NotImplementedError

    @property
    def successor(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The context (C, V) that follows each context when a token is emitted."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MarkovPair(Pair):
    """A pair whose next-token laws depend on the last token alone.

    target : (V, V)
        Row v is the target's next-token law after token v.
    draft : (V, V)
        The same for the draft.
    start : (V,)
        Law of the context token before the first emitted one.

    Examples
    --------
    >>> import fly_theory as ft
    >>> pair = ft.MarkovPair([[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.6, 0.4]], [1.0, 0.0])
    >>> ft.joint_law(ft.block_rule("block"), pair, draft_length=2, length=2).round(12).tolist()
    [[0.81, 0.09], [0.05, 0.05]]
    """

    start: Array

    def __post_init__(self) -> None:
        """Refuse tables that are no distributions, or do not fit together (`Pair`), and starts that are none."""
        super().__post_init__()
        if self.contexts != self.vocabulary:
            msg = f"target has shape {tuple(self.target.shape)}; the tables of a MarkovPair are (V, V), one row a last token"
            raise ShapeError(msg)
        start = as_distribution(self.start, "start")
        if tuple(start.shape) != (self.vocabulary,):
            msg = (
                f"start has shape {tuple(start.shape)}; expected ({self.vocabulary},), a law of the first context token"
            )
            raise ShapeError(msg)
        object.__setattr__(self, "start", start)

    @property
    def initial(self) -> Array:
        return self.start

    @property
    def successor(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.tile(np.arange(self.vocabulary), (self.vocabulary, 1))
