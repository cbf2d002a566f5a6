"""Tables of next-token laws, and the law of the text they generate."""

import math
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.conformance.laws import pair_laws, read_table, text_law
from fly_theory.errors import DistributionError, ShapeError


def test_rows_by_the_last_tokens():
    row = read_table(["1/2", 0.3, "0.2"], "p")
    assert (row.depth, row.vocabulary) == (0, 3)
    assert row((0, 1)) == (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
    one = read_table([[1, 0], ["1/4", "3/4"]], "p")
    assert (one(()), one((0, 1))) == ((1, 0), (Fraction(1, 4), Fraction(3, 4)))
    two = read_table(np.array([[[1, 0], [0, 1]], [[0.5, 0.5], [0.25, 0.75]]]), "p")
    assert (two.depth, two(()), two((1,)), two((0, 1, 0))) == (2, (1, 0), (0, 1), (Fraction(1, 2), Fraction(1, 2)))


def test_rounding_and_dtype():
    assert read_table([0.1, 0.9], "p").rounding == 0
    softmax = read_table(ft.softmax(np.array([1.0, 2.0, 3.0])), "p")
    assert softmax.rounding == Fraction(1, 10**6)
    assert sum(softmax(())) == 1
    single = read_table(np.array([0.1, 0.9], dtype=np.float32), "p")
    assert (single.dtype, single.rounding, sum(single(()))) == ("float32", Fraction(1, 10**6), 1)
    half = np.array([0.1, 0.9], dtype=np.float16)
    assert sum(read_table(half, "p")(())) == 1
    told = read_table(half, "told", normalised=False)
    assert (told.rounding, told(())) == (0, tuple(map(Fraction, half.tolist())))


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        ([0.5, 0.4], DistributionError, "p sums to 0.9"),
        ([[0.5, 0.5], [0.5, 0.6]], DistributionError, r"p after \(1,\) sums to 1.1"),
        ([1.5, -0.5], DistributionError, "finite numbers >= 0"),
        ([math.nan, 1], DistributionError, "finite numbers >= 0"),
        ([None, 1], DistributionError, "finite numbers >= 0"),
        (["a", 1], DistributionError, "finite numbers >= 0"),
        ([[1, 0], [1]], ShapeError, "ragged"),
        ([[[[1]]]], ShapeError, "too many axes"),
        ([], ShapeError, "ragged"),
        (0.5, ShapeError, "ragged"),
    ],
)
def test_what_is_no_law(table, error, said):
    with pytest.raises(error, match=said):
        read_table(table, "p")


def test_unnormalised_rows_are_read_where_they_are_a_finding():
    assert read_table([0.25, 0.25], "told", normalised=False)(()) == (Fraction(1, 4), Fraction(1, 4))


def test_text_law_against_the_joint_law_of_the_target():
    pair = ft.MarkovPair(
        ft.exact([["1/2", "1/3", "1/6"], ["1/4", 0, "3/4"], [0, 1, 0]]),
        ft.exact([["1/3"] * 3] * 3),
        ft.exact([1, 0, 0]),
    )
    law, _ = pair_laws(pair)
    joint = ft.target_law(pair, 3)
    found = text_law(law, 3)
    assert sum(found.values()) == 1
    for text, mass in found.items():
        assert joint[text] == mass
    assert text_law(read_table(pair.target.tolist(), "p"), 3) == found


def test_a_text_ends_with_eos():
    law = read_table(["1/2", "1/2"], "p")
    assert text_law(law, 3, eos=1) == {
        (1,): Fraction(1, 2),
        (0, 1): Fraction(1, 4),
        (0, 0, 1): Fraction(1, 8),
        (0, 0, 0): Fraction(1, 8),
    }
