"""More candidates and more depth multiply the damage of a lossy rule: closed forms against enumeration."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.errors import InvalidInput
from fly_theory.trees import (
    DRAWINGS,
    accept_set_law,
    amplify,
    branching,
    first_token_law,
    independent_law,
    joint_law,
    position_law,
    text_law,
)
from fly_theory.trees.enumeration import all_trees, drafted_weights

P, Q = ft.exact(["1/2", "3/10", "3/20", "1/20"]), ft.exact(["1/5", "1/10", "3/10", "2/5"])
FLOATS = [np.asarray(x, dtype=float) for x in (P, Q)]


@pytest.mark.parametrize("drawing", ["with-replacement", "deterministic"])
@pytest.mark.parametrize("spec", ["min-p:base=1/4", "min-p:base=1/2", "min-p:base=1", "typical"])
def test_closed_form_of_accept_sets_is_the_enumeration(spec, drawing):
    for seed in range(4):
        pair = ft.ContextTreePair.random(4, 0, seed, exact=True)
        for drafts in (1, 2, 3):
            given = (pair.target[0], pair.draft[0], drafts)
            enumerated = position_law(ft.tree_rule(spec), *given, drawing=drawing).induced
            assert accept_set_law(ft.rule(spec), *given, drawing=drawing).tolist() == enumerated.tolist()


@pytest.mark.parametrize(
    "spec",
    [
        "lossless",
        "lenience:l=1/2",
        "min-p:base=1/4",
        "truncated-min-p:base=1/2",
        "cos:w=1/3",
        "fuzzy:divergence=tv,t=0.3",
    ],
)
def test_independent_draws_in_closed_form_are_the_enumeration(spec):
    for seed in range(4):
        pair = ft.ContextTreePair.random(4, 0, seed, exact=True)
        for drafts in (1, 2, 3):
            given = (pair.target[0], pair.draft[0], drafts)
            enumerated = position_law(ft.tree_rule(spec), *given, drawing="with-replacement")
            closed = independent_law(ft.rule(spec), *given)
            assert closed.accepted.tolist() == enumerated.accepted.tolist()
            assert closed.redrawn.tolist() == enumerated.redrawn.tolist()


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("spec", ["truncated-min-p:base=1/2", "truncated-min-p:base=1/4"])
def test_a_truncated_target_is_left_whole_by_several_candidates(spec, drawing):
    """Truncating what a failed candidate leaves once more would move the law by up to a third."""
    rule = ft.rule(spec)
    for seed in range(12):
        pair = ft.ContextTreePair.random(4, 0, seed, exact=True)
        p, q = pair.target[0], pair.draft[0]
        for drafts in (1, 2, 3):
            found = position_law(ft.tree_rule(spec), p, q, drafts, drawing=drawing).induced
            assert found.tolist() == rule.matched_target(p).tolist()


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("spec", ["lossless", "min-p:base=1/4", "traversal", "greedy-path"])
def test_first_tokens_of_all_trees_make_up_the_law_of_the_first_token(spec, drawing):
    pair, parents, rule = ft.ContextTreePair.random(3, 0, 5, exact=True), (0, 0, 1, 2), ft.tree_rule(spec)
    target, draft = (ft.exact([row.tolist()] * (len(parents) + 1)) for row in (pair.target[0], pair.draft[0]))
    trees = all_trees(target, draft, parents, drawing)
    on_each = drafted_weights(trees)[:, None] * first_token_law(rule.law(trees), trees)
    assert (
        array_namespace(on_each).sum(on_each, axis=0).tolist()
        == joint_law(rule, pair, parents, 1, drawing=drawing).tolist()
    )


def test_tv_grows_to_that_of_the_restricted_draft():
    rule, found = ft.rule("min-p:base=0.25"), []
    for drafts, golden in ((1, 0.21), (2, 0.294), (4, 0.341), (16, 0.35)):
        law = accept_set_law(rule, *FLOATS, drafts, drawing="with-replacement")
        found.append(float(ft.divergence.total_variation(FLOATS[0], law)))
        assert found[-1] == pytest.approx(golden, abs=5e-4)
    assert found == sorted(found)


@pytest.mark.parametrize("spec", ["min-p:base=0.25", "typical:eps=0.09,delta=0.3", "eta:eps=0.09"])
def test_a_top_k_tree_collapses_to_a_point_mass_when_a_child_is_allowed(spec):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(30, 0.3), (2, 200))
    allowed = ft.rule(spec).allowed_set(p)
    children = np.argsort(-q, axis=-1, kind="stable")[:, :3]
    hit = np.take_along_axis(allowed, children, -1)
    law = accept_set_law(ft.rule(spec), p, q, 3, drawing="deterministic")
    assert hit.any(-1).any()
    assert not hit.any(-1).all()
    for row in range(200):
        if hit[row].any():
            assert law[row].tolist() == np.eye(30)[children[row][hit[row].argmax()]].tolist()
        else:
            assert law[row].tolist() == p[row].tolist()


@pytest.mark.parametrize("spec", ["min-p:base=1/4", "lenience:l=1/2", "lossless", "threshold-walk:single=1/2,acc=3/4"])
@pytest.mark.parametrize(("drafts", "depth"), [(1, 2), (2, 1), (2, 2)])
def test_texts_of_walks_are_those_of_the_enumerated_tree(spec, drafts, depth):
    p, q = ft.exact(["2/3", "1/3"]), ft.exact(["1/4", "3/4"])
    rule, pair = ft.tree_rule(spec), ft.ContextTreePair(p[None, :], q[None, :], depth=0)
    drawing = "with-replacement"
    position = position_law(rule, p, q, drafts, drawing=drawing)
    enumerated = joint_law(rule, pair, branching([drafts] * depth), 4, drawing=drawing)
    assert text_law(position, p, depth, 4).tolist() == enumerated.tolist()
    if spec == "lossless":
        assert enumerated.tolist() == ft.target_law(pair, 4).tolist()


def test_distances_of_texts():
    rule = ft.tree_rule("min-p:base=1/4")
    single = amplify(rule, P, Q, drafts=1, drawing="with-replacement")
    assert single.to_target.item() == Fraction(21, 100)
    assert single.acceptance.item() == Fraction(3, 5)
    assert single.to_matched.item() == Fraction(211, 950)
    deeper = [
        float(amplify(rule, *FLOATS, drafts=n, drawing="with-replacement", depth=d, length=3).to_target)
        for n, d in ((1, 1), (2, 1), (4, 1), (1, 3), (2, 3), (4, 3))
    ]
    assert deeper[:3] == sorted(deeper[:3])
    assert deeper[3:] == sorted(deeper[3:])
    assert all(deep > shallow for deep, shallow in zip(deeper[3:], deeper[:3], strict=True))
    assert amplify(ft.tree_rule("lenience:l=0.5"), *FLOATS, drafts=2, drawing="with-replacement").to_matched is None


def test_what_has_no_closed_form_is_refused():
    with pytest.raises(InvalidInput, match="does not accept a set and redraw from the target"):
        accept_set_law(ft.rule("lenience:l=0.5"), *FLOATS, 2, drawing="with-replacement")
    with pytest.raises(InvalidInput, match="does not accept a set and redraw from the target"):
        accept_set_law(ft.rule("typical-argmax"), *FLOATS, 2, drawing="with-replacement")
    with pytest.raises(InvalidInput, match="not without replacement"):
        accept_set_law(ft.rule("typical"), *FLOATS, 2, drawing="without-replacement")
    with pytest.raises(InvalidInput, match="does not decide position by position"):
        amplify(ft.tree_rule("traversal"), *FLOATS, drafts=2, drawing="with-replacement")
    with pytest.raises(InvalidInput, match="residuals that forget the draws"):
        independent_law(ft.rule("cactus:delta=0.1"), *FLOATS, 2)
