"""The figure shows the estimates, their intervals and the exact values that it was given."""

import numpy as np
import pytest

import fly_theory as ft
import simulators
from fly_theory.errors import InvalidInput
from simulators.figure import figure

P, Q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]


def token(spec="lossless"):
    return simulators.simulate(ft.rule(spec), (P, Q), 2_000, 0)


def test_rates_and_errors_are_drawn_one_column_a_simulation():
    drawn = figure([token(), token("lenience:l=0.5")])
    rates, _, errors, _ = drawn.axes
    law = [e for e in token().estimates if e.outcome is not None]
    bars = rates.containers[0]
    np.testing.assert_allclose(bars.lines[0].get_ydata(), [e.value for e in law])
    ends = bars.lines[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in ends], [(e.low, e.high) for e in law])
    np.testing.assert_allclose(rates.lines[-1].get_ydata(), [e.exact for e in law])
    np.testing.assert_allclose(errors.containers[0].lines[0].get_ydata(), [e.value - e.exact for e in law])
    assert [tick.get_text() for tick in errors.get_xticklabels()] == ["0", "1", "2", "3"]
    assert drawn.axes[1].get_title().startswith("lenience:l=0.5\nacceptance\n")


def test_errors_are_left_out_without_exact_values():
    p, q = np.random.default_rng(0).dirichlet(np.ones(24), size=2)
    simulation = simulators.simulate(ft.block_rule("lossless"), (p, q), 1_000, 0, draft_length=8)
    (only,) = figure([simulation]).axes
    assert only.get_xlabel() == "kept"


def test_long_laws_are_cut_to_their_most_frequent_outcomes():
    simulation = simulators.simulate(ft.rule("lossless"), (P, Q), 2_000, 0, draft_length=2, length=3)
    rates = figure([simulation]).axes[0]
    heights = rates.containers[0].lines[0].get_ydata()
    values = sorted((e.value for e in simulation.estimates if e.outcome is not None), reverse=True)
    np.testing.assert_allclose(heights, values[:24])


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InvalidInput, match="simulations is empty"):
        figure([])
    text = simulators.simulate(ft.rule("lossless"), (P, Q), 10, 0, draft_length=2, length=20)
    with pytest.raises(InvalidInput, match="lossless estimates no law"):
        figure([text])
