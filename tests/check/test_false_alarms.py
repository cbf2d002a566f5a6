"""`check` cries about nothing: lossless rules over many seeds, and every registered rule on its own claims."""

import pytest

import fly_theory as ft
from fly_theory.cli.catalogue import Entry
from fly_theory.registry import rule_class

LOSSLESS = [
    "lossless",
    "lenience:l=1",
    "lenience-substituted:l=1",
    "ceiling-everywhere:l=1",
    "interpolation:l=1",
    "cos:w=0",
    "cos-contrastive:mu=0",
    "mentored:budget=0",
    "cactus:delta=0",
    "fuzzy:t=0",
    "cascade-chow:alpha=-1",
    "cascade-diff:alpha=-1",
    "cascade-opt:alpha=-2",
    "truncated-min-p:base=0",
    "sample-match:n=1",
    "threshold:single=1,acc=1",
]
SLOWER = LOSSLESS[-2:]


@pytest.mark.slow
@pytest.mark.parametrize("spec", LOSSLESS)
def test_seven_seeds_raise_no_alarm(spec):
    """112 runs in all; exact arithmetic, so the false-alarm budget is zero (1e-9 for the two rules in float64)."""
    for seed in range(7):
        report = ft.check(spec, ["lossless"], cases=30, seed=seed)
        assert report.ok, str(report)
        assert report.verdict == ("lossless but slower" if spec in SLOWER else "lossless")
        assert report.tv <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ft.rules(level="block"))
def test_every_registered_block_rule_is_what_it_claims(name):
    rule = Entry(name, "block", rule_class(name, level="block")).typical()
    report = ft.check(rule, cases=150, seed=1)
    assert report.ok, str(report)
    assert report.verdict in ("lossless", "lossy")


@pytest.mark.slow
@pytest.mark.parametrize("name", ft.rules(level="token"))
def test_every_registered_rule_is_what_it_claims(name):
    rule = Entry(name, "token", rule_class(name)).typical()
    report = ft.check(rule, cases=60, seed=1)
    assert report.ok, str(report)
    assert report.verdict in ("lossless", "lossless but slower", "lossy")
