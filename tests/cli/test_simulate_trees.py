"""`fly-theory simulate --tree`, and tree rules in `ls` and `show`."""

import pytest

import fly_theory as ft
from fly_theory.example_pairs import example_pair
from fly_theory.trees import branching, expected_lengths


def test_token_and_tree_rules_stand_side_by_side(cli):
    command = ("simulate", "lossless", "traversal", "--pair", "golden", "--trials", "2000", "--tree", "2,1")
    document = cli(*command, "--drawing", "without-replacement", "--json").json()
    p, q = example_pair("golden").arrays()
    pair = ft.ContextTreePair(p[None, :], q[None, :], depth=0)
    for found in document["simulations"]:
        lengths = expected_lengths(
            ft.tree_rule(found["subject"]), pair, branching([2, 1]), drawing="without-replacement"
        )
        assert found["estimates"][0]["exact"] == pytest.approx(1 + float(lengths.kept), abs=1e-12)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("traversal", "--tree", "two"), "--tree 'two' is not a list of integers such as 2,2"),
        (("traversal", "--tree", "2,0"), "children=0 is not allowed"),
        (("traversal",), "--tree is missing: traversal judges draft trees"),
        (("traversal", "--tree", "2", "-K", "2"), "give either them or parents"),
        (("traversal", "--tree", "2", "--drawing", "often"), "drawing='often' is not one of"),
    ],
)
def test_refusals(cli, command, message):
    assert message in cli("simulate", *command, "--pair", "golden", "--trials", "100").error()


def test_show_names_the_optimum_beside_the_acceptance(cli):
    example = cli("show", "k-seq", "--json").json()["example"]
    assert example["acceptance"] == pytest.approx(0.671852, abs=1e-6)
    assert example["optimum"] == pytest.approx(0.71, abs=1e-12)
    assert "drawn           with-replacement" in cli("show", "k-seq").ok()
    assert "judges draft trees" in cli("ls").ok()
