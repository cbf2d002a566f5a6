"""Golden values on one pair, under every float interpreter."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fly_theory as ft

P = (0.5, 0.3, 0.15, 0.05)
Q = (0.2, 0.1, 0.3, 0.4)
ARGMAX_Q = (0.0, 0.0, 0.0, 1.0)

# rule, draft, acceptance, out, TV(out, p), max out/p, tolerance: 1e-12, or the digits the value was printed with
GOLDEN = [
    ("lossless", Q, 0.5, P, 0.0, 1.0, 1e-12),
    ("lenience:l=0.5", Q, 0.7, (0.38, 0.22, 0.30, 0.10), 0.2, 2.0, 1e-12),
    (
        "lenience-substituted:l=0.5",
        Q,
        0.7,
        (0.2 + 0.3 * 0.4 / 0.65, 0.1 + 0.3 * 0.25 / 0.65, 0.3, 0.1),
        0.2,
        2.0,
        1e-12,
    ),
    ("lenience-resample:l=0.5", Q, 0.7, (0.35, 0.19, 0.345, 0.115), 0.26, 2.3, 1e-12),
    ("cos:w=0.5", Q, 0.75, (0.35, 0.20, 0.225, 0.225), 0.25, 4.5, 1e-12),
    ("min-p:base=0.5", Q, 0.3, (0.55, 0.31, 0.105, 0.035), 0.06, 1.1, 1e-12),
    ("typical:eps=0.09,delta=0.3", Q, 0.6, (0.40, 0.22, 0.36, 0.02), 0.21, 2.4, 1e-12),
    ("truncated-min-p:base=0.5", Q, 0.3, (0.625, 0.375, 0.0, 0.0), 0.2, 1.25, 1e-12),
    ("gated-ceiling:base=0.5,l=0.5", Q, 0.7, (0.38, 0.22, 0.30, 0.10), 0.2, 2.0, 1e-12),
    ("mentored:budget=0.1", Q, 0.7098, (0.3689, 0.2213, 0.3000, 0.1098), 0.2098, 2.196, 1e-4),
    ("cactus:delta=0.1", Q, 0.7475, (0.3503, 0.2023, 0.3000, 0.1475), 0.2475, 2.949, 1e-4),
    ("sample-match:n=2", ARGMAX_Q, 0.0975, (0.4750, 0.2850, 0.1425, 0.0975), 0.0475, 1.95, 1e-12),
    # SGLang's thresholds and the cascade token rule, worked out by hand
    ("threshold:single=1,acc=1", (1.0, 0.0, 0.0, 0.0), 0.5, P, 0.0, 1.0, 1e-12),
    ("threshold:single=0.5,acc=1", (1.0, 0.0, 0.0, 0.0), 1.0, (1.0, 0.0, 0.0, 0.0), 0.5, 2.0, 1e-12),
    ("threshold:single=1,acc=0.75", (1.0, 0.0, 0.0, 0.0), 2 / 3, (2 / 3, 0.2, 0.1, 1 / 30), 1 / 6, 4 / 3, 1e-12),
    ("cascade-token-v3:alpha=0.5", Q, 0.44, (0.55, 0.31, 0.105, 0.035), 0.06, 1.1, 1e-12),
]


def _numpy(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    return function(*arrays)


def _torch(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    import torch

    return function(*(torch.as_tensor(a) for a in arrays))


def _jax(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    import jax

    return jax.jit(function)(*(jax.numpy.asarray(a) for a in arrays))


@pytest.mark.parametrize("run", [_numpy, _torch, _jax], ids=["numpy", "torch", "jax-jit"])
@pytest.mark.parametrize(
    ("spec", "q", "acceptance", "out", "tv", "ratio", "tolerance"), GOLDEN, ids=[g[0] for g in GOLDEN]
)
def test_golden(spec, q, acceptance, out, tv, ratio, tolerance, run):
    rule = ft.rule(spec)
    p, q = np.array(P), np.array(q)
    induced = np.asarray(run(rule.induced, p, q))
    assert induced == pytest.approx(out, abs=tolerance)
    assert float(run(rule.acceptance, p, q)) == pytest.approx(acceptance, abs=tolerance)
    assert float(ft.divergence.total_variation(p, induced)) == pytest.approx(tv, abs=tolerance)
    assert float(ft.divergence.max_ratio(p, induced)) == pytest.approx(
        ratio, abs=tolerance if tolerance < 1e-4 else 5e-4
    )


def test_every_golden_pair_has_tv_one_half():
    assert float(ft.divergence.total_variation(P, Q)) == pytest.approx(0.5)
