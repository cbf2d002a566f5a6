"""Heads known at a point: their sums bound those at every redraw factor, however rows are put together."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory.arrays import positive_part
from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.divergences import JENSEN_SHANNON, RELATIVE_ENTROPY
from gpu.replaying.certified.grouping import in_groups
from gpu.replaying.certified.heads import cells_of_rows
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.measures import of_blocks, pair_of, row_bounds
from gpu.replaying.certified.points import PointSums, Summed, parted
from tests.gpu.test_certified import zipf
from tests.strategies import pairs, simplex_points

# Beside what is added for rounding, as the slack of figures covers it.
ROUNDING = 1e-12

FACTORS = st.sampled_from([0.0, 1e-100, 1e-12, 1e-3, 0.5, 1.0, 2.0, 1e3])


def seen(p: np.ndarray, q: np.ndarray) -> Cells:
    """All tokens with mass as heads."""
    rows = (torch.from_numpy(np.array([law])) for law in (p, q))
    return cells_of_rows(*rows, torch.tensor([int(q.argmax())]), 0.0)


def held(cells: Cells, x: np.ndarray, p: np.ndarray, q: np.ndarray) -> torch.Tensor:
    """Values of tokens (V,) at the columns (1, H) of these."""
    values = torch.zeros_like(cells.head_p.low_left)
    found = x[(p > 0) | (q > 0)]
    values[0, : len(found)] = torch.from_numpy(found)
    return values


def check(sums: PointSums, expected: dict[str, float], at: float) -> None:
    """Hold sums against their bounds."""
    for name, value in expected.items():
        bounds = getattr(sums, name)
        rounding = ROUNDING * (1 + (abs(value) if math.isfinite(value) else 0))
        low, high = float(bounds.low), float(bounds.high)
        assert not low > value + rounding, (name, at, low, value)
        assert not high < value - rounding, (name, at, value, high)


@given(st.data(), pairs(max_size=12))
def test_sums_bound_those_at_every_factor(data: st.DataObject, pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    cells = seen(p, q)
    kept = np.array(data.draw(st.lists(st.sampled_from([0, 0.3, 1]), min_size=len(p), max_size=len(p))))
    laws = st.sampled_from([p, q, np.zeros_like(p), np.maximum(p - q, 0)]) | simplex_points(len(p))
    residual = data.draw(laws) * ((p > 0) | (q > 0))
    accepted = kept * q
    low = data.draw(FACTORS)
    high = data.draw(st.sampled_from([low, low * (1 + 1e-9), low * 1.01, low + 1e-12, low + 0.1, 3 * low, math.inf]))
    points = Summed([parted(cells, *(Lines.exact(held(cells, x, p, q)) for x in (accepted, residual)))])
    factor = Lines.between(*(torch.tensor([[end]], dtype=torch.float64) for end in (low, high)))
    against, beside = points.against_target(factor), points.against_nothing(factor)
    last = high if math.isfinite(high) else 10 * low + 1
    for k in (low, last, (low + last) / 2, low + 0.01 * (last - low), data.draw(st.floats(low, last))):
        out = accepted + k * residual
        expected = _against(p, q, out, accepted)
        if bool(against.missing):
            assert math.isinf(expected.pop("kl"))
        check(against, expected, k)
        assert bool(against.beyond) <= bool(((out > 0) & (p == 0)).any())
        total = float(out.sum())
        check(beside, {"gain": total, "kl": total, "js": total * math.log(2) / 2, "outside": total}, k)
        check(beside, {"waste_of_gain": total - accepted.sum(), "waste_of_loss": (q - accepted).sum()}, k)
        assert float(beside.largest.high) >= out.max() * (1 - ROUNDING)
        assert float(beside.largest.low) <= out.max() * (1 + ROUNDING)
        best, others = out[p == p.max()].max(), out[p < p.max()].max(initial=0.0)
        for column, value in enumerate((best, others)):
            assert float(against.largest.low[0, column]) <= value * (1 + ROUNDING)
            assert float(against.largest.high[0, column]) >= value * (1 - ROUNDING)


def _against(p: np.ndarray, q: np.ndarray, out: np.ndarray, accepted: np.ndarray) -> dict[str, float]:
    a, b = torch.from_numpy(p), torch.from_numpy(out)

    def total(generator, x: torch.Tensor, y: torch.Tensor) -> float:  # type: ignore[no-untyped-def]
        return float(generator.value(x, y).nan_to_num(math.inf, posinf=math.inf).sum())

    gain, loss = (float(positive_part(x).sum()) for x in (out - p, p - out))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.nan_to_num(out / p, nan=0.0, posinf=math.inf).max())
    return {
        "gain": gain,
        "loss": loss,
        "waste_of_gain": gain - positive_part(q - p).sum() + (q - accepted).sum(),
        "waste_of_loss": loss - positive_part(p - q).sum() + (q - accepted).sum(),
        "kl": total(RELATIVE_ENTROPY, a, b),
        "reverse_kl": total(RELATIVE_ENTROPY, b, a),
        "js": total(JENSEN_SHANNON, a, b),
        "outside": float(out[p == 0].sum()),
        "ratio": ratio,
    }


@pytest.mark.parametrize("factor", [(1.0, 1.0), (0.9, 1.1)])
def test_heads_apart_are_left_out(factor: tuple[float, float]) -> None:
    p, q, tokens = zipf(3, 50, seed=5)
    cells = cells_of_rows(p, q, tokens, 0.01)
    heads = cells.head_p.low_left, cells.head_q.low_left
    accepted, residual = torch.minimum(*heads), (heads[0] - heads[1]).clamp(min=0)
    blurred = accepted.clone()
    blurred[:, 1:3] /= 2
    points = Summed([parted(cells, Lines.between(blurred, accepted), Lines.exact(residual))])
    bounds = Lines.between(*(torch.full((3, 1), end, dtype=torch.float64) for end in factor))
    found = points.against_target(bounds)
    rest = torch.ones_like(accepted)
    rest[:, 1:3] = 0
    for k in factor:
        out = accepted + k * residual
        for name, terms in {"gain": (out - heads[0]).clamp(min=0), "loss": (heads[0] - out).clamp(min=0)}.items():
            value, ends = (terms * rest).sum(-1, keepdim=True), getattr(found, name)
            assert bool(((ends.low <= value + ROUNDING) & (value <= ends.high + ROUNDING)).all()), name


@pytest.mark.parametrize(
    "spec", ["lossless", "lenience:l=0.3", "min-p:base=0.1", "truncated-min-p:base=0.2", "typical"]
)
def test_figures_of_a_row_do_not_depend_on_the_rows_beside_it(spec: str) -> None:
    laws = [zipf(4, size, seed=size) for size in (30, 300, 120)]
    laws = [
        (*(torch.nn.functional.pad(law, (0, 300 - law.shape[-1])) for law in (p, q)), tokens) for p, q, tokens in laws
    ]
    blocks = [cells_of_rows(*block, 0.01) for block in laws]
    rule = ft.rule(spec)
    parts = list(in_groups(blocks))
    order = torch.cat([part.places for part in parts]).argsort()
    together = {name: [end[order] for end in ends] for name, ends in row_bounds(rule, parts).items()}
    alone = [row_bounds(rule, [block]) for block in blocks]
    for name, ends in together.items():
        for end, expected in zip(ends, zip(*(found[name] for found in alone), strict=True), strict=True):
            torch.testing.assert_close(end, torch.cat(expected), rtol=1e-12, atol=1e-15)
    assert of_blocks(row_bounds(rule, parts), 4).keys() >= {"accepted_per_call", "tv"}


def test_columns_without_a_token_are_neither_counted_nor_largest() -> None:
    p, q, tokens = zipf(2, 40, seed=3)
    p[0, 20:], q[0, 20:] = 0, 0
    p, q = (x / x.sum(-1, keepdim=True) for x in (p, q))
    cells = cells_of_rows(p, q, tokens.clamp(max=19), 0.0)
    target, _ = pair_of(cells)
    others = 1 - target
    assert others.largest().high.flatten().tolist() == pytest.approx((1 - p).amax(-1).tolist())
    assert others.total().low.flatten().tolist() == pytest.approx((1 - p).sum(-1).tolist())
    assert (target <= 0).anywhere().head[0].flatten().tolist() == [False, False]
