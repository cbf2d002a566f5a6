"""The golden pair in fractions, and the rule x interpreter table for the exact column."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory import divergence
from fly_theory.errors import ExactnessError
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class

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


# Pairs with zeros, ties, a point mass, disjoint supports, equal rows.
PAIRS = [
    (["1/2", "3/10", "3/20", "1/20"], ["1/5", "1/10", "3/10", "2/5"]),
    (["1/3", "1/3", "1/3", 0], ["1/3", 0, "1/3", "1/3"]),
    ([0, 1, 0, 0], ["1/4", "1/4", "1/4", "1/4"]),
    (["1/2", "1/2", 0, 0], [0, 0, "3/4", "1/4"]),
    (["2/7", "2/7", "2/7", "1/7"], ["2/7", "2/7", "2/7", "1/7"]),
]


def typical(name):
    """A registered token-level rule at each of the typical values of its parameters."""
    cls = rule_class(name)
    choices = [p.typical or (p.default,) for p in parameters(cls)]
    return [
        cls(**{p.name: c[i % len(c)] for p, c in zip(parameters(cls), choices, strict=True)})
        for i in range(max((len(c) for c in choices), default=1))
    ]


def everything(rule, p, q):
    """All a rule says about a pair, as Fractions."""
    tokens = np.flatnonzero(np.asarray(q, dtype=float))
    residuals = [rule.residual_after(p, q, np.asarray(x)).tolist() for x in tokens]
    accepted, residual = rule.verdict(p, q)
    return rule.induced(p, q).tolist(), accepted.tolist(), residual.tolist(), residuals


def is_exact_everywhere(rule):
    try:
        for p, q in PAIRS:
            everything(rule, ft.exact(p), ft.exact(q))
    except ExactnessError:
        return False
    return True


@pytest.mark.parametrize("name", ft.rules(level="token"))
def test_the_exact_column_of_the_interpreter_table(name):
    """A declared yes runs and gives Fractions; a declared no has a reason, and does not run."""
    declared = [rule for rule in typical(name) if Interpreter.EXACT in rule.unreadable]
    for rule in typical(name):
        if rule not in declared:
            assert is_exact_everywhere(rule), f"{rule.spec} is declared readable and is not"
    if declared:
        assert declared[0].unreadable[Interpreter.EXACT].strip()
        assert not all(map(is_exact_everywhere, declared)), f"{name} is declared unreadable and can be read"


READABLE = [
    rule for name in ft.rules(level="token") for rule in typical(name) if Interpreter.EXACT not in rule.unreadable
]


@pytest.mark.parametrize("rule", READABLE, ids=lambda rule: rule.spec)
def test_exact_and_float64_agree(rule):
    for pair in PAIRS:
        p, q = (ft.exact(row) for row in pair)
        out, accepted, residual, _ = everything(rule, p, q)
        assert sum(out) == 1
        floats = [np.asarray(x, dtype=float) for x in (p, q)]
        verdict = rule.verdict(*floats)
        np.testing.assert_allclose(np.array(accepted, dtype=float), verdict.accepted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.array(residual, dtype=float), verdict.residual, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.array(out, dtype=float), rule.induced(*floats), rtol=0, atol=1e-12)
