"""Logarithms that a compiled loop takes in whole: in float32, multiplications and additions in place of a call.

A call of the mathematical library makes the loop around it spill every sum it carries. Uncompiled, and in float64, the
library is called. The polynomials agree with it to 2e-7.
"""

import math

import torch
from torch import Tensor

from fly_theory.arrays import holds_values

__all__ = ["log", "log_of_one_and_share"]

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

# atanh(w) / w as a polynomial in w^2 for w in [0, 1/3]; Chebyshev fit, error 5e-9.
_ATANH = (1.0, 0.3333315849304199, 0.20012426376342773, 0.1398070901632309, 0.1408732831478119)

_ROOT_HALF = 0x3F3504F3  # the bits of 1/sqrt 2
_MANTISSA_BITS = 23


def log(x: Tensor) -> Tensor:
    """Natural logarithm of finite numbers that are at least the smallest normal one."""
    if holds_values(x) or x.dtype != torch.float32:
        return torch.log(x)
    bits = x.view(torch.int32)
    exponent = (bits - _ROOT_HALF) >> _MANTISSA_BITS
    m = (bits - (exponent << _MANTISSA_BITS)).view(torch.float32) - 1
    square = m * m
    return exponent.to(torch.float32) * math.log(2) + (m + square * (m * _polynomial(_R, m) - 0.5))


def log_of_one_and_share(part: Tensor, whole: Tensor) -> Tensor:
    """log(1 + part/whole) for 0 <= part <= whole, and 0 where both are 0; it is 2 atanh(part / (2 whole + part))."""
    tiny = torch.finfo(part.dtype).smallest_normal
    if holds_values(part) or part.dtype != torch.float32:
        return torch.log1p(part / whole.clamp(min=tiny))
    w = part / (2 * whole + part + tiny)
    return 2 * w * _polynomial(_ATANH, w * w)


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
