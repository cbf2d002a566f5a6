"""Rationals that pass for numpy floats."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fly_theory.conformance.numbers import Exact, as_rational, exact_array, is_rounded

THIRD = Exact(1, 3)


@pytest.mark.parametrize(
    ("result", "right"),
    [
        (THIRD + 1, Fraction(4, 3)),
        (1 - THIRD, Fraction(2, 3)),
        (0.3 * THIRD, Fraction(1, 10)),
        (THIRD / 0.5, Fraction(2, 3)),
        (np.float64(0.3) / THIRD, Fraction(9, 10)),
        (np.int64(2) * THIRD, Fraction(2, 3)),
        (Fraction(1, 2) - THIRD, Fraction(1, 6)),
        (sum([THIRD, THIRD]), Fraction(2, 3)),
        (-THIRD, Fraction(-1, 3)),
        (abs(THIRD - 1), Fraction(2, 3)),
        (THIRD**2, Fraction(1, 9)),
        (+THIRD, THIRD),
    ],
)
def test_arithmetic_stays_exact(result, right):
    assert result == right
    assert isinstance(result, Exact)


def test_a_float_is_the_decimal_it_prints_as():
    assert Exact(3, 10) == 0.3
    assert not Exact(3, 10) > 0.3
    assert Exact(3, 10) <= np.float64(0.3)
    assert as_rational(0.1) == Fraction(1, 10)
    assert not is_rounded(0.1)
    assert is_rounded(math.log(2))
    assert as_rational(1 / 3) == Fraction(1 / 3) != Fraction(1, 3)


def test_rounded_floats_make_floats():
    for result in (THIRD * math.pi, math.pi - THIRD, THIRD / math.pi, math.pi / THIRD, THIRD**0.5):
        assert type(result) is float
    assert THIRD * math.pi == pytest.approx(math.pi / 3)
    assert math.pi > THIRD


def test_division_by_zero_is_that_of_numpy():
    zero = Exact(0)
    assert THIRD / zero == math.inf
    assert -THIRD / zero == -math.inf
    assert math.isnan(zero / zero)
    assert math.isnan(0.0 / zero)
    assert 1 / zero == math.inf
    assert math.pi / zero == math.inf


def test_other_operands_are_refused():
    for operation in (lambda: THIRD + "a", lambda: THIRD < "a", lambda: THIRD / "a", lambda: "a" / THIRD):
        with pytest.raises(TypeError):
            operation()
    assert THIRD != "a"


def test_arrays_of_them_work_with_numpy():
    rows = exact_array(map(Fraction, ["1/2", "1/2", "0", "1/3", "1/3", "1/3"]), (2, 3))
    assert rows.sum() == 2
    assert rows[0].argmax() == 0
    assert np.maximum(rows[0] - rows[1], 0).tolist() == [Fraction(1, 6), Fraction(1, 6), 0]
    assert (rows[0] / rows[1]).tolist() == [Fraction(3, 2), Fraction(3, 2), 0]
    assert (rows[1] / rows[0])[2] == math.inf
    assert np.cumsum(rows[1]).tolist() == [Fraction(1, 3), Fraction(2, 3), 1]
    np.testing.assert_allclose(np.log(rows[1]).astype(float), np.log(1 / 3))
    np.testing.assert_allclose(np.exp(rows[0]).astype(float), np.exp([0.5, 0.5, 0]))
    np.testing.assert_allclose(np.sqrt(rows[0]).astype(float), np.sqrt([0.5, 0.5, 0]))
    assert np.log(rows[0])[2] == -math.inf
