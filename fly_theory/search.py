"""Looking for a counterexample among what a strategy draws, and for the smallest one."""

import contextlib
import functools
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, configuration
from hypothesis.errors import Flaky, NoSuchExample
from hypothesis.strategies import SearchStrategy

from fly_theory.strategies import Distribution, Pair, pairs

__all__ = ["Pair", "drawn", "drawn_pairs", "shrunk", "smallest"]

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], cases: int, seed: int) -> tuple[T, ...]:
    """The distinct values among `cases` draws; the same for the same seed, the simplest first."""
    met: dict[T, None] = {}

    def remember(value: T) -> bool:
        met[value] = None
        return False

    shrunk(remember, strategy, cases, seed)
    return tuple(met)


@functools.lru_cache(maxsize=8)
def drawn_pairs(cases: int, seed: int) -> tuple[Pair, ...]:
    """The pairs that a check of these settings draws, whatever rule it is of."""
    return drawn(pairs(), cases, seed)


def shrunk(fails: Callable[[T], bool], strategy: SearchStrategy[T], cases: int, seed: int) -> T | None:
    """A value that fails, made as simple as Hypothesis can.

    None when none of `cases` draws fails, or when one that failed does not fail again.
    """
    settings = hypothesis.settings(
        max_examples=cases,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    with _home_elsewhere():
        try:
            return hypothesis.find(strategy, fails, settings=settings, random=Random(seed))
        except (NoSuchExample, Flaky):
            return None


def smallest(fails: Callable[[Pair], bool], cases: int, seed: int, *, enumerated: int) -> Pair | None:
    """A pair that fails, with few tokens and small denominators; None when none of `cases` draws fails.

    What Hypothesis shrinks to is replaced by the simplest pair that fails, if there is one among the first `enumerated`
    pairs in order of vocabulary and denominator.
    """
    found = shrunk(fails, pairs(), cases, seed)
    if found is None:
        return None
    return next(filter(fails, itertools.islice(_simpler_than(found), enumerated)), found)


def _simpler_than(pair: Pair) -> Iterator[Pair]:
    """All pairs with fewer tokens, or as many and a smaller common denominator, the simplest first."""
    vocabulary, denominator = len(pair[0]), max(map(_common_denominator, pair))
    for size in range(1, vocabulary + 1):
        rows: list[Distribution] = []
        for total in range(1, denominator + (size < vocabulary)):
            new = [row for row in _of_denominator(size, total) if _common_denominator(row) == total]
            yield from itertools.chain(
                itertools.product(rows, new), itertools.product(new, rows), itertools.product(new, new)
            )
            rows += new


def _of_denominator(size: int, total: int) -> Iterator[Distribution]:
    for bars in itertools.combinations(range(total + size - 1), size - 1):
        ends = (-1, *bars, total + size - 1)
        yield tuple(Fraction(high - low - 1, total) for low, high in itertools.pairwise(ends))


def _common_denominator(row: Distribution) -> int:
    return math.lcm(*(entry.denominator for entry in row))


@contextlib.contextmanager
def _home_elsewhere() -> Iterator[None]:
    """Keep Hypothesis from writing into the working directory."""
    name = "__hypothesis_home_directory"
    before: Path | None = getattr(configuration, name)
    with tempfile.TemporaryDirectory() as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)
