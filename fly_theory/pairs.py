"""Toy autoregressive pairs: a target p and a draft q over V tokens, given by tables of next-token laws.

A pair has finitely many contexts. Its tables hold one row a context, and `successor` says which context follows when a
token is emitted, so every analysis and simulation reads a pair in the same way.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fly_theory.arrays import Array, Number, array_namespace, one_hot
from fly_theory.distributions import as_distribution, softmax
from fly_theory.errors import ShapeError
from fly_theory.exact import exact as exact_array

__all__ = ["ContextTreePair", "MarkovPair", "Pair", "tree_size"]

Contexts = npt.NDArray[np.int64]


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
    def successor(self) -> Contexts:
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
            msg = f"target has shape {tuple(self.target.shape)}; a MarkovPair has (V, V), one row a last token"
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
    def successor(self) -> Contexts:
        return np.tile(np.arange(self.vocabulary), (self.vocabulary, 1))


@dataclass(frozen=True, eq=False)
class ContextTreePair(Pair):
    """A pair whose next-token laws depend on up to `depth` last tokens, with a row for every context that short.

    Contexts are numbered by length, then in lexicographic order: the empty one first, in which every text starts, then
    the V single tokens, and so on to the V^depth contexts of full length. So every text of at most `depth` tokens has a
    row of its own, and the pair is as general as can be.

    target : ((V^(depth+1) - 1) / (V - 1), V)
        One next-token law of the target a context.
    draft : the same shape
        The same for the draft.
    depth : int
        Number of tokens in the longest context.
    """

    depth: int

    def __post_init__(self) -> None:
        """Refuse tables that are no distributions, or do not fit together (`Pair`) or to the depth."""
        super().__post_init__()
        expected = tree_size(self.vocabulary, self.depth)
        if self.contexts != expected:
            msg = (
                f"target has {self.contexts} rows; a context tree over V={self.vocabulary} to depth={self.depth} has "
                f"{expected}, one for each context of at most {self.depth} tokens"
            )
            raise ShapeError(msg)

    @classmethod
    def random(cls, vocabulary: int, depth: int, seed: int, *, exact: bool = False) -> "ContextTreePair":
        """A pair with independent random rows, in exact fractions if wanted (the same pair)."""
        rng = np.random.default_rng(seed)
        shape = (tree_size(vocabulary, depth), vocabulary)
        return cls(_table(rng.integers(1, 100, shape), exact), _table(rng.integers(1, 100, shape), exact), depth)

    @classmethod
    def adversarial(cls, vocabulary: int, depth: int, seed: int, *, exact: bool = False) -> "ContextTreePair":
        """A pair with rows where verifiers go wrong: zeros, ties, equal, disjoint and reversed rows, point masses."""
        rng = np.random.default_rng(seed)
        rows = [_adversarial_row(rng, vocabulary) for _ in range(tree_size(vocabulary, depth))]
        target, draft = np.array(rows).transpose(1, 0, 2)
        return cls(_table(target, exact), _table(draft, exact), depth)

    @classmethod
    def tempered(cls, vocabulary: int, depth: int, seed: int, temperature: Number) -> "ContextTreePair":
        """A pair whose draft is its random target at a temperature: q proportional to p^(1/T), at T = 0 the argmax."""
        target = cls.random(vocabulary, depth, seed).target
        return cls(target, softmax(np.log(target), temperature=temperature), depth)

    @property
    def initial(self) -> Array:
        return one_hot(array_namespace(self.target).asarray(0), self.target[:, 0])

    @property
    def successor(self) -> Contexts:
        vocabulary, depth = self.vocabulary, self.depth
        tokens = np.arange(vocabulary)
        by_length = []
        for length in range(depth + 1):
            suffixes = np.arange(vocabulary**length)[:, None] * vocabulary + tokens
            kept = min(length + 1, depth)
            by_length.append(tree_size(vocabulary, kept - 1) + suffixes % vocabulary**kept)
        return np.concatenate(by_length)


def tree_size(vocabulary: int, depth: int) -> int:
    """Number of contexts of at most `depth` tokens; none for depth = -1."""
    return sum(vocabulary**length for length in range(depth + 1))


def _table(weights: npt.NDArray[np.int64], exact: bool) -> Array:
    totals = weights.sum(axis=-1, keepdims=True)
    if not exact:
        return weights / totals
    return exact_array(weights.tolist()) / exact_array(totals.tolist())


def _adversarial_row(rng: np.random.Generator, vocabulary: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Integer weights of p and q in one of the regimes."""
    p, q = rng.integers(0, 4, (2, vocabulary))
    p[rng.integers(vocabulary)] += 1
    q[rng.integers(vocabulary)] += 1
    half = rng.permutation(vocabulary) < (vocabulary + 1) // 2
    match rng.integers(6):
        case 0:  # zeros and ties
            return p, q
        case 1:
            return p, p
        case 2:
            return p, p[::-1].copy()
        case 3:  # disjoint supports
            return np.where(half, p + 1, 0), np.where(half, 0, q + 1) if vocabulary > 1 else p
        case 4:  # the draft is certain
            return p, np.eye(vocabulary, dtype=np.int64)[rng.integers(vocabulary)]
        case _:  # the target is certain
            return np.eye(vocabulary, dtype=np.int64)[rng.integers(vocabulary)], q
