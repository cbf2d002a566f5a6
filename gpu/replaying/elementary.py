"""Logarithms and maxima that a compiled loop takes in whole: in float32, a few plain instructions in place of a call.

A call of the mathematical library makes the loop around it spill every sum it carries. Uncompiled, and in float64, the
library is called. The polynomials agree with it to 2e-7.
"""

import math

import torch
from torch import Tensor

from fly_theory.arrays import holds_values

__all__ = ["largest", "log", "log_of_one_and_share"]

# log(1 + m) = m - m^2/2 + m^3 R(m) for 1 + m in [1/sqrt 2, sqrt 2]; Chebyshev fit of R, error 5e-8.
_R = (
    0.3333340883255005,
    -0.2500092089176178,
    0.19985127449035645,
    -0.16592855751514435,
    0.14676396548748016,
    -0.1411842554807663,
    0.09272214025259018,
)

# 2 atanh(w) / w as a polynomial in w^2 for w in [0, 1/3]; Chebyshev fit, error 1e-8.
_ATANH = (2.0, 0.6666631698608398, 0.40024852752685547, 0.2796141803264618, 0.2817465662956238)

_ROOT_HALF = 0x3F3504F3  # the bits of 1/sqrt 2
_MANTISSA = 1 << 23


def log(x: Tensor) -> Tensor:
    """Natural logarithm of finite numbers that are not negative; finite, below -87, where they are not normal ones."""
    if holds_values(x) or x.dtype != torch.float32:
        return torch.log(x.clamp(min=torch.finfo(x.dtype).smallest_normal))
    bits = x.view(torch.int32)
    exponent = (bits - _ROOT_HALF) & -_MANTISSA
    m = (bits - exponent).view(torch.float32) - 1
    square = m * m
    of_exponent = exponent.to(torch.float32) * (math.log(2) / _MANTISSA)
    return of_exponent + (m + square * (m * _polynomial(_R, m, square) - 0.5))


def log_of_one_and_share(part: Tensor, whole: Tensor) -> Tensor:
    """log(1 + part/whole) for 0 <= part <= whole, and 0 where both are 0; it is 2 atanh(part / (2 whole + part))."""
    tiny = torch.finfo(part.dtype).smallest_normal
    if holds_values(part) or part.dtype != torch.float32:
        return torch.log1p(part / whole.clamp(min=tiny))
    w = part / (2 * whole + part + tiny)
    square = w * w
    return w * _polynomial(_ATANH, square, square * square)


def largest(x: Tensor) -> Tensor:
    """The greatest of each row (..., V) of numbers that are not negative, (...,)."""
    if holds_values(x) or x.dtype != torch.float32:
        return x.amax(-1)
    # The bits of such numbers are in their order, and integers need no care for NaN.
    return x.view(torch.int32).amax(-1).view(torch.float32)


def _polynomial(coefficients: tuple[float, ...], x: Tensor, square: Tensor) -> Tensor:
    """The value at x: even and odd powers side by side, so that half the steps wait for one another.

    No power beyond the square, which underflows where x is small: that takes many times as long as any other product.
    """
    return _horner(coefficients[0::2], square) + x * _horner(coefficients[1::2], square)


def _horner(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
