"""Table 7 on captured trees: counted by hand on a tiny pair, and drawn beside the printed gaps."""

import numpy as np
import pytest

import fly_theory as ft
import gpu
from fly_theory.distributions import softmax
from gpu.reproducing import trees_amplify
from gpu.reproducing.trees_amplify import PAIRS, first_positions, specs


@pytest.fixture(scope="module")
def trace(tiny, tmp_path_factory):
    return gpu.open_trace(
        gpu.capture(
            tiny.llama,
            "layerskip:1",
            ["the fox and the hare", "def add(a, b):", "one and one are"],
            out=tmp_path_factory.mktemp("amplify") / "trace",
            tree="total=12,depth=3,top_k=3",
            blocks=6,
            continuation=10,
        )
    )


def test_settings_are_those_of_table_5():
    cascade, typical = map(specs, PAIRS)
    assert cascade == [f"min-p:base={base}" for base in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert typical == [f"eta:eps={eps}" for eps in (0.05, 0.1, 0.15, 0.2, 0.25)]


def test_first_positions_are_counted_tree_by_tree(trace):
    found = first_positions(trace, ["min-p:base=0.5"])
    drawn, one, two, matched = [], [], [], []
    for tree in trace:
        p, q = (softmax(rows[0].double().numpy()) for rows in (tree.target_logits, tree.draft_logits))
        allowed = p >= 0.5 * p.max()
        out = np.where(allowed, q, 0) + q[~allowed].sum() * p
        drawn.append(np.abs(p - out).sum() / 2)
        children = [int(token) for token, parent in zip(tree.tokens, tree.parents, strict=True) if parent == 0]
        for count, distances in ((1, one), (2, two)):
            first = next((token for token in children[:count] if allowed[token]), None)
            distances.append(0 if first is None else 1 - p[first])
        matched.append(1 - p[allowed].sum())
    assert found.drawn[0] == pytest.approx(np.mean(drawn), abs=1e-12)
    assert found.top[:2] == pytest.approx([np.mean(one), np.mean(two)], abs=1e-12)
    assert found.matched == pytest.approx(np.mean(matched), abs=1e-12)
    assert 0 < np.mean(one) <= np.mean(two)
    assert list(found.drawn) == sorted(found.drawn)


def test_ours_beside_table_7(trace):
    finding = trees_amplify.replayed(trace)
    assert finding.outcome == "explained"
    of = {value.what: value for value in finding.values}
    single = of["Typical acceptance - eta-sampling: TV(p, out), single draft"]
    assert single.published == "-0.32 points of accuracy to its matched target"
    longer = of["SpecCascade - Min-p sampling: tokens per call beyond its matched target, on trees"]
    assert longer.published == 0.14
    found = [gpu.replay(trace, [spec])[spec] for spec in specs("SpecCascade - Min-p sampling")]
    expected = np.mean([r["tokens_per_call"].mean - r.baseline["tokens_per_call"].mean for r in found])
    assert longer.ours == pytest.approx(expected, abs=1e-9)
    ours, theirs = finding.figures["candidates"].axes
    lines = {line.get_label(): list(line.get_ydata()) for line in ours.lines}
    tree = of["SpecCascade - Min-p sampling: TV(p, out), its 8 most probable, as in a tree"]
    assert lines["SpecCascade, top $n$ (tree)"][-1] == tree.ours
    assert min(bar.get_height() for bar in theirs.patches) == -8.82


@pytest.mark.parametrize("spec", ["min-p:base=0.3", "eta:eps=0.1"])
def test_on_a_tree_the_law_is_that_of_its_top_candidates(trace, spec):
    """Replay of the captured tree against the closed form for the draft's three most probable tokens."""
    tv = []
    for tree in trace:
        p, q = (softmax(rows[0].double().numpy()) for rows in (tree.target_logits, tree.draft_logits))
        children = tree.parents.tolist().count(0)
        law = ft.trees.accept_set_law(ft.rule(spec), p, q, children, drawing="deterministic")
        tv.append(np.abs(p - law).sum() / 2)
    assert gpu.replay(trace, [spec], dtype="float64")[spec]["tv"].mean == pytest.approx(np.mean(tv), abs=1e-9)
