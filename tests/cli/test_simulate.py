"""`fly-theory simulate`: tables, JSON, figures and refusals."""

import json
import subprocess
import sys

import pytest

import fly_theory as ft
import simulators
from fly_theory.example_pairs import example_pair

QUICK = ("--trials", "2000", "--seed", "3")


def test_tables_show_estimate_interval_and_exact_value(cli):
    out = cli("simulate", "lossless", "lenience:l=0.5", "--pair", "golden", *QUICK).ok()
    assert "lossless on example golden: 2000 trials, seed 3" in out
    row = next(line for line in out.splitlines() if line.startswith("acceptance"))
    expected = simulators.simulate(ft.rule("lossless"), example_pair("golden").arrays(), 2000, 3)["acceptance"]
    assert [float(x) for x in row.split()[1:5]] == pytest.approx(
        [expected.value, expected.low, expected.high, 0.5], rel=1e-5
    )
    assert row.endswith("Clopper-Pearson 99 %")


def test_json_is_one_document_with_everything(cli):
    document = cli("simulate", "block", "--pair", "golden", "-K", "3", *QUICK, "--json").json()
    (simulation,) = document["simulations"]
    expected = simulators.simulate(ft.block_rule("block"), example_pair("golden").arrays(), 2000, 3, draft_length=3)
    assert simulation == json.loads(json.dumps(expected.to_json()))
    assert document["pair"] == "example golden"
    assert document["provenance"]["seed"] == 3
    assert "jax" in document["provenance"]["versions"]


def test_texts_on_a_markov_pair_from_a_file(cli, tmp_path):
    file = tmp_path / "pair.json"
    file.write_text('{"target": [[0.9, 0.1], [0.5, 0.5]], "draft": [[0.6, 0.4], [0.6, 0.4]], "start": [1, 0]}')
    out = cli("simulate", "block", "--markov", file, "-K", "2", "--length", "2", *QUICK).ok()
    exact = {line[:15].strip(): line.split()[7] for line in out.splitlines() if line.startswith("P(text")}
    assert {k: float(v) for k, v in exact.items()} == {
        "P(text = 0 0)": 0.81,
        "P(text = 0 1)": 0.09,
        "P(text = 1 0)": 0.05,
        "P(text = 1 1)": 0.05,
    }


def test_long_laws_are_cut_in_tables_and_whole_in_json(cli):
    command = ("simulate", "lossless", "--pair", "golden", "-K", "2", "--length", "3", *QUICK)
    assert "and 26 more: --json has them all" in cli(*command).ok()
    assert len(cli(*command, "--json").json()["simulations"][0]["estimates"]) == 66


def test_until_says_whether_it_was_reached(cli):
    assert "acceptance is within 0.2" in cli("simulate", "lossless", "--until", "0.2", *QUICK).ok()
    assert "acceptance is not within 0.001" in cli("simulate", "lossless", "--until", "0.001", *QUICK).ok()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_written(cli, tmp_path, suffix):
    file = tmp_path / f"figure.{suffix}"
    assert f"wrote {file}" in cli("simulate", "lossless", "--pair", "golden", *QUICK, "--plot", file).ok()
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("block", "--pair", "golden"), "--draft-length (-K) is missing: block judges blocks"),
        (("lossless", "--length", "2"), "--draft-length (-K) is missing"),
        (("losless",), "Did you mean 'lossless'"),
        (("lossless", "-K", "0"), "draft_length=0"),
        (("lossless", "--trials", "1"), "trials=1"),
        (("lossless", "--until", "-1"), "until=-1.0"),
        (("lossless", "--confidence", "2"), "confidence=2.0"),
        (("lossless", "--mean-interval", "normal"), "mean_interval='normal'"),
        (("fly:theta=-1,window=2", "-K", "3"), "theta=-1.0 is outside its domain"),
        (("lossless", "--p", "0.5,0.6", "--q", "0.5,0.5"), "sums to 1.1"),
        (("lossless", "--markov", "nowhere.json", "-K", "2"), "--markov nowhere.json: expected a JSON object"),
        (("lossless", "--markov", "nowhere.json", "--pair", "golden", "-K", "2"), "--markov cannot be combined"),
        (("lossless", "--plot", "figure.gif"), "figure.gif"),
    ],
)
def test_refusals_name_the_argument(cli, arguments, says):
    assert says in cli("simulate", *arguments).error()


def test_listing_verbs_does_not_import_jax():
    probe = "import sys, fly_theory.cli as c; c.application(); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
