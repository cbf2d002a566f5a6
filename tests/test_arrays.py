"""Shared array operations, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory.arrays import sums_across

INTEGERS = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@pytest.mark.parametrize("array", [ft.exact, lambda row: np.array(row, dtype=float)], ids=["exact", "numpy"])
@given(left=INTEGERS, right=INTEGERS)
def test_sums_across(array, left, right):
    weigh_right, weigh_left = sums_across(array(left), array(right))
    below = [sum(2**i for i, key in enumerate(right) if key < threshold) for threshold in left]
    up_to = [sum(2**i for i, key in enumerate(left) if key <= threshold) for threshold in right]
    assert (weigh_right(array([2**i for i in range(len(right))])) == array(below)).all()
    assert (weigh_left(array([2**i for i in range(len(left))])) == array(up_to)).all()
