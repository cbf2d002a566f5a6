"""`show`: what is said about a rule is what it declares and does."""

import pytest

import fly_theory as ft

RULE = '''
from dataclasses import dataclass
from typing import ClassVar

from fly_theory.interpreters import Interpreter
from fly_theory.rules.lenience import Lenience

@dataclass(frozen=True, kw_only=True)
class Mine(Lenience):
    """Do as lenience does.

    But say less.

    Statement
    ---------
    m = min(q, p/l)
    residual = (p - q)+

    Guarantee
    ---------
    out <= p/l.
    """

    name: ClassVar[str] = "mine"
    unreadable_by: ClassVar = {Interpreter.JAX: "it does not want to be"}
'''

SHOWN = """\
mine (token level)
Do as lenience does.

Statement
  m = min(q, p/l)
  residual = (p - q)+

Guarantee
  out <= p/l.

Reference
  not documented

Claims of mine:l=0.5
  ceiling 1/l
  accepts most under 1/l p
  on the TV line
  accepts everything at p = q
  lossless at l=1
  acceptance and TV grow as l gets smaller

Parameters
name  domain  default   strict at  meaning
l     (0, 1]  required  1          lenience: q is multiplied by l before the comparison

Example: mine:l=0.5
  p               (0.5, 0.3, 0.15, 0.05)
  q               (0.2, 0.1, 0.3, 0.4)
  acceptance      0.7
  out             (0.38, 0.22, 0.3, 0.1)
  TV(out, p)      0.2
  max out/p       2
  waste           0

Not readable by jax
  it does not want to be
"""


def test_everything_about_a_rule_in_a_file(program, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(RULE)
    assert program("show", f"{path}:Mine:l=0.5").ok() == SHOWN


def test_a_spec_is_shown_at_its_own_parameters(cli):
    shown = cli("show", "lenience:l=1", "--json").json()
    assert shown["spec"] == "lenience:l=1"
    assert shown["example"]["acceptance"] == pytest.approx(0.5)
    assert shown["example"]["out"] == pytest.approx([0.5, 0.3, 0.15, 0.05])


@pytest.mark.parametrize(
    ("spec", "acceptance", "tv", "ratio", "waste"),
    [
        ("lossless", 0.5, 0, 1, 0),
        ("lenience-substituted:l=0.5", 0.7, 0.2, 2, 0),
        ("lenience-resample:l=0.5", 0.7, 0.26, 2.3, 0.06),
        ("cos:w=0.5", 0.75, 0.25, 4.5, 0),
        ("min-p:base=0.5", 0.3, 0.06, 1.1, 0.26),
        ("truncated-min-p:base=0.5", 0.3, 0.2, 1.25, 0.4),
    ],
)
def test_examples_are_the_golden_values(cli, spec, acceptance, tv, ratio, waste):
    example = cli("show", spec, "--json").json()["example"]
    assert example["acceptance"] == pytest.approx(acceptance, abs=1e-12)
    assert example["TV(out, p)"] == pytest.approx(tv, abs=1e-12)
    assert example["max out/p"] == pytest.approx(ratio, abs=1e-12)
    assert example["waste"] == pytest.approx(waste, abs=1e-12)


@pytest.mark.parametrize("name", ft.rules())
def test_every_rule_can_be_shown(cli, name):
    shown = cli("show", name, "--json").json()
    assert shown["name"] == name
    for section in ("summary", "statement", "guarantee", "reference"):
        assert shown[section], section
    assert shown["example"]


def test_block_rules_show_expected_kept_drafts(cli):
    shown = cli("show", "block", "--json").json()
    assert shown["level"] == "block"
    assert shown["example"]["expected kept"] == pytest.approx(11 / 9)
    assert sum(shown["example"]["P(n kept)"]) == pytest.approx(1)


def test_who_cannot_read_a_rule_and_why(cli):
    assert "Not readable by exact\n  its multipliers solve" in cli("show", "mentored").ok()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("leniense", "unknown rule 'leniense'. Did you mean 'lenience'?"),
        ("blok", "unknown rule 'blok'. Did you mean 'block'?"),
        ("lenience:l=2", "lenience: l=2.0 is outside its domain (0, 1]"),
        ("lenience:k=2", "lenience has no parameter 'k'"),
        ("nowhere.py:Rule", "there is no file 'nowhere.py'"),
    ],
)
def test_bad_specs(cli, spec, message):
    assert cli("show", spec).error().startswith(message)
