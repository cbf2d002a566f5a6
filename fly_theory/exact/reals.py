"""Irrational numbers whose comparisons are certified: what log, exp, sqrt and roots of rationals lead to.

Three forms. `Power` is a rational times primes to fractional exponents; `LogSum` a rational plus a rational combination
of logarithms of primes; `Real` any other expression, known only through balls (arb) that enclose it. The first two are
canonical, two of them are equal exactly when they read the same (unique factorisation; Lindemann's theorem), so ties at
entropy thresholds are decided. A comparison with the third is decided by balls of rising precision, or refused.

A number below is an `fmpq` (python-flint's rational) or a `Real`.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import flint
from flint import arb, fmpq, fmpz

from fly_theory.errors import ExactnessError, UndecidableError

__all__ = [
    "LIMIT",
    "ONE",
    "ZERO",
    "Infinite",
    "LogSum",
    "Power",
    "Real",
    "as_number",
    "exp",
    "is_number",
    "log",
    "power",
    "sqrt",
    "to_fraction",
]

Number = Any

ZERO, ONE = fmpq(0), fmpq(1)
LIMIT = 4096
"""Bits of precision at which a comparison is given up."""

# How many bits of a number must be known before it is rounded to a float.
_FLOAT_BITS = 64

# Larger integers are not factorised; their logarithms and roots stay balls.
_FACTORISED_BITS = 128


def as_number(value: Any) -> Number:
    """An int, Fraction, text such as "3/10", infinity or number as a number.

    Raises
    ------
    ExactnessError
        For a finite float or anything else, saying what to write instead.
    """
    if isinstance(value, fmpq | Real):
        return value
    if isinstance(value, bool):
        msg = f"{value!r} is a bool; exact arithmetic takes numbers: write {int(value)}"
        raise ExactnessError(msg)
    if isinstance(value, int):
        return fmpq(value)
    if isinstance(value, str):
        value = _read(value)
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            return Infinite(1 if value > 0 else -1)
        meant = Fraction(repr(value)) if value == value else "a number"
        msg = (
            f"{value!r} is a float, and exact arithmetic takes none: write Fraction('{meant}') or '{meant}' for it, "
            f"in a rule scalar({value!r}, p)"
        )
        raise ExactnessError(msg)
    if hasattr(value, "__index__"):
        return fmpq(value.__index__())
    msg = f"{value!r} is a {type(value).__name__}; exact arithmetic takes ints, Fractions and texts such as '3/10'"
    raise ExactnessError(msg)


def _read(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        msg = f"{text!r} cannot be read as a number; write an integer, a decimal or a quotient such as '3/10'"
        raise ExactnessError(msg) from error


def is_number(value: Any) -> bool:
    """Whether `value` can stand beside an exact number in an operation (finite floats can not, but get a reason)."""
    return isinstance(value, int | float | Fraction | fmpq | Real) or hasattr(value, "__index__")


def to_fraction(number: Number) -> Fraction:
    """A rational number as a Fraction.

    Raises
    ------
    ExactnessError
        For an irrational or infinite number.
    """
    if isinstance(number, Real):
        msg = f"{number!r} is irrational and has no exact value; it can be compared, or approximated with float()"
        raise ExactnessError(msg)
    return Fraction(int(number.numerator), int(number.denominator))


class Real:
    """An irrational number known through `expression(bits)`, a ball that contains it and shrinks as the bits grow."""

    __slots__ = ("_expression",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: Callable[[int], arb]) -> None:
        self._expression = expression

    def ball(self, bits: int) -> arb:
        """A ball around the number, computed with this many bits."""
        with flint.ctx.workprec(bits):
            return self._enclose(bits)

    def _enclose(self, bits: int) -> arb:
        return self._expression(bits)

    def __float__(self) -> float:
        bits = 128
        while self.ball(bits).rel_accuracy_bits() < _FLOAT_BITS and bits < LIMIT:
            bits *= 2
        return float(self.ball(bits).mid())

    def __repr__(self) -> str:
        return f"{float(self):.15g}..."

    def __add__(self, other: Any) -> Number:
        return _add(self, as_number(other)) if is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Number:
        return _multiply(self, as_number(other)) if is_number(other) else NotImplemented

    def __sub__(self, other: Any) -> Number:
        return _add(self, -as_number(other)) if is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Number:
        return _add(as_number(other), -self) if is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Number:
        return _divide(self, as_number(other)) if is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Number:
        return _divide(as_number(other), self) if is_number(other) else NotImplemented

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return _multiply(self, fmpq(-1))

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return self if self > 0 else -self

    def __lt__(self, other: Any) -> bool:
        return _sign_of_difference(self, as_number(other)) < 0 if is_number(other) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return _sign_of_difference(self, as_number(other)) <= 0 if is_number(other) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return _sign_of_difference(self, as_number(other)) > 0 if is_number(other) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return _sign_of_difference(self, as_number(other)) >= 0 if is_number(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return _sign_of_difference(self, as_number(other)) == 0 if is_number(other) else NotImplemented


class Power(Real):
    """factor * product of prime ** exponent over `exponents`, a non-empty mapping; exponents lie in (0, 1)."""

    __slots__ = ("exponents", "factor")

    def __init__(self, factor: fmpq, exponents: dict[int, fmpq]) -> None:
        self.factor, self.exponents = factor, exponents

    def _enclose(self, bits: int) -> arb:
        result = arb(self.factor)
        for prime, exponent in self.exponents.items():
            result *= arb(prime) ** arb(exponent)
        return result


class LogSum(Real):
    """constant + sum of coefficient * log prime over `coefficients`, a non-empty mapping without zeros."""

    __slots__ = ("coefficients", "constant")

    def __init__(self, constant: fmpq, coefficients: dict[int, fmpq]) -> None:
        self.constant, self.coefficients = constant, coefficients

    def _enclose(self, bits: int) -> arb:
        return sum(
            (arb(coefficient) * arb(prime).log() for prime, coefficient in self.coefficients.items()),
            arb(self.constant),
        )


class Infinite(Real):
    """Plus or minus infinity, the value of a divergence whose definition is infinite."""

    __slots__ = ("sign",)

    def __init__(self, sign: int) -> None:
        self.sign = sign

    def _enclose(self, bits: int) -> arb:
        return arb.pos_inf() if self.sign > 0 else arb.neg_inf()

    def __float__(self) -> float:
        return self.sign * float("inf")

    def __repr__(self) -> str:
        return str(float(self))


def _sign_of_difference(x: Number, y: Number) -> int:
    if _same(x, y):
        return 0
    bits = 64
    while bits <= LIMIT:
        difference = _ball(x, bits) - _ball(y, bits)
        if difference > 0:
            return 1
        if difference < 0:
            return -1
        bits *= 2
    msg = f"{x!r} and {y!r} cannot be told apart with {LIMIT} bits; they may be equal, and nothing is guessed"
    raise UndecidableError(msg)


def _same(x: Number, y: Number) -> bool:
    if isinstance(x, Power) and isinstance(y, Power):
        return bool(x.factor == y.factor and x.exponents == y.exponents)
    if isinstance(x, LogSum) and isinstance(y, LogSum):
        return bool(x.constant == y.constant and x.coefficients == y.coefficients)
    if isinstance(x, Infinite) and isinstance(y, Infinite):
        return x.sign == y.sign
    return x is y


def _ball(x: Number, bits: int) -> arb:
    if isinstance(x, Real):
        return x.ball(bits)
    with flint.ctx.workprec(bits):
        return arb(x)


def _combine(operation: Callable[..., arb], *numbers: Number) -> Real:
    return Real(lambda bits: operation(*(_ball(x, bits) for x in numbers)))


# -- canonical forms -------------------------------------------------------------------------------------------------


def _power(factor: fmpq, exponents: Iterable[tuple[int, fmpq]]) -> Number:
    """factor * product of prime ** exponent, whole exponents moved into the factor."""
    fractional: dict[int, fmpq] = {}
    for prime, exponent in exponents:
        total = fractional.pop(prime, ZERO) + exponent
        whole = int(total.floor())
        factor *= fmpq(prime) ** whole
        if total != whole:
            fractional[prime] = total - whole
    return Power(factor, fractional) if fractional else factor


def _log_sum(constant: fmpq, coefficients: Iterable[tuple[int, fmpq]]) -> Number:
    kept: dict[int, fmpq] = {}
    for prime, coefficient in coefficients:
        total = kept.pop(prime, ZERO) + coefficient
        if total != 0:
            kept[prime] = total
    return LogSum(constant, kept) if kept else constant


def _prime_powers(x: fmpq) -> list[tuple[int, fmpq]] | None:
    """The factorisation of a positive rational, or None when it is too large to find."""
    numerator, denominator = fmpz(x.numerator), fmpz(x.denominator)
    if max(numerator.bit_length(), denominator.bit_length()) > _FACTORISED_BITS:
        return None
    above = [(int(prime), fmpq(count)) for prime, count in numerator.factor()]
    return above + [(int(prime), fmpq(-count)) for prime, count in denominator.factor()]


def _logs(x: Number) -> tuple[fmpq, dict[int, fmpq]] | None:
    if isinstance(x, LogSum):
        return x.constant, x.coefficients
    return None if isinstance(x, Real) else (x, {})


def _monomial(x: Number) -> tuple[fmpq, dict[int, fmpq]] | None:
    if isinstance(x, Power):
        return x.factor, x.exponents
    return None if isinstance(x, Real) else (x, {})


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _add(x: Number, y: Number) -> Number:
    if isinstance(x, Infinite) or isinstance(y, Infinite):
        return _add_infinite(x, y)
    a, b = _logs(x), _logs(y)
    if a and b:
        return _log_sum(a[0] + b[0], [*a[1].items(), *b[1].items()])
    if isinstance(x, Power) and isinstance(y, Power) and x.exponents == y.exponents:
        factor = x.factor + y.factor
        return Power(factor, x.exponents) if factor != 0 else ZERO
    if _is_zero(x) or _is_zero(y):
        return y if _is_zero(x) else x
    return _combine(lambda u, v: u + v, x, y)


def _multiply(x: Number, y: Number) -> Number:
    if isinstance(x, Infinite) or isinstance(y, Infinite):
        return _multiply_infinite(x, y)
    if _is_zero(x) or _is_zero(y):
        return ZERO
    a, b = _monomial(x), _monomial(y)
    if a and b:
        return _power(a[0] * b[0], [*a[1].items(), *b[1].items()])
    for logs, scale in ((x, y), (y, x)):
        if isinstance(logs, LogSum) and isinstance(scale, fmpq):
            return _log_sum(logs.constant * scale, [(prime, c * scale) for prime, c in logs.coefficients.items()])
    return _combine(lambda u, v: u * v, x, y)


def _divide(x: Number, y: Number) -> Number:
    if isinstance(y, fmpq):
        return _multiply(x, 1 / y)
    if isinstance(y, Infinite):
        return _multiply_infinite(x, y) if isinstance(x, Infinite) else ZERO
    if isinstance(x, LogSum) and isinstance(y, LogSum):
        prime, coefficient = next(iter(x.coefficients.items()))
        quotient = coefficient / y.coefficients.get(prime, coefficient)
        if _same(x, _multiply(y, quotient)):
            return quotient
    if isinstance(y, Power):
        return _multiply(x, power(y, fmpq(-1)))
    return ZERO if _is_zero(x) else _combine(lambda u, v: u / v, x, y)


def _is_zero(x: Number) -> bool:
    return isinstance(x, fmpq) and x == 0


def _add_infinite(x: Number, y: Number) -> Number:
    if isinstance(x, Infinite) and isinstance(y, Infinite) and x.sign != y.sign:
        msg = "inf - inf has no value"
        raise ExactnessError(msg)
    return x if isinstance(x, Infinite) else y


def _multiply_infinite(x: Number, y: Number) -> Number:
    signs = [0 if _is_zero(z) else 1 if z > 0 else -1 for z in (x, y)]
    if 0 in signs:
        msg = "0 * inf has no value"
        raise ExactnessError(msg)
    return Infinite(signs[0] * signs[1])


# -- functions -------------------------------------------------------------------------------------------------------


def log(x: Number) -> Number:
    """Natural logarithm of a positive number.

    Raises
    ------
    ExactnessError
        For x <= 0, saying how to mask it.
    """
    if not x > 0:
        msg = f"log({x}) has no value; mask it first: xp.log(xp.where(x > 0, x, 1))"
        raise ExactnessError(msg)
    monomial = _monomial(x)
    if monomial:
        factors = _prime_powers(monomial[0])
        if factors is not None:
            return _log_sum(ZERO, [*factors, *monomial[1].items()])
    return x if isinstance(x, Infinite) else _combine(lambda u: u.log(), x)


def exp(x: Number) -> Number:
    """e to the x; a combination of logarithms gives a `Power` back."""
    if isinstance(x, Infinite):
        return x if x.sign > 0 else ZERO
    if _is_zero(x):
        return ONE
    if isinstance(x, LogSum) and x.constant == 0:
        return _power(ONE, x.coefficients.items())
    return _combine(lambda u: u.exp(), x)


def power(x: Number, exponent: Number) -> Number:
    """x to a rational exponent; x must not be negative unless the exponent is whole.

    Raises
    ------
    ExactnessError
        For a negative base with a fractional exponent, or an irrational exponent.
    """
    if not isinstance(exponent, fmpq):
        msg = f"the exponent {exponent!r} is irrational; exponents are integers or Fractions"
        raise ExactnessError(msg)
    if isinstance(x, fmpq) and exponent.denominator == 1:
        return x ** int(exponent.numerator)
    if _is_zero(x) and exponent > 0:
        return ZERO
    if isinstance(x, Infinite):
        return _infinite_power(x, exponent)
    if exponent.denominator != 1 and not x > 0:
        msg = f"({x}) ** ({exponent}) has no real value; mask negative bases first"
        raise ExactnessError(msg)
    monomial = _monomial(x)
    factors = _prime_powers(abs(monomial[0])) if monomial else None
    if monomial is None or factors is None:
        return _combine(lambda u, v: u**v, x, exponent)
    sign = ONE if monomial[0] > 0 else fmpq(-1) ** int(exponent.numerator)
    return _power(sign, [(prime, count * exponent) for prime, count in (*factors, *monomial[1].items())])


def _infinite_power(x: Infinite, exponent: fmpq) -> Number:
    if exponent == 0:
        return ONE
    if exponent < 0:
        return ZERO
    return Infinite(x.sign ** int(exponent.numerator)) if exponent.denominator == 1 else x


def sqrt(x: Number) -> Number:
    """The non-negative square root; rational where it is rational."""
    return power(x, fmpq(1, 2))
