"""Counters that say something else than what happened."""

import math
from fractions import Fraction

import pytest

import fly_theory as ft
from fly_theory.conformance.metrics import Step, check_log_probs, check_metrics


def step(flags, cut=0):
    passed = tuple(flag == "1" for flag in flags)
    kept = len(flags.split("0")[0])
    return Step(passed, kept + 1 - cut, cut)


def only(results, name):
    return next(result for result in results if result.name == name)


def test_accepted_counter_sums_past_the_first_rejection():
    result = only(check_metrics([[step("1011")]], {"accepted": 3}), "accepted")
    assert (result.outcome, result.witness.got, result.witness.expected) == ("refuted", 3, 1)
    assert only(check_metrics([[step("1011")]], {"accepted": 1}), "accepted").outcome == "held"


@pytest.mark.parametrize(("reported", "outcome"), [(1.0, "refuted"), (2.0, "held"), (3.0, "refuted")])
def test_bonus_token_left_out_counted_or_counted_twice(reported, outcome):
    request = [step("11"), step("0"), step("10")]
    result = only(check_metrics([request], {"tokens_per_call": reported}), "tokens_per_call")
    assert result.outcome == outcome
    if reported == 1.0:
        assert "1.0 is accepted_per_call" in result.detail


def test_rate_with_the_bonus_token_in_its_numerator():
    results = check_metrics([[step("111")]], {"acceptance_rate": 4 / 3})
    assert only(results, "acceptance rate within [0, 1]").outcome == "refuted"
    assert only(results, "acceptance_rate").witness.expected == 1


def test_drafted_counter_that_includes_the_root():
    assert only(check_metrics([[step("110")]], {"drafted": 4}), "drafted").witness.expected == 3


def test_pooled_mean_and_mean_of_means_rank_differently():
    x = [[step("11")] * 30, [step("1")] * 6]
    y = [[step("11"), step("1")] * 18, [step("111")] * 3]
    assert [sum(s.emitted for s in request) for request in x] == [90, 12]
    assert [sum(s.emitted for s in request) for request in y] == [90, 12]
    figures = {}
    for name, requests, pooled, mean in (("x", x, "17/6", "5/2"), ("y", y, "34/13", "13/4")):
        swapped = check_metrics(requests, {"tokens_per_call": float(Fraction(mean))})
        result = only(swapped, "tokens_per_call")
        assert (result.outcome, result.witness.expected) == ("refuted", Fraction(pooled))
        assert "is mean_tokens_per_call" in result.detail
        figures[name] = Fraction(pooled), Fraction(mean)
        right = {"tokens_per_call": float(figures[name][0]), "mean_tokens_per_call": float(figures[name][1])}
        assert {each.outcome for each in check_metrics(requests, right)} == {"held"}
    assert figures["x"][0] > figures["y"][0]
    assert figures["x"][1] < figures["y"][1]


def test_rejected_drafts_leave_the_denominator():
    result = only(check_metrics([[step("10")]], {"acceptance_rate": 1.0}), "acceptance_rate")
    assert (result.outcome, result.witness.expected) == ("refuted", Fraction(1, 2))


def test_log_probability_zero_for_verified_tokens():
    rows = [[0.25, 0.75], [0.5, 0.5]]
    result = check_log_probs([0, 1], rows, [0.0, math.log(0.5)])
    assert result.outcome == "refuted"
    assert result.witness.expected == pytest.approx(-1.386, abs=1e-3)
    assert check_log_probs([0, 1], rows, [math.log(0.25), math.log(0.5)]).outcome == "held"
    assert check_log_probs([1], [[1.0, 0.0]], [-math.inf]).outcome == "held"


def test_emitted_tokens_of_each_step():
    name = "emitted = accepted + 1, or accepted where cut, in each step"
    assert only(check_metrics([[step("11", cut=2)]], {"accepted": 1, "emitted": 1}), name).outcome == "held"
    wrong = check_metrics([[Step((True, False), 3)]], {})
    assert (only(wrong, name).witness.got, only(wrong, name).witness.expected) == (3, 2)


def test_figures_are_known_by_name():
    with pytest.raises(ft.errors.UnknownName, match="Did you mean 'acceptance_rate'"):
        check_metrics([[step("1")]], {"acceptence_rate": 1.0})
    with pytest.raises(ft.errors.InvalidInput, match="at least one step"):
        check_metrics([[]], {})
