"""The golden pair in fractions."""

from fractions import Fraction

import pytest

import fly_theory as ft
from fly_theory import divergence

P, Q = ft.exact(["1/2", "3/10", "3/20", "1/20"]), ft.exact(["1/5", "1/10", "3/10", "2/5"])
POINT = ft.exact([0, 0, 0, 1])


def f(*texts: str) -> list[Fraction]:
    return [Fraction(text) for text in texts]


# spec, draft -> acceptance, out, TV(out, p), max out/p
GOLDEN = [
    ("lossless", Q, "1/2", f("1/2", "3/10", "3/20", "1/20"), "0", "1"),
    ("lenience:l=1/2", Q, "7/10", f("19/50", "11/50", "3/10", "1/10"), "1/5", "2"),
    ("lenience-substituted:l=0.5", Q, "7/10", f("5/13", "14/65", "3/10", "1/10"), "1/5", "2"),
    ("lenience-resample:l=0.5", Q, "7/10", f("7/20", "19/100", "69/200", "23/200"), "13/50", "23/10"),
    ("cos:w=0.5", Q, "3/4", f("7/20", "1/5", "9/40", "9/40"), "1/4", "9/2"),
    ("min-p:base=0.5", Q, "3/10", f("11/20", "31/100", "21/200", "7/200"), "3/50", "11/10"),
    ("typical:eps=0.09,delta=0.3", Q, "3/5", f("2/5", "11/50", "9/25", "1/50"), "21/100", "12/5"),
    ("truncated-min-p:base=0.5", Q, "3/10", f("5/8", "3/8", "0", "0"), "1/5", "5/4"),
    ("gated-ceiling:base=0.5,l=0.5", Q, "7/10", f("19/50", "11/50", "3/10", "1/10"), "1/5", "2"),
    ("sample-match:n=2", POINT, "39/400", f("19/40", "57/200", "57/400", "39/400"), "19/400", "39/20"),
    # from the definitions, worked by hand
    ("eta:eps=0.09", Q, "3/5", f("2/5", "11/50", "9/25", "1/50"), "21/100", "12/5"),
    ("truncated-eta:eps=0.09", Q, "87/190", f("10/19", "6/19", "3/19", "0"), "1/20", "20/19"),
    ("typical-argmax:eps=0.09,delta=0.3", Q, "3/5", f("3/5", "1/10", "3/10", "0"), "1/4", "2"),
    ("interpolation:l=0.5", Q, "3/4", f("7/20", "1/5", "9/40", "9/40"), "1/4", "9/2"),
    ("top-k-match:k=2", Q, "3/10", f("11/20", "31/100", "21/200", "7/200"), "3/50", "11/10"),
    ("fuzzy:divergence=js,t=0.1", Q, "1/2", f("1/2", "3/10", "3/20", "1/20"), "0", "1"),
    ("fuzzy:divergence=kl,t=0.6", Q, "1", f("1/5", "1/10", "3/10", "2/5"), "1/2", "8"),
    ("cos-contrastive:mu=1", Q, "197/490", f("20/49", "24/49", "4/49", "1/49"), "93/490", "80/49"),
]


@pytest.mark.parametrize(("spec", "draft", "acceptance", "out", "tv", "ratio"), GOLDEN, ids=[g[0] for g in GOLDEN])
def test_golden_values_as_fractions(spec, draft, acceptance, out, tv, ratio):
    rule = ft.rule(spec)
    found = rule.induced(P, draft)
    assert found.tolist() == out
    assert rule.acceptance(P, draft).item() == Fraction(acceptance)
    assert divergence.total_variation(P, found).item() == Fraction(tv)
    assert divergence.max_ratio(P, found).item() == Fraction(ratio)


def test_block_verification_keeps_eleven_ninths_and_the_token_rule_ten_ninths():
    third, two = Fraction(1, 3), Fraction(2, 3)
    pair = ft.MarkovPair(ft.exact([[third, two]] * 2), ft.exact([[two, third]] * 2), ft.exact([1, 0]))
    for spec, kept in (("block", Fraction(11, 9)), ("lossless", Fraction(10, 9))):
        rule = ft.block_rule(spec)
        law = ft.joint_law(rule, pair, draft_length=2, length=2)
        assert law.tolist() == [[third * third, third * two], [third * two, two * two]]
        from fly_theory.joint_law import expected_lengths

        assert expected_lengths(rule, pair, draft_length=2).kept.item() == kept
