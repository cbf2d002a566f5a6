"""`fly-theory prove`."""

import json

import pytest
from typer.testing import CliRunner

import proofs
from fly_theory.cli import application
from proofs import runner

MY_RULE = """
from dataclasses import dataclass

from fly_theory.arrays import Number, array_namespace, positive_part, scalar
from fly_theory.parameters import Interval, parameter
from fly_theory.rules import Rule, Verdict


@dataclass(frozen=True, kw_only=True)
class MyRule(Rule):
    name = "my-rule"
    l: Number = parameter(Interval(0, 1, low_open=True), "lenience", typical=(0.5,))

    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(q, p / scalar(self.l, p)), positive_part(p - q))


AT_HALF = MyRule(l=0.5)
not_a_rule = len
"""


@pytest.fixture
def run():
    def run(*arguments):
        return CliRunner().invoke(application(), ["prove", *map(str, arguments)])

    return run


@pytest.fixture
def my_rule(tmp_path):
    file = tmp_path / "my_rule.py"
    file.write_text(MY_RULE)
    return file


def test_a_table_of_the_theorems_asked_for(run):
    result = run("lossless", "cos-ceiling", "--jobs", 1)
    assert result.exit_code == 0, result.output
    heading, first, second, witness = result.stdout.splitlines()
    assert heading.split() == ["name", "statement", "outcome", "method", "obligations", "seconds"]
    assert first.startswith("lossless ")
    assert " proved " in first
    assert " refuted " in second
    assert witness == "cos-ceiling: cos:w=0.5 at p = (0, 1); q = (1, 0); acceptance = 1/2; out = (1/2, 1/2)"


def test_one_json_document(run):
    result = run("lenience-floor", "lossless", "--json", "--small", 2)
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == ["lenience-floor", "lossless"]
    assert rows[1]["outcome"] == rows[1]["expected"] == "proved"
    assert rows[1]["small"] == {"2": "proved"}
    assert rows[1]["obligations"] > 5


def test_without_names_it_is_the_whole_book(run, proof_of, monkeypatch):
    """What each theorem comes out as is proved once in a test run, and shown here as the command shows it."""
    monkeypatch.setattr(
        runner, "outcomes", lambda names, **_: (runner.reported(proof_of(name), None) for name in reversed(names))
    )
    result = run()
    assert result.exit_code == 0, result.output
    shown = [line.split()[0] for line in result.stdout.splitlines()]
    assert shown[1 : len(proofs.theorems()) + 1] == list(proofs.theorems())


def test_several_processes_prove_what_one_does(run):
    names = ["lossless", "cos-ceiling", "fixed-point"]
    one, two = (json.loads(run(*names, "--jobs", jobs, "--json").stdout) for jobs in (1, 2))
    assert [row["name"] for row in two] == names
    assert [row | {"seconds": 0} for row in two] == [row | {"seconds": 0} for row in one]


def test_certificates_are_written(run, tmp_path):
    result = run("overshoot-is-lenience", "--certificates", tmp_path)
    assert result.exit_code == 0
    assert (tmp_path / "overshoot-is-lenience" / "001.smt2").read_text().endswith("(check-sat)\n")
    assert (tmp_path / "overshoot-is-lenience" / "proof.md").exists()


@pytest.mark.parametrize(
    ("claims", "outcomes", "code"),
    [
        (["ceiling:1/l", "on-the-line"], ["proved", "proved"], 0),
        (["ceiling:1/l", "lossless"], ["proved", "refuted"], 1),
    ],
)
def test_a_rule_of_ones_own(run, my_rule, claims, outcomes, code):
    result = run(f"{my_rule}:MyRule", *(part for claim in claims for part in ("--claim", claim)), "--json")
    assert result.exit_code == code, result.output
    assert [row["outcome"] for row in json.loads(result.stdout)] == outcomes


def test_parameters_that_are_given_stay_fixed(run, my_rule):
    for spec in (f"{my_rule}:MyRule:l=0.5", f"{my_rule}:AT_HALF"):
        result = run(spec, "--claim", "ceiling:2", "--claim", "ceiling:3/2", "--json")
        assert [row["outcome"] for row in json.loads(result.stdout)] == ["proved", "refuted"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["losless"], "Did you mean 'lossless'"),
        (["lenience:l=0.5"], "say what to prove of it"),
        (["--claim", "lossless"], "name one by its SPEC"),
        (["lenience", "--claim", "ceiling:1/m"], "the parameters of Lenience are l"),
        (["lenience:m=1", "--claim", "lossless"], "has no parameter 'm'"),
        (["FILE:not_a_rule", "--claim", "lossless"], "not a Rule"),
        (["lenience", "--claim", "kl:0.1"], "cannot be stated in sums and products"),
    ],
)
def test_bad_input_is_explained(run, my_rule, arguments, message):
    result = run(*(argument.replace("FILE", str(my_rule)) for argument in arguments))
    assert result.exit_code == 2
    assert message in result.output


def test_every_theorem_has_a_name_that_a_shell_takes():
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in proofs.theorems())
