"""Certified irrationals: canonical forms decide ties, balls decide the rest, and doubt is an error."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from fly_theory.errors import ExactnessError, UndecidableError
from fly_theory.exact.reals import Infinite, LogSum, Power, Real, as_number, exp, log, power, sqrt, to_fraction

positive = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=60)


def number(value):
    return as_number(Fraction(value))


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@given(positive, positive)
def test_comparisons_agree_with_sixty_digits(a, b):
    """Against Python's decimal arithmetic, an independent implementation of ln, exp and sqrt."""
    x, y = number(a), number(b)
    with localcontext() as context:
        context.prec = 60
        u, v = decimal(a), decimal(b)
        for certified, digits in (
            (log(x) - log(y), u.ln() - v.ln()),
            (exp(-x) * y - 1, (-u).exp() * v - 1),
            (sqrt(x) - y, u.sqrt() - v),
            (sqrt(x) + sqrt(y) - 3, u.sqrt() + v.sqrt() - 3),
            (power(x, fmpq(2, 3)) / sqrt(y) - 1, (u.ln() * 2 / 3).exp() / v.sqrt() - 1),
            (x * log(x) / (log(y) + 100) - 1, u * u.ln() / (v.ln() + 100) - 1),
        ):
            if abs(digits) > Decimal("1e-50"):
                assert (certified > 0) == (digits > 0)
                assert (certified < 0) == (digits < 0)
                assert float(certified) == pytest.approx(float(digits), rel=1e-12)


def test_floats_keep_their_digits_when_terms_cancel():
    step = Fraction(1, 10**19)
    half = as_number(Fraction(1, 2))
    divergence = sum(half * log(half / as_number(Fraction(1, 2) + moved)) for moved in (step, -step))
    assert float(divergence) == pytest.approx(2e-38, rel=1e-12)
    assert repr(divergence) == "2e-38..."
    root, e = sqrt(as_number(2)), exp(as_number(1))
    assert float(root + e - e - root) == pytest.approx(0, abs=1e-300)


@given(positive, positive)
def test_identities_hold_exactly(a, b):
    x, y = number(a), number(b)
    assert log(x * y) == log(x) + log(y)
    assert log(x) - log(x) == 0
    assert exp(log(x)) == x
    assert exp(log(x) * fmpq(1, 2)) == sqrt(x)
    assert sqrt(x) * sqrt(x) == x
    assert sqrt(x * y) == sqrt(x) * sqrt(y)
    assert sqrt(x) / sqrt(y) == sqrt(x / y)
    assert sqrt(x) + sqrt(x) == 2 * sqrt(x)
    assert power(sqrt(x), fmpq(4)) == x * x
    if x != 1:
        assert log(x**3) / log(x) == 3


@pytest.mark.parametrize("size", [2, 3, 8, 1000])
def test_the_entropy_of_a_uniform_row_is_recognised(size):
    """Ties at entropy thresholds happen exactly at uniform rows: exp(-H) = 1/V and H / log V = 1, not nearly so."""
    entropy = -sum((fmpq(1, size) * log(fmpq(1, size)) for _ in range(size)), fmpq(0))
    assert exp(-entropy) == fmpq(1, size)
    assert entropy / log(fmpq(size)) == 1


def test_irrational_means_different_from_every_rational():
    assert isinstance(sqrt(fmpq(2)), Power)
    assert sqrt(fmpq(2)) != fmpq(141421356237309505, 10**17)
    assert fmpq(141421356237309504, 10**17) < sqrt(fmpq(2)) < fmpq(141421356237309505, 10**17)
    assert isinstance(log(fmpq(3)), LogSum)
    assert log(fmpq(3)) != log(fmpq(3)) + fmpq(1, 10**200)
    assert abs(-sqrt(fmpq(2))) == sqrt(fmpq(2))


def test_doubt_is_an_error_and_never_a_guess():
    left = sqrt(fmpq(2)) + sqrt(fmpq(3))
    right = sqrt(5 + 2 * sqrt(fmpq(6)))  # equal, but no canonical form says so
    assert type(left) is Real
    for compare in (lambda: left == right, lambda: left < right, lambda: left >= right):
        with pytest.raises(UndecidableError, match="4096 bits"):
            compare()


def test_large_integers_are_not_factorised_and_still_compare():
    huge = fmpq(2**255 - 19) * (2**256 + 297)
    assert type(log(huge)) is Real
    assert log(huge) > fmpq(300)
    assert sqrt(huge) * sqrt(huge) > huge - 1


def test_infinity():
    up, down = Infinite(1), Infinite(-1)
    assert down < fmpq(-(10**100)) < log(fmpq(2)) < up
    assert up == Infinite(1)
    assert up != down
    assert up + 1 == up
    assert up * down == down
    assert fmpq(3) / up == 0
    assert exp(down) == 0
    for undefined in (lambda: up + down, lambda: 0 * up):
        with pytest.raises(ExactnessError, match="no value"):
            undefined()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: as_number(0.1), "'1/10'"),
        (lambda: as_number(float("nan")), "nan"),
        (lambda: as_number(True), "write 1"),
        (lambda: as_number("three"), "'3/10'"),
        (lambda: as_number("1/0"), "'3/10'"),
        (lambda: as_number([1]), "list"),
        (lambda: log(fmpq(0)), "xp.where"),
        (lambda: sqrt(fmpq(-1)), "mask negative"),
        (lambda: power(fmpq(2), sqrt(fmpq(2))), "irrational"),
        (lambda: to_fraction(sqrt(fmpq(2))), "no exact value"),
    ],
)
def test_errors_say_what_to_write(wrong, hint):
    with pytest.raises(ExactnessError) as caught:
        wrong()
    assert hint in str(caught.value)
