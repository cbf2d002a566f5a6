"""Uniforms as unknowns: the law of what a program does with them, by cutting their interval."""

import math
import operator
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from fly_theory.conformance.exploration import Opaque, explore
from fly_theory.conformance.numbers import exact_array
from fly_theory.errors import VerifierError

A_THIRD = exact_array([Fraction(1, 3)], (1,))[0]


def law(program, **settings):
    found = Counter()
    for leaf in explore(program, **settings):
        found[leaf.value] += leaf.probability
    assert sum(found.values()) == 1
    return dict(found)


@pytest.mark.parametrize(
    ("program", "probability"),
    [
        (lambda u: u < 0.3, Fraction(3, 10)),
        (lambda u: u <= A_THIRD, Fraction(1, 3)),
        (lambda u: u > A_THIRD, Fraction(2, 3)),
        (lambda u: u >= np.float64(0.25), Fraction(3, 4)),
        (lambda u: operator.gt(0.3, u), Fraction(3, 10)),
        (lambda u: operator.ge(A_THIRD, u), Fraction(1, 3)),
        (lambda u: operator.lt(np.float64(0.25), u), Fraction(3, 4)),
        (lambda u: u * A_THIRD < Fraction(1, 4), Fraction(3, 4)),
        (lambda u: A_THIRD * u < 0.25, Fraction(3, 4)),
        (lambda u: u / 2 < 0.3, Fraction(3, 5)),
        (lambda u: 1 - u < 0.3, Fraction(3, 10)),
        (lambda u: -u + 1 <= 0.3, Fraction(3, 10)),
        (lambda u: +u - 0.5 > 0, Fraction(1, 2)),
        (lambda u: u + 0.5 < 1, Fraction(1, 2)),
        (lambda u: min(1, u * 2) < 1, Fraction(1, 2)),
        (lambda u: max(u, 0.5) == 0.5, Fraction(1, 2)),
        (lambda u: u < math.inf, 1),
        (lambda u: u > -math.inf, 1),
        (lambda u: u < 2, 1),
        (lambda u: not (u <= math.nan or u > math.nan), 1),
        (lambda u: bool(u), 1),
        (lambda u: u * 0 == 0, 1),
        (lambda u: int(u * 3) == 1, Fraction(1, 3)),
        (lambda u: int(u * 2 - 1) == 0, 1),
        (lambda u: math.floor(u * 2 - 1) == -1, Fraction(1, 2)),
        (lambda u: int(-3 * u) == -2, Fraction(1, 3)),
        (lambda u: math.trunc(u * 4) > 2, Fraction(1, 4)),
    ],
)
def test_one_comparison(program, probability):
    assert law(lambda rng: bool(program(rng.random()))).get(True, 0) == probability


def test_the_same_uniform_is_the_same_number():
    def program(rng):
        u = rng.random()
        return (u < 0.5, u < 0.25, u * 2 < 0.75)

    assert law(program) == {
        (True, True, True): Fraction(1, 4),
        (True, False, True): Fraction(1, 8),
        (True, False, False): Fraction(1, 8),
        (False, False, False): Fraction(1, 2),
    }


def test_a_uniform_is_compared_with_its_own_multiples():
    assert law(lambda rng: (u := rng.random()) < u) == {False: 1}
    assert law(lambda rng: (u := rng.random()) <= u) == {True: 1}
    assert law(lambda rng: (u := rng.random()) < 1 - u) == {True: Fraction(1, 2), False: Fraction(1, 2)}
    assert law(lambda rng: 3 * (u := rng.random()) > u + 1) == {True: Fraction(1, 2), False: Fraction(1, 2)}


def test_two_uniforms_are_independent():
    assert law(lambda rng: (rng.random() < 0.5) + (rng.random() < A_THIRD)) == {
        0: Fraction(1, 3),
        1: Fraction(1, 2),
        2: Fraction(1, 6),
    }


def test_choice_by_unnormalised_weights():
    assert law(lambda rng: rng.choice([1, 0, 3])) == {0: Fraction(1, 4), 2: Fraction(3, 4)}
    assert law(lambda rng: rng.choice(np.array([0.5, 0.25]))) == {0: Fraction(2, 3), 1: Fraction(1, 3)}
    assert law(lambda rng: rng.choice(iter([0, 5]))) == {1: 1}


@pytest.mark.parametrize("weights", [[0, 0], [1, -1], [math.nan, 1], [math.inf, 1], []])
def test_choice_refuses_weights_without_a_law(weights):
    with pytest.raises(VerifierError, match=r"gave rng\.choice the weights"):
        law(lambda rng: rng.choice(weights))


def test_inverse_cdf_with_numpy():
    row = exact_array(map(Fraction, ["1/6", "1/2", "1/3"]), (3,))
    right = {0: Fraction(1, 6), 1: Fraction(1, 2), 2: Fraction(1, 3)}
    assert law(lambda rng: int(np.searchsorted(np.cumsum(row), rng.random(), side="right"))) == right
    assert law(lambda rng: int(np.argmax(np.cumsum(row) > rng.random()))) == right
    assert law(lambda rng: int((rng.random() >= np.cumsum(row)).sum())) == right


def test_rounded_numbers_are_noticed():
    assert not any(leaf.rounded for leaf in explore(lambda rng: rng.random() < 0.5))
    assert all(leaf.rounded for leaf in explore(lambda rng: rng.random() < math.exp(-1)))
    assert all(leaf.rounded for leaf in explore(lambda rng: rng.choice([1, math.pi])))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda rng: math.log(rng.random()) < -1, "turned into a float"),
        (lambda rng: np.log(np.array([rng.random()], dtype=object)), "logarithm"),
        (lambda rng: rng.random() < rng.random(), "combined with a Uniform"),
        (lambda rng: rng.random() * rng.random() < 1, "combined with a Uniform"),
        (lambda rng: rng.random() < "a", "combined with a str"),
        (lambda rng: rng.random() * math.inf < 1, "inf or nan"),
        (lambda rng: rng.random() / 0 < 1, "inf or nan"),
        (lambda rng: int(rng.random() * 2**53), "integer part"),
        (lambda rng: [rng.random() < 0.5 for _ in range(13)], "more than"),
    ],
)
def test_other_uses_are_opaque(program, said):
    with pytest.raises(Opaque, match=said):
        explore(program)


def test_opaque_passes_through_a_broad_except():
    def program(rng):
        try:
            return math.log(rng.random())
        except Exception:
            return 0

    with pytest.raises(Opaque):
        explore(program)


def test_a_program_that_remembers_cannot_be_repeated():
    calls = []

    def program(rng):
        calls.append(0)
        return rng.choice([1] * max(1, 4 - len(calls)))

    with pytest.raises(Opaque, match="cannot be repeated"):
        explore(program)


@pytest.mark.parametrize(
    ("program", "probability"),
    [
        (lambda u: u < 0.3, Fraction(2, 4)),
        (lambda u: u <= 0.3, Fraction(2, 4)),
        (lambda u: u < 0.5, Fraction(2, 4)),
        (lambda u: u <= 0.5, Fraction(3, 4)),
        (lambda u: u <= 0, Fraction(1, 4)),
        (lambda u: u < 0, 0),
        (lambda u: 1 - u < 0.5, Fraction(1, 4)),
        (lambda u: 1 - u <= 0.5, Fraction(2, 4)),
        (lambda u: int(u * 3) == 0, Fraction(2, 4)),
    ],
)
def test_uniforms_on_a_grid(program, probability):
    """Against counting the four points 0, 1/4, 1/2, 3/4."""
    assert law(lambda rng: program(rng.random()), coin_bits=2).get(True, 0) == probability
    assert sum(bool(program(point / 4)) for point in range(4)) == 4 * probability


def test_the_way_to_a_leaf_is_kept():
    leaves = explore(lambda rng: (rng.random() < 0.25, rng.choice([1, 2])))
    assert sorted(leaf.coins for leaf in leaves) == [(0.125,), (0.125,), (0.625,), (0.625,)]
    assert {leaf.choices for leaf in leaves} == {(0,), (1,)}
    assert all(leaf.edges == ((Fraction(1, 4),),) for leaf in leaves)
    for leaf in leaves:
        assert leaf.value == (leaf.coins[0] < 0.25, leaf.choices[0])
        assert [branch.label for branch in leaf.branches] == ["uniform 0", "choice 0"]
        assert all(branch.line[0] == __file__ for branch in leaf.branches)
