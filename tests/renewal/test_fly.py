"""The renewal process and FLy itself: the same law on pairs whose matches and gates are those of the process."""

import numpy as np
import pytest

import fly_theory as ft

# The target's argmax is token 0 after every token; normalised entropy is high on the open row, low on the closed one.
OPEN, CLOSED = [0.4, 0.35, 0.25], [0.98, 0.01, 0.01]


def pair(row, after_match, after_mismatch):
    """Matches form a chain: a draft is token 0 with one probability after token 0, and with another after others."""
    draft = np.array([[hit, 0.5 - hit / 2, 0.5 - hit / 2] for hit in (after_match, after_mismatch, after_mismatch)])
    return ft.MarkovPair(np.tile(row, (3, 1)), draft, [0.3, 0.5, 0.2])


@pytest.mark.parametrize("window", [0, 1, 2, 6])
@pytest.mark.parametrize(("after_match", "after_mismatch"), [(0.8, 0.8), (0.9, 0.4)])
@pytest.mark.parametrize(("row", "gate"), [(OPEN, 1), (CLOSED, 0)])
def test_fly_keeps_drafts_as_the_process_says(window, after_match, after_mismatch, row, gate):
    first = 0.3 * after_match + 0.7 * after_mismatch
    lengths = ft.expected_lengths(ft.Fly(theta=0.5, window=window), pair(row, after_match, after_mismatch), 5)
    process = ft.renewal.markov(after_match, after_mismatch, gate, window, 5, first=first)
    np.testing.assert_allclose(lengths.law, process.length_law(), rtol=0, atol=1e-12)
    assert float(lengths.tokens_per_call) == pytest.approx(process.expected_tokens(), abs=1e-12)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_released_fly_asks_for_one_hit_less(window):
    lengths = ft.expected_lengths(ft.FlyReleased(theta=0.5, window=window), pair(OPEN, 0.9, 0.4), 5)
    process = ft.renewal.markov(0.9, 0.4, 1, window, 5, first=0.55, following=window - 1)
    np.testing.assert_allclose(lengths.law, process.length_law(), rtol=0, atol=1e-12)


def test_scanning_the_tapes_of_a_trace_keeps_what_fly_keeps():
    rng = np.random.default_rng(6)
    target, draft = rng.dirichlet(np.full(4, 0.5), size=(500, 9)), rng.dirichlet(np.full(4, 0.5), size=(500, 8))
    tokens = np.where(rng.random((500, 8)) < 0.7, target[:, :8].argmax(-1), rng.integers(0, 4, (500, 8)))
    block = ft.Block(target, draft, tokens)
    for window in (0, 1, 3):
        fly = ft.Fly(theta=0.5, window=window)
        trace = fly.trace(block)
        np.testing.assert_array_equal(ft.renewal.kept(trace.match, trace.gate, window), trace.kept.sum(axis=-1))
