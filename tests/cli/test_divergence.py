"""`divergence`: the figures of `fly_theory.divergence`, from lists, examples and rules."""

import json
import math

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.divergence import DIVERGENCES
from fly_theory.example_pairs import example_pair

GOLDEN = ("--p", "1/2,0.3,3/20,.05", "--q", "1/5,0.1,0.3,2/5")


def test_two_lists(cli):
    measured = cli("divergence", *GOLDEN, "--json").json()
    p, q = example_pair("golden").arrays()
    assert measured["p"] == pytest.approx(p)
    assert measured["q"] == pytest.approx(q)
    assert list(measured["divergences"]) == ["q"]
    for name, divergence in DIVERGENCES.items():
        assert measured["divergences"]["q"][name] == pytest.approx(float(divergence(p, q)), rel=1e-12)
    assert measured["divergences"]["q"]["kl"] == pytest.approx(sum(p * np.log(p / q)))


def test_out_is_another_word_for_q(cli):
    lists = ("--p", "1/2,1/2", "--json")
    assert cli("divergence", *lists, "--out", "1/3,2/3").out == cli("divergence", *lists, "--q", "1/3,2/3").out


def test_rules(cli):
    specs = ["lossless", "lenience:l=0.5"]
    measured = cli("divergence", *specs, *GOLDEN, "--json").json()["divergences"]
    assert list(measured) == specs
    assert measured["lossless"]["total_variation"] == pytest.approx(0, abs=1e-15)
    p, q = example_pair("golden").arrays()
    out = ft.rule(specs[1]).induced(p, q)
    for name, divergence in DIVERGENCES.items():
        assert measured[specs[1]][name] == pytest.approx(float(divergence(p, out)), rel=1e-12)


def test_renyi_order(cli):
    p, q = example_pair("golden").arrays()
    for alpha in (0.5, 3):
        measured = cli("divergence", *GOLDEN, "--alpha", alpha, "--json").json()
        assert measured["renyi_alpha"] == alpha
        expected = math.log(sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)
        assert measured["divergences"]["q"]["renyi"] == pytest.approx(expected)


def test_infinities_are_texts_that_float_reads(cli):
    text = cli("divergence", "--p", "1,0", "--q", "0,1", "--json").ok()

    def refuse(constant):
        raise AssertionError(constant)

    measured = json.loads(text, parse_constant=refuse)["divergences"]["q"]
    assert float(measured["kl"]) == math.inf
    assert measured["total_variation"] == 1


def test_table(program):
    lines = program("divergence", "lossless", "lenience:l=0.5", "--pair", "golden").ok().splitlines()
    assert lines[0] == "example golden"
    assert lines[2].split("  ")[0] == "out"
    cells = {line.split()[0]: line.split()[1:] for line in lines[3:]}
    assert cells["lossless"] == ["0", "0", "0", "0", "0", "0", "1", "0"]
    assert cells["lenience:l=0.5"][:2] == ["0.2", "0.0916355"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--p", "1/2,1/2"), "--q is missing; --p and --q are given together"),
        (("--q", "1/2,1/2"), "--p is missing; --p and --q are given together"),
        (("--p", "1/2,1/2", "--q", "1/2,half"), "--q has 'half' at index 1; write decimals or quotients"),
        (("--p", "1/2,,1/2", "--q", "1/2,1/2"), "--p has '' at index 1; write decimals or quotients"),
        (("--p", "1/0,1", "--q", "1/2,1/2"), "--p has '1/0' at index 0; write decimals or quotients"),
        (("--p", "0.5,0.6", "--q", "1/2,1/2"), "--p sums to 1.1; a distribution sums to 1"),
        (("--p", "1.5,-0.5", "--q", "1/2,1/2"), "--p has entry -0.5 at index 1; allowed are finite numbers >= 0"),
        (("--p", "nan,1", "--q", "1/2,1/2"), "--p has entry nan at index 0"),
        (("--p", "1/2,1/2", "--q", "1/2,1/4,1/4"), "p and q have different vocabularies: 2 and 3 tokens"),
        ((*GOLDEN, "--pair", "smooth"), "--pair cannot be combined with --p and --q"),
        (("--pair", "gold"), "unknown example pair 'gold'. Did you mean 'golden'?"),
        (("lenience", *GOLDEN), "lenience needs l in (0, 1]"),
        ((*GOLDEN, "--alpha", "-1"), "alpha=-1.0 is outside [0, inf]"),
    ],
)
def test_bad_input(cli, arguments, message):
    assert cli("divergence", *arguments).error().startswith(message)
