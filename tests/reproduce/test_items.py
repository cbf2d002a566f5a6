"""Every item: what it finds, and that the figures show it. Printed summaries are in test_summaries.py."""

import re
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import fly_theory as ft
from fly_theory import reproduce
from fly_theory.cost import fly_table1
from fly_theory.errors import UnknownName
from fly_theory.figures import ONE_COLUMN, TWO_COLUMNS, encode
from fly_theory.reproduce import (
    fly_sampling,
    fly_speedups,
    lenience_optimal,
    lossy_cos_direction,
    lossy_figure_4,
    lossy_figure_8,
    trees_amplify,
)
from fly_theory.reproduce.summaries import BENCHMARKS

OUTCOMES = {
    "fly-sampling": ("explained", 0),
    "fly-speedups": ("not reproducible here", 10),
    "fly-statements": ("reproduced", 0),
    "fly-table-8": ("reproduced", 0),
    "fly-tables-1-5": ("not reproducible here", 9),
    "fly-tables-2-3": ("not reproducible here", 1),
    "fly-tables-4-9": ("explained", 0),
    "hierarchical-is-block": ("explained", 0),
    "lenience-optimal": ("reproduced", 0),
    "lossy-cos-direction": ("explained", 0),
    "lossy-figure-2": ("explained", 0),
    "lossy-figure-4": ("explained", 0),
    "lossy-figure-8": ("explained", 0),
    "lossy-table-1": ("explained", 0),
    "lossy-table-2": ("not reproducible here", 10),
    "lossy-table-3": ("reproduced", 0),
    "lossy-table-7": ("explained", 5),
    "lossy-tradeoffs": ("reproduced", 0),
    "needs-models": ("not reproducible here", 0),
    "trees-amplify": ("explained", 0),
    "tv-line": ("reproduced", 0),
}
find = cache(lambda name: reproduce.item(name).find())


def ours(name: str, pattern: str) -> list[float]:
    return [float(value.ours) for value in find(name).values if re.search(pattern, value.what)]


def test_these_are_the_items_of_the_core():
    known = reproduce.items()
    assert set(OUTCOMES) <= set(known)
    assert all(item.name == name and item.title and item.source for name, item in known.items())


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome_and_disagreements(name):
    finding = find(name)
    assert (finding.outcome, len(finding.disagreements)) == OUTCOMES[name]
    assert finding.values
    assert len(finding.why) > 40
    if finding.outcome == "reproduced":
        assert not finding.disagreements


@pytest.mark.parametrize("name", OUTCOMES)
def test_figures_have_the_size_of_a_column_and_say_what_is_on_their_axes(name):
    for figure in find(name).figures.values():
        assert figure.get_figwidth() in (ONE_COLUMN, TWO_COLUMNS)
        assert figure.get_supxlabel() or any(ax.get_xlabel() or ax.get_ylabel() for ax in figure.axes)
        assert len(encode(figure, "png")) > 5000


def test_the_figure_of_the_lengths_shows_every_published_one_within_its_axes():
    finding = find("fly-tables-4-9")
    published = {value.published for value in finding.values if value.published is not None}
    shown = set()
    for ax in finding.figures["lengths"].axes:
        assert "published" in ax.get_legend_handles_labels()[1]
        low, high = ax.get_ylim()
        for line in ax.get_lines():
            assert all(low < y < high for y in line.get_ydata()), line.get_label()
            if line.get_marker() == "o":
                shown |= {*line.get_ydata()}
    assert shown == published
    assert len(published) == 13


def test_an_unknown_item_is_named():
    with pytest.raises(UnknownName, match="Did you mean 'lossy-table-2'"):
        reproduce.item("lossy-tabel-2")


# -- lossy paper -------------------------------------------------------------------------------------------------------


def test_figure_4_pairs_are_distributions_of_the_stated_kinds():
    triplet = lossy_figure_4.Triplet(4, 3, 3)
    p, q = triplet.pairs()
    n = lossy_figure_4.CANDIDATES
    np.testing.assert_allclose(p.sum(-1), 1)
    np.testing.assert_allclose(q.sum(-1), 1)
    matching, unrelated = np.isclose(q, p) & (p > 0), (q == 0) & (p > 0)
    assert (unrelated.sum(-1) == 3 * n // 10).all()
    assert (matching.sum(-1) >= 4 * n // 10).all()
    assert (p[:, n:] == 0).all()
    assert (q[:, n:][unrelated[:, :n]] == p[unrelated]).all()


def test_figure_4_the_corners_and_the_sweep():
    triplets = lossy_figure_4.simplex()
    assert len(triplets) == 66
    for spec in lossy_figure_4.RULES:
        matching, overlapping, unrelated = (
            lossy_figure_4.change(spec, lossy_figure_4.Triplet(*shares)) for shares in np.eye(3, dtype=int) * 10
        )
        assert matching < -1
        assert overlapping > 0.2
        assert unrelated == pytest.approx(0, abs=1e-12)


def test_figure_8_closed_form_of_lenience_on_the_golden_pair():
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.1, 0.3, 0.4])
    np.testing.assert_allclose(lossy_figure_8.closed_form(0.5, p, q), [0.38, 0.22, 0.3, 0.1], atol=1e-15)
    assert lossy_figure_8.strength(ft.rule("lenience:l=0.5"), p, q) == pytest.approx(0.3 / 0.5)
    assert lossy_figure_8.strength(ft.rule("lenience:l=0.5"), p, p) == 0


def test_table_1_rows_are_near_those_they_are_set_beside():
    finding = find("lossy-table-1")
    ceiling = [v for v in finding.values if v.what.startswith("Overshoot") and v.what.endswith("block_efficiency")]
    interpolation = [v for v in finding.values if v.what.startswith("Adaptive") and v.what.endswith("block_efficiency")]
    passed = [v for v in finding.values if v.what.startswith("Adaptive") and v.what.endswith("pass_at_1_percent")]
    assert [len(x) for x in (ceiling, interpolation, passed)] == [4, 4, 4]
    assert max(abs(v.difference) for v in ceiling) <= Fraction(6, 100)
    assert max(abs(v.difference / v.published) for v in interpolation) < 0.05
    assert max(abs(v.difference) for v in passed) < 6


def test_cos_accepts_more_and_answers_worse_the_larger_its_parameter():
    rows = [row for row in ft.published.table("lossy_table4_single_draft") if row["method"] == "CoS"]
    for benchmark in BENCHMARKS:
        swept = [row for row in rows if row["benchmark"] == benchmark]
        assert [row["parameter"] for row in swept] == [0.2, 0.4, 0.6, 0.8]
        assert (np.diff([row["block_efficiency"] for row in swept]) > 0).all()
        assert (np.diff([row["accuracy_percent"] for row in swept]) < 0).all()
    errors = {
        reading: np.abs(
            [float(v.difference) for v in find("lossy-cos-direction").values if f"of the {reading}:" in v.what]
        )
        for reading in ("draft", "target")
    }
    assert errors["draft"].mean() < errors["target"].mean() / 4


def test_cos_prediction_starts_at_the_baseline_and_ends_at_the_whole_block():
    assert lossy_cos_direction.predicted(5.47, 0) == pytest.approx(5.47)
    assert lossy_cos_direction.predicted(5.47, 1) == pytest.approx(lossy_cos_direction.DRAFT_LENGTH + 1)


# -- FLy ---------------------------------------------------------------------------------------------------------------


def test_two_probabilities_a_table_give_thirteen_lengths():
    judged = [value for value in find("fly-tables-4-9").values if value.agrees is not None]
    assert len(judged) == 13
    assert max(abs(value.difference / value.published) for value in judged) < 0.032


def test_round_times_are_tokens_over_speedup():
    table1 = fly_table1("L3-405B", accelerated=True)
    assert table1(25) / 200.97 == pytest.approx((363.01 + 200.97 + 0.57) / 200.97)
    implied = [row["steps"] for row in fly_speedups.rows() if (row["target"], row["method"]) == ("L31 405B", "FLy")]
    assert len(implied) == 16
    assert min(implied) == pytest.approx(16.18 / 6.37)
    assert max(implied) == pytest.approx(24.15 / 4.07)


@pytest.mark.parametrize("probability", [0.5, 0.7, 0.95])
def test_two_draws_by_hand(probability):
    drafted = 1 - (1 - probability) ** 2
    assert fly_sampling.distance(fly_sampling.SHUT, probability, 1) == pytest.approx(drafted - probability, abs=1e-14)


# -- findings ----------------------------------------------------------------------------------------------------------


def test_rules_off_the_line_are_far_off_it():
    above = ours("tv-line", "above the line")
    assert sorted(above)[5] < 1e-9
    assert sorted(above)[6] > 0.05


def test_the_linear_program_finds_what_is_known_without_a_ceiling_and_with_the_strictest():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    assert lenience_optimal.best_acceptance(p, q, 100.0) == pytest.approx(1)
    assert lenience_optimal.best_acceptance(p, q, 1.0) == pytest.approx(np.minimum(p, q).sum())


def test_hierarchical_variants_keep_more_only_when_lossy_or_redrawing_all():
    token, block, hierarchical, naive, mincap, uncapped = ours("hierarchical-is-block", "drafts kept")
    assert token < block == pytest.approx(hierarchical, abs=1e-12)
    assert min(naive, mincap, uncapped) > block + 0.05
    assert min(ours("hierarchical-is-block", "^hierarchical-(mincap|uncapped): largest TV")) > 0.1


def test_candidates_take_the_output_to_the_truncated_draft():
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.1, 0.3, 0.4])
    limit = np.abs(np.array([2 / 3, 1 / 3, 0, 0]) - p).sum() / 2
    distances = [trees_amplify.closed_form("min-p:base=0.5", "golden", n) for n in range(1, 60)]
    assert distances[0] == pytest.approx(
        float(ft.divergence.total_variation(p, ft.rule("min-p:base=0.5").induced(p, q)))
    )
    assert (np.diff(distances) > 0).all() or distances[-1] == pytest.approx(limit)
    assert distances[-1] == pytest.approx(limit, abs=1e-8)
