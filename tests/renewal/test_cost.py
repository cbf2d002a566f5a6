"""Round times, speed-ups, second-level acceptance, and where published tables disagree with their own arithmetic."""

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.cost import Lookup, RoundTime
from fly_theory.errors import InvalidInput, ParameterError


def test_speedup_is_the_wall_time_factor_of_leviathan():
    alpha, c = 0.8, 0.05
    time = RoundTime(step=1, verify=1, draft=c)
    for k in (1, 4, 9):
        tokens = ft.renewal.expected_tokens(alpha, 0.0, 1, k)
        assert time.speedup(tokens, k) == pytest.approx((1 - alpha ** (k + 1)) / ((1 - alpha) * (k * c + 1)))


def comparison(source, setting):
    found = [c for c in ft.cost.compare_with_published() if (c.source, c.setting) == (source, setting)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("source", "setting", "published", "model"),
    [
        ("Table 5", "70B, acceleration on", 2.86, 2.88),
        ("Table 5", "70B, acceleration off", 2.69, 2.43),
        ("Table 9", "405B, K = 25, acceleration on", 5.15, 5.635),
        ("Table 9", "405B, K = 25, acceleration off", 5.15, 5.05),
        ("Table 4", "70B, theta = 1, acceleration on", 1.64, 2.26),
    ],
)
def test_published_speedups_beside_the_arithmetic_of_table_1(source, setting, published, model):
    row = comparison(source, setting)
    assert row.published == published
    assert row.model == pytest.approx(model, abs=5e-3)
    assert row.error == pytest.approx(row.model / row.published - 1)


def test_every_published_speedup_of_three_tables_is_compared():
    sources = [c.source for c in ft.cost.compare_with_published()]
    assert {s: sources.count(s) for s in set(sources)} == {"Table 4": 12, "Table 5": 2, "Table 9": 8}


@pytest.mark.parametrize(
    ("target", "length", "off", "on", "verify", "gate"),
    [("L3-70B", 15, 245.51, 197.45, 58.62, 0.45), ("L3-405B", 25, 428.3, 363.01, 200.97, 0.57)],
)
def test_table_1_is_reproduced_with_and_without_acceleration(target, length, off, on, verify, gate):
    assert ft.cost.fly_table1(target, accelerated=False)(length) == pytest.approx(off + verify + gate)
    assert ft.cost.fly_table1(target, accelerated=True)(length) == pytest.approx(on + verify + gate)


def calls_by_simulation(lookup, length, rng, trials):
    law = np.array(lookup.tokens_law())
    total = 0
    for _ in range(trials):
        written = 0
        while written < length:
            written += 1 + rng.choice(len(law), p=law)
            total += 1
    return total / trials


def test_lookup_calls():
    assert Lookup(acceptance=0, length=6).calls(15) == pytest.approx(15)
    assert Lookup(acceptance=1, length=6).calls(15) == pytest.approx(3)
    assert Lookup(acceptance=0.7, length=6, hit=0).calls(15) == pytest.approx(15)
    assert Lookup(acceptance=0.5, length=1).calls(2) == pytest.approx(1.5)
    lookup = Lookup(acceptance=0.6, length=4, hit=0.5)
    assert sum(lookup.tokens_law()) == pytest.approx(1)
    # 4,000 trials with a standard deviation below 3: six standard errors are below 0.3
    assert lookup.calls(12) == pytest.approx(calls_by_simulation(lookup, 12, np.random.default_rng(3), 4000), abs=0.3)


def test_long_drafts_take_the_mean_tokens_a_call():
    alpha, length = 0.4, 5
    lookup = Lookup(acceptance=alpha, length=length)
    per_call = (1 - alpha ** (length + 1)) / (1 - alpha)
    assert lookup.calls(1001) - lookup.calls(1000) == pytest.approx(1 / per_call, rel=1e-9)


def test_implied_lookup_explains_the_gain():
    lookup = ft.cost.implied_lookup(245.51 / 197.45, 15)
    assert 15 / lookup.calls(15) == pytest.approx(245.51 / 197.45)
    assert 0.15 < lookup.acceptance < 0.25


def test_the_draft_length_that_pays_balances_tokens_and_time():
    time = ft.cost.fly_table1("L3-70B", accelerated=True)
    process = ft.renewal.iid(0.9265, 0.91, 6, 15)
    best = ft.renewal.optimal_draft_length(process, time, longest=40)
    by_hand = [ft.renewal.expected_tokens(0.9265, 0.91, 6, k) / time(k) for k in range(1, 41)]
    np.testing.assert_allclose(best.rates, by_hand)
    assert best.rates[best.draft_length - 1] == max(by_hand)
    assert 1 < best.draft_length < 40
    dear = RoundTime(step=1, verify=1, draft=10)
    assert ft.renewal.optimal_draft_length(process, dear).draft_length == 1


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="verify=0"):
        RoundTime(step=1, verify=0, draft=1)
    with pytest.raises(ParameterError, match="draft=-1"):
        RoundTime(step=1, verify=1, draft=-1)
    with pytest.raises(ParameterError, match=r"acceptance=1\.5"):
        Lookup(acceptance=1.5, length=3)
    with pytest.raises(InvalidInput, match="draft_length=0"):
        RoundTime(step=1, verify=1, draft=1)(0)
    with pytest.raises(InvalidInput, match="target='L3-8B'"):
        ft.cost.fly_table1("L3-8B", accelerated=True)
    with pytest.raises(InvalidInput, match=r"gain=9 is outside \[1, 5\]"):
        ft.cost.implied_lookup(9, 15)
