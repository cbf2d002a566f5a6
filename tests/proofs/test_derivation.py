"""The rules of proof: what they show, what they refuse, and that the wrong thing is not shown."""

import pytest

from fly_theory.arrays import positive_part
from fly_theory.errors import InvalidInput
from proofs.derivation import Derivation, implies
from proofs.steps import Unproved


@pytest.fixture
def d():
    return Derivation()


def test_a_claim_about_every_token_follows_or_does_not(d):
    p, q = d.pair()
    d.lemma("the excess is part of p", positive_part(p - q) <= p)
    with pytest.raises(Unproved, match="the larger: it does not follow"):
        d.lemma("the larger", p >= q)


def test_order_is_lifted_to_sums(d):
    p, q = d.pair()
    d.sum_lemma("excess and shortfall", positive_part(p - q) <= p)
    d.goal("at most one", d.total(positive_part(p - q)) <= 1)


def test_multipliers_are_found(d):
    p, q = d.pair()
    d.sum_lemma("balance", positive_part(p - q) == positive_part(q - p), modulo=[p - q])
    d.goal("both excesses are equal", d.total(positive_part(p - q)) == d.total(positive_part(q - p)))
    with pytest.raises(Unproved, match="for no multiple of what sums to zero"):
        d.sum_lemma("too much", 2 * positive_part(p - q) <= positive_part(q - p), modulo=[p - q])


def test_an_order_of_sums_is_not_an_order_of_terms(d):
    p, q = d.pair()
    d.goal("sums", d.total(p) == d.total(q))
    with pytest.raises(Unproved):
        d.goal("terms", p == q)


def test_a_sum_apart_from_a_token_says_nothing_of_the_token(d):
    p, q = d.pair()
    t = d.token("t")
    d.suppose("p is all at t", p.at(t) == 1)
    d.sum_lemma("q off t", implies(p.at(t) > 0, 0 * p <= q), apart_from=t)
    d.goal("q at t is at most one", q.at(t) <= 1)
    with pytest.raises(Unproved):
        d.sum_lemma("p vanishes at t too", p <= 0 * p)
    d.sum_lemma("p vanishes off t", p <= 0 * p, apart_from=t)


def test_two_tokens_share_one_unit_of_mass(d):
    p, _ = d.pair()
    t, w = d.token("t"), d.token("w")
    d.suppose("t has most of the mass", 4 * p.at(t) > 3)
    with pytest.raises(Unproved):
        d.lemma("every token has little", 4 * p.at(w) < 1)
    d.sum_lemma("every other token has little", 4 * p.at(w) * p.at(w) <= p.at(w), over=w, apart_from=t)


def test_a_token_that_was_supposed_something_of_is_not_summed_over(d):
    p, q = d.pair()
    t = d.token("t")
    d.suppose("t is likelier under p", p.at(t) > q.at(t))
    with pytest.raises(InvalidInput, match="about that token alone"):
        d.sum_lemma("so everywhere", q.at(t) <= p.at(t), over=t)
    with pytest.raises(InvalidInput, match="about that token alone"):
        d.mass("so everywhere", p.at(t) - q.at(t), over=t)


def test_a_condition_on_the_token_cannot_be_summed_under(d):
    p, q = d.pair()
    with pytest.raises(InvalidInput, match="depends on the token"):
        d.sum_lemma("where p exceeds q", implies(p > q, q <= p))
    with pytest.raises(InvalidInput, match="neither an equation"):
        d.sum_lemma("strictly", q < p + q)


def test_hypotheses_that_contradict_each_other_prove_nothing(d):
    p, q = d.pair()
    d.sum_lemma("products are small", p * q <= p)
    d.suppose("but they are not", d.total(p * q) > 1)
    d.goal("anything", p == q)
    with pytest.raises(Unproved, match="contradicts itself"):
        d.finish()


def test_a_division_by_zero_is_noticed(d):
    p, q = d.pair()
    d.lemma("harmless so far", p / q == p / q)
    with pytest.raises(Unproved, match="no divisor is zero"):
        d.finish()


def test_induction_needs_its_step(d):
    p = d.row("p")
    power, n = (1 - p) ** d.number("n"), d.number("n")

    def show(claim):
        one = d.number("n") * 0 + 1
        d.induction("powers", claim, start=(1 - p, one), step=lambda x, k: (x * (1 - p), k + 1), at=(power, n))

    show(lambda x, k: (x >= 0) & (x <= 1) & (k >= 1))
    with pytest.raises(Unproved, match="from one step to the next"):
        show(lambda x, k: x == 1 - p)


def test_names_are_unique(d):
    p, q = d.pair()
    d.name(m=p + q)
    d.name(m=p - q)
    assert [name for name, _ in d.part.names] == ["m", "m_2"]
    d.function("m_3")
    d.name(m_3=p * q)
    assert "m_3" not in [name for name, _ in d.part.names]


def test_two_symbols_of_one_name_are_refused(d):
    p, q = d.pair()
    d.name(m=p + q)
    m = d.function("m")
    with pytest.raises(InvalidInput, match=r"called 'm\[v\]'"):
        d.lemma("confused", m == p + q)


def test_an_attempt_that_fails_leaves_nothing_behind(d):
    p, q = d.pair()

    def wrong():
        d.lemma("fine", p >= 0)
        d.lemma("not fine", p >= q)

    assert d.attempt(wrong).text == "not fine"
    assert (d.steps, d.obligations) == ([], [])
    assert d.attempt(lambda: d.lemma("fine", p >= 0)) is None
    assert len(d.steps) == 1


def test_logarithms_increase_and_undo_exponentials(d):
    from fly_theory.arrays import array_namespace

    p, q = d.pair()
    xp = array_namespace(p)
    a, b = p + 1, q + 1
    d.lemma("increasing", implies(a <= b, xp.log(a) <= xp.log(b)))
    d.lemma("undone", implies(xp.exp(q) <= a, q <= xp.log(a)))
    d.lemma("roots", xp.sqrt(a) * xp.sqrt(a) == a, xp.sqrt(a) >= 1)
    with pytest.raises(Unproved):
        d.lemma("not known", xp.log(a) <= p)
