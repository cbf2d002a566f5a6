"""`fly-theory diagram --drafts`: what rules do with several candidates for one position."""

import pytest

import fly_theory as ft
from fly_theory.example_pairs import example_pair


def test_panels_are_the_exact_laws(cli, tmp_path):
    file = tmp_path / "drafts.svg"
    command = ("diagram", "lossless", "k-seq", "min-p:base=0.25", "--pair", "golden", "--drafts", "2", "-o", file)
    panels = cli(*command, "--json").json()["panels"]
    assert [panel["acceptance"] for panel in panels] == pytest.approx([0.65, 0.671852, 0.84], abs=1e-6)
    assert [panel["tv"] for panel in panels] == pytest.approx([0, 0, 0.294], abs=1e-12)
    assert "k-seq" in file.read_text()


def test_candidates_drawn_otherwise(cli, tmp_path):
    options = ("--pair", "golden", "--drafts", "2", "-o", tmp_path / "drafts.png", "--json")
    (panel,) = cli("diagram", "lossless", "--drawing", "without-replacement", *options).json()["panels"]
    assert panel["acceptance"] == pytest.approx(207 / 280, abs=1e-12)
    (panel,) = cli("diagram", "min-p:base=0.25", "--drawing", "deterministic", *options).json()["panels"]
    assert panel["tv"] == pytest.approx(1 - 0.15, abs=1e-12), "a point mass at the only allowed candidate"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--drafts is missing: k-seq judges several candidates"),
        (("--drafts", "2", "--drawing", "deterministic"), "k-seq verifies siblings drawn with-replacement"),
        (("--drafts", "0"), "give at least one candidate"),
        (("--drafts", "9", "--pair", "smooth"), "more than the 1.7e+07 that are enumerated"),
    ],
)
def test_refusals(cli, tmp_path, options, message):
    assert message in cli("diagram", "k-seq", "-o", tmp_path / "drafts.png", *options).error()


def test_a_tree_rule_at_a_position_claims_no_ceiling():
    p, q = example_pair("golden").arrays()
    at = ft.trees.AtPosition(ft.tree_rule("lossless"), 3, "with-replacement")
    assert at.induced(p, q) == pytest.approx(p, abs=1e-12)
    assert [str(claim) for claim in at.claims] == ["lossless"]
