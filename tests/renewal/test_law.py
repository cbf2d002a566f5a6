"""The renewal law against an oracle that scans every tape of matches and gates."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import InvalidInput, ParameterError

F = Fraction


def kept_by_scanning(matches, gates, window, following):
    """Draft tokens kept, straight from the definition."""
    length = len(matches)
    j = 0
    while j < length:
        if not matches[j]:
            inside = j + 1 + window <= length
            if not (gates[j] and inside and all(matches[j + 1 : j + 1 + following])):
                return j
        j += 1
    return length


def law_by_enumeration(first, after_match, after_mismatch, gate, window, length, following):
    law = [F(0)] * (length + 1)
    for matches in product((True, False), repeat=length):
        probability, hit = F(1), first
        for match in matches:
            probability *= hit if match else 1 - hit
            hit = after_match if match else after_mismatch
        for gates in product((True, False), repeat=length):
            weight = probability
            for is_open in gates:
                weight *= gate if is_open else 1 - gate
            law[kept_by_scanning(matches, gates, window, following)] += weight
    return law


SETTINGS = [(w, k, f) for k in (1, 2, 5) for w in range(k + 2) for f in {max(w - 1, 0), w}]


@pytest.mark.parametrize(("window", "length", "following"), SETTINGS)
def test_law_is_the_enumeration_of_all_tapes_exactly(window, length, following):
    for first, after_match, after_mismatch, gate in [
        (F(9, 10), F(9, 10), F(9, 10), F(3, 4)),
        (F(1, 3), F(7, 8), F(2, 5), F(1, 2)),
        (F(0), F(1), F(1), F(1)),
    ]:
        process = ft.renewal.markov(after_match, after_mismatch, gate, window, length, first=first, following=following)
        expected = law_by_enumeration(first, after_match, after_mismatch, gate, window, length, following)
        assert list(process.length_law()) == expected
        assert sum(expected) == 1


def test_floats_agree_with_fractions_to_1e_12():
    for window, length in product((0, 1, 3, 6), (1, 7, 15, 30)):
        exact = ft.renewal.iid(F(93, 100), F(91, 100), window, length)
        floats = ft.renewal.iid(0.93, 0.91, window, length)
        np.testing.assert_allclose(floats.length_law(), exact.length_law().astype(float), rtol=0, atol=1e-12)
        assert floats.expected_tokens() == pytest.approx(float(exact.expected_tokens()), abs=1e-12)
        assert floats.variance() == pytest.approx(float(exact.variance()), abs=1e-10)


@pytest.mark.parametrize("released", [False, True])
def test_expected_tokens_obey_the_backward_recursion(released):
    a, g = F(4, 5), F(2, 3)
    for window, length in product(range(1, 6), range(1, 9)):
        hits = window - 1 if released else window
        e = {length + 1: F(length + 1)}
        for i in range(length, 0, -1):
            late = i + window > length
            forgiven = i if late else a**hits * e[i + hits + 1] + (1 - a**hits) * i
            e[i] = a * e[i + 1] + (1 - a) * ((1 - g) * i + g * forgiven)
        assert ft.renewal.expected_tokens(a, g, window, length, following=hits) == e[1]


def test_closed_gate_and_wide_window_are_strict():
    a = F(7, 10)
    for length in (1, 4, 9):
        strict = (1 - a ** (length + 1)) / (1 - a)
        assert ft.renewal.expected_tokens(a, F(0), 3, length) == strict
        assert ft.renewal.expected_tokens(a, F(1), length, length) == strict
        assert ft.renewal.expected_tokens(a, F(1), length + 5, length) == strict


def test_no_window_forgives_at_every_open_gate():
    a, g, length = F(7, 10), F(2, 5), 6
    stands = a + (1 - a) * g
    assert ft.renewal.expected_tokens(a, g, 0, length) == (1 - stands ** (length + 1)) / (1 - stands)


def test_markov_with_equal_rows_is_iid():
    iid = ft.renewal.iid(F(3, 4), F(1, 2), 2, 6)
    assert ft.renewal.markov(F(3, 4), F(3, 4), F(1, 2), 2, 6) == iid


def test_markov_starts_in_its_stationary_law():
    process = ft.renewal.markov(F(9, 10), F(1, 2), F(1), 1, 4)
    assert process.first == F(5, 6)
    assert process.first == process.first * process.after_match + (1 - process.first) * process.after_mismatch


def test_more_matches_open_gates_narrow_windows_and_long_drafts_never_shorten_a_round():
    for match, gate, window, length in product((0.3, 0.9), (0.0, 0.5, 1.0), range(7), range(1, 12)):
        effects = ft.renewal.iid(match, gate, window, length).effects()
        assert effects.match >= 0
        assert effects.gate >= 0
        assert effects.window <= 1e-12
        assert effects.draft_length >= -1e-12


def test_effects_are_the_slopes_and_the_differences():
    h = 1e-6
    expected = ft.renewal.expected_tokens
    effects = ft.renewal.iid(0.9, 0.6, 3, 10).effects()
    assert effects.match == pytest.approx(
        (expected(0.9 + h, 0.6, 3, 10) - expected(0.9 - h, 0.6, 3, 10)) / (2 * h), rel=1e-7
    )
    assert effects.gate == pytest.approx(
        (expected(0.9, 0.6 + h, 3, 10) - expected(0.9, 0.6 - h, 3, 10)) / (2 * h), rel=1e-7
    )
    assert effects.window == pytest.approx(expected(0.9, 0.6, 4, 10) - expected(0.9, 0.6, 3, 10), abs=1e-12)
    assert effects.draft_length == pytest.approx(expected(0.9, 0.6, 3, 11) - expected(0.9, 0.6, 3, 10), abs=1e-12)


def test_kept_on_tapes_is_the_scan():
    rng = np.random.default_rng(4)
    for window, length in product(range(5), range(1, 9)):
        matches, gates = rng.random((2, 200, length)) < np.array([0.7, 0.8])[:, None, None]
        for following in {window, max(window - 1, 0)}:
            scanned = [kept_by_scanning(m, g, window, following) for m, g in zip(matches, gates, strict=True)]
            np.testing.assert_array_equal(ft.renewal.kept(matches, gates, window, following=following), scanned)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((1.2, 0.5, 2, 4), "first=1.2"),
        ((float("nan"), 0.5, 2, 4), "first=nan"),
        ((0.5, -0.1, 2, 4), "gate=-0.1"),
        ((0.5, 0.5, -1, 4), "window=-1"),
        ((0.5, 0.5, 2, 0), "draft_length=0"),
        ((0.5, 0.5, 2.0, 4), "window=2.0"),
    ],
)
def test_bad_input_is_named(arguments, says):
    with pytest.raises(ParameterError, match=says):
        ft.renewal.expected_tokens(*arguments)


def test_more_hits_than_the_window_is_wide_are_refused():
    with pytest.raises(ParameterError, match=r"following=3 is outside 0\.\.window=2"):
        ft.renewal.expected_tokens(0.5, 0.5, 2, 4, following=3)


def test_a_chain_without_a_unique_stationary_law_asks_for_its_first_match():
    with pytest.raises(InvalidInput, match="give `first`"):
        ft.renewal.markov(1, 0, 0.5, 2, 4)
    assert ft.renewal.markov(1, 0, F(1, 2), 0, 1, first=F(1, 2)).expected_tokens() == F(7, 4)
