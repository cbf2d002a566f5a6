"""Tallies are exact, and merge to the same bits in any order and grouping."""

import math
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fly_theory.errors import InvalidInput
from gpu.replaying.tally import TV_EDGES, WORST_KEPT, Tally, Total

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.lists(st.one_of(finite, st.just(math.inf)), max_size=12)


@given(values)
def test_a_total_is_exact(numbers: list[float]) -> None:
    total = Total()
    for number in numbers:
        total.add(number)
    small = [number for number in numbers if number != math.inf]
    assert total.sum == sum((Fraction(number) for number in small), start=Fraction(0))
    assert (total.finite, total.infinite) == (len(small), len(numbers) - len(small))
    assert total.largest == max(small, default=-math.inf)


def test_a_total_keeps_what_floats_would_lose() -> None:
    total = Total()
    for number in (1e300, 1.0, -1e300, 5e-324):
        total.add(number)
    assert total.sum == 1 + Fraction(5e-324)


def _block(prompt: int, block: int, tvs: list[float], kl: float) -> Tally:
    tally = Tally()
    tally.add(prompt, block, {"tv": tvs, "kl": [kl] * len(tvs)})
    return tally


rows = st.lists(
    st.tuples(
        st.integers(0, 2), st.lists(st.sampled_from([0.0, 1e-7, 0.1, 0.25, 1.0]), min_size=1, max_size=3), finite
    ),
    min_size=1,
    max_size=5,
)


@given(rows)
def test_tallies_merge_the_same_in_every_order(blocks: list[tuple[int, list[float], float]]) -> None:
    parts = [(prompt, number, tvs, kl) for number, (prompt, tvs, kl) in enumerate(blocks)]
    whole = Tally()
    for prompt, number, tvs, kl in parts:
        whole.add(prompt, number, {"tv": tvs, "kl": [kl] * len(tvs)})
    for order in permutations(parts):
        merged = Tally()
        for part in order:
            merged.merge(_block(*part))
        assert merged == whole


@given(rows, st.integers(0, 5))
def test_tallies_merge_the_same_in_every_grouping(blocks: list[tuple[int, list[float], float]], cut: int) -> None:
    parts = [_block(prompt, number, tvs, kl) for number, (prompt, tvs, kl) in enumerate(blocks)]
    left, right, one_by_one = Tally(), Tally(), Tally()
    for number, part in enumerate(parts):
        (left if number < cut else right).merge(part)
        one_by_one.merge(part)
    right.merge(left)
    assert right == one_by_one


@pytest.mark.parametrize(
    ("tv", "filled"),
    [(0.0, 0), (9e-7, 0), (1e-6, 1), (0.0999, 20), (0.1, 21), (0.1001, 21), (0.99, 24), (1.0, 24)],
)
def test_every_tv_has_its_bin(tv: float, filled: int) -> None:
    counts = _block(0, 0, [tv], 0.0).tv_histogram
    assert len(counts) == len(TV_EDGES)
    assert [bin for bin, count in enumerate(counts) if count] == [filled]
    assert filled == 0 or TV_EDGES[filled - 1] <= tv <= TV_EDGES[filled]


def test_the_worst_positions_are_the_largest_and_among_equals_the_first() -> None:
    tally = Tally()
    for number, tvs in enumerate([[0.5, 0.2], [0.9, 0.5], [0.5, 0.1]]):
        tally.merge(_block(0, number, tvs, 0.0))
    worst = tally.worst["tv"]
    assert [(found.value, found.block, found.position) for found in worst] == [(0.9, 1, 0), (0.5, 0, 0), (0.5, 1, 1)]
    assert len(worst) == WORST_KEPT


def test_nan_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="kl is NaN in block 7"):
        Tally().add(0, 7, {"tv": [0.5], "kl": [math.nan]})
