"""Certified figures: intervals that contain the value the whole row has, whatever the unseen tokens are."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory.errors import NotReadable, ZeroResidualError
from fly_theory.registry import rules
from fly_theory.rules.base import Rule
from gpu.replaying.certified.cells import Cells
from gpu.replaying.certified.heads import cells_of_rows, cells_of_top
from gpu.replaying.certified.measures import draft_bounds, rule_bounds
from gpu.replaying.measures import Pair, measure, measure_draft
from tests.strategies import pairs, rule_objects

# They sort the whole vocabulary.
UNREADABLE = {"cactus", "mentored"}
READABLE = tuple(name for name in rules(level="token") if name not in UNREADABLE)

# Rounding of the value that an interval is held against.
ROUNDING = 1e-12


def top(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    largest = x.topk(min(k, x.shape[-1]), dim=-1)
    return largest.indices, largest.values, largest.values[:, -1:]


def seen_by_top(p: torch.Tensor, q: torch.Tensor, tokens: torch.Tensor, k: int) -> Cells:
    drafted = tuple(x.gather(-1, tokens[:, None])[:, 0] for x in (p, q))
    return cells_of_top(p.shape[-1], tokens, top(p, k), top(q, k), drafted)


def contained(rule: Rule, p: torch.Tensor, q: torch.Tensor, tokens: torch.Tensor, cells: Cells) -> dict[str, float]:
    """Hold every figure against its interval, and return the widths of the intervals."""
    exact = measure(rule, p, q, tokens)
    bounds = rule_bounds(rule, cells, len(tokens))
    assert bounds.keys() == exact.keys()
    widths = {}
    for name, (low, high) in bounds.items():
        value = exact[name]
        tolerance = ROUNDING * (1 + value.abs().nan_to_num(posinf=0))
        assert bool(((low <= value + tolerance) & (value <= high + tolerance)).all()), (name, low, value, high)
        widths[name] = float((high - low).nan_to_num(0.0, posinf=math.inf).mean())
    return widths


def draft_contained(p: torch.Tensor, q: torch.Tensor, tokens: torch.Tensor, cells: Cells) -> None:
    """The same for the figures of the pair itself, one row."""
    exact = measure_draft(Pair.of(p, q), tokens)
    for name, (low, high) in draft_bounds(cells).items():
        assert float(low) <= float(exact[name]) * (1 + ROUNDING) + ROUNDING, name
        assert float(high) >= float(exact[name]) * (1 - ROUNDING) - ROUNDING, name


def rows(pair: tuple[np.ndarray, np.ndarray], token: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    p, q = (torch.from_numpy(np.array([law])) for law in pair)
    return p, q, torch.tensor([token])


# -- soundness ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data(), pairs(), rule_objects(READABLE))
def test_intervals_contain_the_figures_of_any_completion(
    data: st.DataObject, pair: tuple[np.ndarray, np.ndarray], rule: Rule
) -> None:
    size = len(pair[0])
    drafted = data.draw(st.sampled_from(np.flatnonzero(pair[1]).tolist()))
    p, q, tokens = rows(pair, drafted)
    try:
        measure(rule, p, q, tokens)
    except ZeroResidualError:
        assume(False)
    contained(rule, p, q, tokens, seen_by_top(p, q, tokens, data.draw(st.integers(1, size))))
    tail = data.draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.5, 2.0]))
    contained(rule, p, q, tokens, cells_of_rows(p, q, tokens, tail))


@pytest.mark.parametrize("ratio", [1e6, 1.7e8, 1e12, 1e16, 1e20])
def test_the_largest_ratio_is_bounded_however_large_it_is(ratio: float) -> None:
    p = torch.full((1, 33), 1 / 32, dtype=torch.float64)
    p[0, -1] = 1 / 33 / ratio
    p[0, 0] -= p[0, -1]
    q, tokens = torch.full((1, 33), 1 / 33, dtype=torch.float64), torch.tensor([0])
    for tail in (0.1, 2.0):
        contained(ft.rule("interpolation:l=0.25"), p, q, tokens, cells_of_rows(p, q, tokens, tail))


def one_row(p: list[float], q: list[float], token: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return rows((np.array(p), np.array(q)), token)


def test_a_token_without_draft_is_not_lost_among_heavier_ones_of_its_sector() -> None:
    # By rounding, the weight that the sector of small q/p has at its left end, where q is 0, is 0.
    p, q, tokens = one_row([0.5, 0.4, 0.1, 2.5e-323], [0.1, 0.4, 0.5, 0.0])
    draft_contained(p, q, tokens, cells_of_rows(p, q, tokens, 1.5))


def test_what_is_not_allowed_is_not_outside_the_matched_support() -> None:
    # p is 0 at the unseen token that lies at the right end of its sector, and so is the output.
    p, q, tokens = one_row([0.0, 0.0, 0.4, 0.3, 0.3], [0.1, 1e-15, 0.89999999, 1e-8, 0.0])
    contained(ft.rule("eta:eps=0.5"), p, q, tokens, cells_of_rows(p, q, tokens, 1.0))


def test_rejections_by_rounding_without_a_residual_change_nothing() -> None:
    p, q, tokens = one_row([1e-30, 1e-30, 1.0], [1e-30, 1e-21, 1.0], token=2)
    contained(ft.rule("cos:w=0.5"), p, q, tokens, cells_of_rows(p, q, tokens, 0.0))


def test_the_first_of_tied_tokens_counts_whether_or_not_its_draft_is_known() -> None:
    p, q, tokens = one_row([0.001, 0.333, 0.333, 0.333], [0.333, 0.001, 0.333, 0.333])
    contained(ft.rule("typical-argmax:eps=0.3,delta=0.3"), p, q, tokens, seen_by_top(p, q, tokens, 3))


def test_tokens_at_a_threshold_by_the_last_digit_are_enclosed() -> None:
    rule = ft.rule("gated-excess:base=1,l=0.4")
    weights = np.random.default_rng(1).random(20)
    target = weights / weights.sum()
    draft = np.where(np.cumsum(target) < 0.35, target / 0.4, 0)
    for towards in (0, draft, 1):
        moved = np.where(draft > 0, np.nextafter(draft, towards), 0)
        moved[-1] = 1 - moved[:-1].sum()
        p, q, tokens = one_row(target.tolist(), moved.tolist(), token=19)
        contained(rule, p, q, tokens, cells_of_rows(p, q, tokens, 1.0))


def test_a_mass_without_a_finite_inverse_is_divided_by() -> None:
    p, q, tokens = one_row([0.6, 0.4, 1e-320], [0.5, 0.5, 0.0])
    contained(ft.rule("cos-contrastive:mu=1"), p, q, tokens, seen_by_top(p, q, tokens, 3))


@given(st.data(), pairs())
def test_intervals_of_the_pair_itself(data: st.DataObject, pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q, tokens = rows(pair, data.draw(st.sampled_from(np.flatnonzero(pair[1]).tolist())))
    draft_contained(p, q, tokens, seen_by_top(p, q, tokens, data.draw(st.integers(1, len(pair[0])))))


@pytest.mark.parametrize("spec", ["cactus:delta=0.1", "mentored"])
def test_a_rule_that_sorts_the_vocabulary_says_so(spec: str) -> None:
    p, q = torch.rand(3, 9, generator=torch.Generator().manual_seed(0)).double(), torch.full((3, 9), 1 / 9).double()
    cells = cells_of_rows(p / p.sum(-1, keepdim=True), q, torch.zeros(3, dtype=torch.int64), 0.1)
    with pytest.raises(NotReadable, match="argsort, which takes every token"):
        rule_bounds(ft.rule(spec), cells, 3)


def test_a_rule_that_surely_has_nothing_to_redraw_from_is_named() -> None:
    class Nothing(Rule):
        name = "nothing"

        def verdict(self, p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return 0 * q, 0 * p

    p = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    with pytest.raises(ZeroResidualError, match="nothing rejects with probability 1 in row 0"):
        rule_bounds(Nothing(), cells_of_rows(p, p, torch.tensor([0]), 0.1), 1)


# -- tightness ---------------------------------------------------------------------------------------------------------


def zipf(count: int, size: int, *, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Long-tailed rows of a target and a draft that knows it roughly."""
    generator = torch.Generator().manual_seed(seed)
    logits = -1.3 * torch.arange(1, size + 1).double().log() + 0.3 * torch.randn(
        count, size, generator=generator, dtype=torch.float64
    )
    p = torch.softmax(logits, -1)
    q = torch.softmax(logits + 0.6 * torch.randn(count, size, generator=generator, dtype=torch.float64), -1)
    return p, q, torch.multinomial(q, 1, generator=generator)[:, 0]


SPECS = (
    "lossless",
    "lenience:l=0.5",
    "lenience-substituted:l=0.3",
    "cos:w=0.3",
    "gated-ceiling:base=0.2,l=0.5",
    "min-p:base=0.1",
    "typical:eps=0.2,delta=0.6",
    "truncated-min-p:base=0.2",
    "top-k-match:k=3",
    "sample-match:n=2",
    "fuzzy:divergence=js,t=0.05",
    "cascade-opt:alpha=0.25",
)


@pytest.mark.parametrize("spec", SPECS)
def test_intervals_shrink_with_what_is_seen(spec: str) -> None:
    p, q, tokens = zipf(6, 500, seed=1)
    by_top = [contained(ft.rule(spec), p, q, tokens, seen_by_top(p, q, tokens, k)) for k in (4, 32, 256, 500)]
    by_tail = [
        contained(ft.rule(spec), p, q, tokens, cells_of_rows(p, q, tokens, tail)) for tail in (0.3, 0.03, 0.003, 0)
    ]
    for widths in (by_top, by_tail):
        for wide, narrow in itertools.pairwise(widths):
            # Where a rule has a kink inside a segment, lines lose a little, whatever is seen.
            assert all(narrow[name] <= wide[name] + 1e-4 for name in wide), (wide, narrow)
        assert max(width for name, width in widths[-1].items() if math.isfinite(width)) < 1e-7


def test_lossless_verification_is_certified_lossless_with_a_tail_unseen() -> None:
    p, q, tokens = zipf(6, 500, seed=2)
    bounds = rule_bounds(ft.rule("lossless"), cells_of_rows(p, q, tokens, 0.1), 6)
    for name, expected in {"tv": 0, "kl": 0, "reverse_kl": 0, "js": 0, "waste": 0, "max_ratio": 1}.items():
        assert float(bounds[name].high.max()) == pytest.approx(expected, abs=1e-6), name


def test_what_is_truly_unbounded_has_an_infinite_upper_end() -> None:
    p, q, tokens = zipf(6, 500, seed=3)
    seen = seen_by_top(p, q, tokens, 16)
    mixture, truncated = (rule_bounds(ft.rule(spec), seen, 6) for spec in ("cos:w=0.5", "truncated-min-p:base=0.5"))
    # An unseen token may have q but no p; the truncated output has none of the unseen mass of p.
    assert bool(mixture["max_ratio"].high.isinf().all())
    assert bool(mixture["max_ratio"].low.isfinite().all())
    assert bool(truncated["kl"].low.isinf().all())


def test_what_an_empty_allowed_set_leaves_out_is_all_of_the_target() -> None:
    p, tokens = torch.full((1, 15), 1 / 15, dtype=torch.float64), torch.tensor([0])
    rule = ft.rule("typical:eps=0.09,delta=2.0,keep_ties=false")
    for cells in (seen_by_top(p, p, tokens, 4), cells_of_rows(p, p, tokens, 0.3)):
        contained(rule, p, p, tokens, cells)
        assert float(rule_bounds(rule, cells, 1)["baseline_tv"].high) == 1


def test_an_output_that_is_no_multiple_of_the_pair_is_enclosed() -> None:
    class Squares(Rule):
        name = "squares"

        def verdict(self, p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return ft.rule("lossless").verdict(p, q).accepted, p**2

    p, q, tokens = zipf(3, 400, seed=4)
    for tail in (0.3, 0.01):
        contained(Squares(), p, q, tokens, cells_of_rows(p, q, tokens, tail))
