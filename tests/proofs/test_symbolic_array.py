"""Arrays of terms: what rules can do with them, and what they refuse."""

from fractions import Fraction

import pytest
import z3

import fly_theory as ft
from fly_theory.arrays import array_namespace, constant, device, normalise, one_hot, positive_part, scalar
from fly_theory.errors import SymbolicError
from proofs.derivation import Derivation
from proofs.symbolic import SymbolicArray, VocabularySize


@pytest.fixture
def d():
    return Derivation()


@pytest.fixture
def pair(d):
    return d.pair()


def same(left: SymbolicArray, right: SymbolicArray) -> bool:
    """Whether two terms are equal whatever their symbols are."""
    solver = z3.Solver()
    solver.add(left.term != right.term)
    return solver.check() == z3.unsat


def test_rules_run_unchanged(pair):
    p, q = pair
    accepted, residual = ft.rule("lenience:l=0.5").verdict(p, q)
    xp = array_namespace(p, q)
    assert same(accepted, xp.where(q <= 2 * p, q, 2 * p))
    assert same(residual, xp.maximum(p - q, 0 * p))
    assert accepted.shape == p.shape == (VocabularySize(),)
    assert accepted.dtype == "real"


def test_a_truth_value_is_refused_with_what_to_write(pair):
    p, q = pair
    for ask in (bool, float, int):
        with pytest.raises(SymbolicError, match=r"xp\.where\(condition, a, b\)"):
            ask((p < q) if ask is bool else p)
    with pytest.raises(SymbolicError, match=r"xp\.where"):
        max(p[..., 0], q[..., 0])


def test_floats_are_refused_and_parameters_are_not(pair):
    p, _ = pair
    with pytest.raises(SymbolicError, match=r"scalar\(value, p\)"):
        p * 0.5
    assert same(p * scalar(0.1, p), p / 10)
    assert same(constant(0.25, p) * 4, constant(1, p))
    assert device(p) is p.world


def test_the_size_of_the_vocabulary_is_refused(pair):
    p, _ = pair
    size = p.shape[-1]
    assert str(size) == "V"
    assert size == p.shape[-1]
    assert not size < 1
    for use in (lambda: size + 1, lambda: size < 3, lambda: min(3, size), lambda: 1 / size, lambda: -size):
        with pytest.raises(SymbolicError, match="size of the vocabulary"):
            use()


def test_the_vocabulary_has_no_order(pair):
    p, _ = pair
    xp = array_namespace(p)
    for use in (lambda: p[..., 1:], lambda: p[..., 3], lambda: xp.flip(p, axis=-1), lambda: xp.concat([p, p], axis=-1)):
        with pytest.raises(SymbolicError):
            use()
    with pytest.raises(SymbolicError, match=r"xp\.sort"):
        xp.sort(p)
    with pytest.raises(SymbolicError, match="same at every token"):
        xp.sum(xp.ones_like(p), axis=-1)


def test_sums_are_linear_and_distributions_sum_to_one(d, pair):
    p, q = pair
    xp, l = array_namespace(p), d.number("l")
    assert same(xp.sum(3 * p - q / 2, axis=-1), constant(Fraction(5, 2), p))
    smaller = xp.minimum(p, q)
    assert same(xp.sum(l * smaller + q, axis=-1), l * xp.sum(smaller, axis=-1) + 1)
    assert same(xp.sum(p * q - q * p, axis=-1), 0 * l)
    assert xp.sum(p, axis=-1).shape == ()
    assert xp.sum(p, axis=-1, keepdims=True).shape == (1,)


def test_sums_over_a_set_and_off_it_make_the_whole(d, pair):
    p, _ = pair
    xp, a = array_namespace(p), d.subset("A")
    on, off = xp.where(a, p, 0 * p), xp.where(a, 0 * p, p)
    assert same(xp.sum(on, axis=-1) + xp.sum(off, axis=-1), constant(1, p))
    condition = d.number("l") > 0
    assert same(xp.sum(xp.where(condition, p, on), axis=-1), xp.where(condition, 1, xp.sum(on, axis=-1)))


def test_one_token_counts_once(pair):
    p, q = pair
    xp = array_namespace(p)
    best = xp.argmax(p, axis=-1)
    assert same(xp.sum(one_hot(best, p), axis=-1), constant(1, p))
    assert same(xp.sum(one_hot(best, p) * q, axis=-1), q.at(best.term))


def test_equal_sums_have_one_symbol(pair):
    p, q = pair
    xp = array_namespace(p)
    one, other = xp.sum(xp.abs(p - q), axis=-1), ft.divergence.total_variation(p, q)
    assert same(one / 2, other)


def test_quotients_are_symbols_with_their_meaning(d, pair):
    p, q = pair
    mass = d.total(positive_part(p - q))
    assert same(p / 2, p * Fraction(1, 2))
    assert same(p**2 * p**-1, p * p * (1 / p))
    d.suppose("the excess has mass", mass > 0)
    d.lemma("a quotient undoes its divisor", (p / mass) * mass == p, normalise(positive_part(p - q)) >= 0)
    d.lemma("normalised mass is one", d.total(normalise(positive_part(p - q))) == 1)


def test_batch_axes_are_spelled_out(d):
    xp = array_namespace(d.row("p"))
    rows = xp.stack([d.row("p0"), d.row("p1")], axis=-2)
    assert rows.shape == (2, VocabularySize())
    assert rows[0, :].shape == (VocabularySize(),)
    assert rows[..., :-1, :].shape == (1, VocabularySize())
    sums = xp.sum(rows, axis=-1)
    assert sums.shape == (2,)
    assert xp.cumulative_prod(sums, axis=-1, include_initial=True).shape == (3,)
    taken = xp.take_along_axis(rows, SymbolicArray(d.world, d.token("x"))[None, None], axis=-1)
    assert taken.shape == (2, 1)
    assert same(taken[1, 0], d.row("p1").at(d.token("x")))


def test_an_explicit_vocabulary_is_read_by_the_same_rules(d):
    from proofs.finite import row

    p, q = row(d.world, [Fraction(1, 2), Fraction(1, 2)]), row(d.world, [0, 1])
    out = ft.rule("lenience:l=0.5").induced(p, q)
    assert same(out[0], constant(0, p))
    assert same(out[1], constant(1, p))
