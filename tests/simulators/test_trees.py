"""Simulated tree rules cover their exact laws. False-alarm budget: intervals at 1 - 1e-6, under 200 of them."""

import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput
from fly_theory.trees import branching
from simulators import amplification_figure, simulate

PAIR = ft.ContextTreePair.random(3, 2, 4)
CASES = [
    ("lossless", "with-replacement"),
    ("traversal", "without-replacement"),
    ("k-seq", "with-replacement"),
    ("min-p:base=0.5", "deterministic"),
    ("threshold-walk:single=0.5,acc=0.75", "without-replacement"),
    ("typical-path", "with-replacement"),
    ("fly-tree:theta=0.3,window=1", "deterministic"),
]


@pytest.mark.parametrize(("spec", "drawing"), CASES)
def test_estimates_cover_the_exact_laws(spec, drawing):
    parents = (0, 0, 1, 1)
    found = simulate(ft.tree_rule(spec), PAIR, 20_000, seed=3, parents=parents, drawing=drawing, confidence=1 - 1e-6)
    assert found["tokens per call"].exact == found["drafts kept"].exact + 1
    for estimate in found.estimates:
        assert estimate.low - 1e-9 <= estimate.exact <= estimate.high + 1e-9, estimate
    assert found["drafts kept"].exact == pytest.approx(
        float(ft.trees.expected_lengths(ft.tree_rule(spec), PAIR, parents, drawing=drawing).kept), abs=1e-12
    )


def test_a_token_rule_is_applied_to_siblings_in_turn():
    on = ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    by_token, by_tree = (
        simulate(rule, on, 2000, 1, parents=branching([2])) for rule in (ft.rule("lossless"), ft.tree_rule("lossless"))
    )
    assert {name: counts.tolist() for name, counts in by_token.counts.items()} == {
        name: counts.tolist() for name, counts in by_tree.counts.items()
    }


def test_large_trees_have_no_exact_values():
    found = simulate(ft.tree_rule("traversal"), PAIR, 500, 0, parents=branching([3, 2]), drawing="without-replacement")
    assert found["tokens per call"].exact is None


@pytest.mark.parametrize(
    ("rule", "settings", "message"),
    [
        ("k-seq", {"parents": (0,), "drawing": "deterministic"}, "verifies siblings drawn with-replacement"),
        ("traversal", {"parents": (0, 0, 0, 0), "drawing": "deterministic"}, "4 siblings cannot all differ"),
        ("traversal", {"parents": (0, 3)}, "parents come first"),
        ("traversal", {"parents": (0,), "draft_length": 2}, "give either them or parents"),
        ("traversal", {"draft_length": 2}, "neither a token-level nor a block-level rule"),
    ],
)
def test_what_does_not_fit_is_refused(rule, settings, message):
    with pytest.raises(InvalidInput, match=message):
        simulate(ft.tree_rule(rule), PAIR, 100, 0, **settings)


@pytest.mark.slow
def test_figure_shows_the_published_gaps_beside_the_exact_ones():
    figure = amplification_figure(trials=1000, seed=0)
    by_drafts, by_depth, top_k, gaps = figure.axes
    exact = next(line for line in by_drafts.lines if line.get_label() == "min-p:base=0.25")
    assert list(exact.get_ydata())[:2] == pytest.approx([0.21, 0.294], abs=1e-12)
    assert "simulated" in [text.get_text() for text in by_drafts.get_legend().get_texts()]
    depths = {line.get_label(): list(line.get_ydata()) for line in by_depth.lines}
    assert depths["$n$ = 4, to $p$"] > depths["$n$ = 2, to $p$"] > depths["$n$ = 1, to $p$"]
    assert max(bar.get_height() for bar in top_k.patches) == 1
    assert min(bar.get_height() for bar in gaps.patches) == -8.82
    assert len(gaps.patches) == 16
