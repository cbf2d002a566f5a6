"""`ls`, its table of interpreters, and the copy of that table in the README."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import fly_theory as ft
from fly_theory.cli import rules_table
from fly_theory.cli.catalogue import Entry, entries
from fly_theory.errors import InvalidInput, ParameterError
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import Flag, Interval, parameter
from fly_theory.rules import Rule

README = Path(__file__).parents[2] / "README.md"


@dataclass(frozen=True, kw_only=True)
class Picky(Rule):
    """A rule that some cannot read, and one can read only sometimes.

    Statement
    ---------
    m = 0

    Guarantee
    ---------
    None.
    At all.
    """

    name: ClassVar[str] = "picky"
    unreadable_by: ClassVar = {Interpreter.EXACT: "it is irrational", Interpreter.SYMBOLIC: "it is irrational"}
    smooth: bool = parameter(Flag(), "whether it is smooth", default=True, typical=(True, False))

    @property
    def unreadable(self):
        return self.unreadable_by if self.smooth else {**self.unreadable_by, Interpreter.JAX: "it is rough"}


@dataclass(frozen=True, kw_only=True)
class Untypical(Rule):
    """A rule with a parameter that has no typical value."""

    name: ClassVar[str] = "untypical"
    l: float = parameter(Interval(0, 1), "something")


PICKY = Entry("picky", "token", Picky)


def test_every_rule_with_its_line_parameters_and_claims(cli):
    text = cli("ls").ok()
    for name in ft.rules():
        assert f"\n{name} " in text
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("lenience "))
    assert lines[at].endswith("Accept with probability min(1, p/(l q)), redraw from the positive part of p - q.")
    assert lines[at + 1].strip() == "parameters: l in (0, 1]"
    claimed = "claims of lenience:l=0.5: ceiling 1/l; accepts most under 1/l p; on the TV line;"
    assert lines[at + 2].strip().startswith(claimed)


def test_no_line_is_cut_or_folded_outside_a_terminal(program):
    longest = max(len(entry.summary) for entry in entries())
    for columns in ("20", "500"):
        text = program("ls", COLUMNS=columns).ok()
        assert max(map(len, text.splitlines())) > longest
        assert "…" not in text
        assert text == program("ls", COLUMNS="80").ok()
        assert all(line == line.rstrip() for line in text.splitlines())


def test_json(cli):
    listed = cli("ls", "--json").json()
    assert [rule["name"] for rule in listed] == list(ft.rules())
    found = {rule["name"]: rule for rule in listed}
    assert found["lenience"]["parameters"] == [
        {
            "name": "l",
            "domain": "(0, 1]",
            "help": "lenience: q is multiplied by l before the comparison",
            "required": True,
            "default": None,
            "strict_at": 1,
            "typical": [0.25, 0.5, 1],
        }
    ]
    assert found["lenience"]["at"] == "lenience:l=0.5"
    assert "on the TV line" in found["lenience"]["claims"]
    assert found["lossless"]["unreadable"] == {}
    assert set(found["mentored"]["unreadable"]) == {"exact", "symbolic"}


def test_table_of_interpreters(cli):
    lines = cli("ls", "--table").ok().splitlines()
    assert lines[0].split() == ["rule", "level", "numpy", "torch", "jax", "exact", "symbolic"]
    cells = {line.split()[0]: line.split()[1:] for line in lines[1 : len(ft.rules()) + 1]}
    assert set(cells) == set(ft.rules())
    assert cells["lossless"] == ["token", *["yes"] * 5]
    assert cells["mentored"] == ["token", "yes", "yes", "yes", "no", "no"]
    assert "mentored, exact and symbolic: its multipliers solve a transcendental equation" in lines


def test_cells_and_reasons_come_from_the_declarations():
    assert rules_table.row(PICKY) == ("picky", "token", "yes", "yes", "some", "no", "no")
    assert rules_table.reasons([PICKY]) == ["picky, jax: it is rough", "picky, exact and symbolic: it is irrational"]


def test_sections_of_a_docstring():
    assert PICKY.sections == {
        "Summary": "A rule that some cannot read, and one can read only sometimes.",
        "Statement": "m = 0",
        "Guarantee": "None.\nAt all.",
    }


def test_a_rule_without_typical_values_says_what_to_declare():
    with pytest.raises(ParameterError, match="untypical declares no typical value of l"):
        Entry("untypical", "token", Untypical).typical()


def test_markdown_has_a_row_for_each_rule_and_reason():
    lines = rules_table.markdown().splitlines()
    assert lines[0] == "| rule | level | numpy | torch | jax | exact | symbolic |"
    assert "| `lossless` | token | yes | yes | yes | yes | yes |" in lines
    assert len([line for line in lines if line.startswith("| `")]) == len(ft.rules())
    assert [line[2:] for line in lines if line.startswith("- ")] == rules_table.reasons(entries())


def test_only_what_is_between_the_markers_is_replaced():
    text = f"before\n{rules_table.BEGIN}\nold\n{rules_table.END}\nafter\n"
    expected = f"before\n{rules_table.BEGIN}\n{rules_table.markdown()}\n{rules_table.END}\nafter\n"
    assert rules_table.with_table(text) == expected
    assert rules_table.with_table(expected) == expected


@pytest.mark.parametrize(
    "text",
    ["none", rules_table.BEGIN, f"{rules_table.END} {rules_table.BEGIN}", 2 * (rules_table.BEGIN + rules_table.END)],
)
def test_markers_must_be_there_once(text):
    with pytest.raises(InvalidInput, match="markers <!-- rules:begin --> and <!-- rules:end -->"):
        rules_table.with_table(text)


def test_the_readme_is_current():
    text = README.read_text(encoding="utf-8")
    assert text == rules_table.with_table(text), "run: python -m fly_theory.cli.rules_table README.md"
