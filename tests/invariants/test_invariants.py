"""Every invariant, alone: a rule that breaks it with the exact wrong value, and one that does not."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory import claims, invariants
from fly_theory.errors import InvalidInput, UnknownName
from fly_theory.invariants import STRUCTURAL, Case, RuleFailure, Violation, of_claim
from tests.invariants import faulty_rules as faulty

HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
P, Q = ["1/2", "1/2"], ["3/4", "1/4"]
SKEWED = ["1/2", "1/3", "1/6"], ["1/6", "1/2", "1/3"]
SPREAD = ["1/3", "1/3", "1/3"], [1, 0, 0]
SOUND = faulty.Sound()
ROWS = "arrays of the shape of p and q"


def halved(p, q):
    return p * HALF if getattr(p, "is_exact", False) else p * 0.5


# invariant, the rule that breaks it, the pair, what is found wrong
BROKEN = [
    (invariants.Answers(), faulty.Crashes(), ([0, 1], P), ("the answer", "RuntimeError: no luck", ROWS)),
    (invariants.Answers(), faulty.WrongShape(), (P, Q), ("the answer", "accepted has shape (1,), not (2,)", ROWS)),
    (
        invariants.Answers(),
        faulty.SamplerCrashes(),
        (P, Q),
        ("the answer", "IndexError: no residual", ROWS),
    ),
    (
        invariants.Answers(),
        faulty.ForgetsToRedraw(),
        (P, Q),
        None,
    ),
    (invariants.MassValid(), faulty.AcceptsMoreThanDrafted(), (P, Q), ("accepted", (1, HALF), (3 * QUARTER, QUARTER))),
    (invariants.MassValid(), faulty.NegativeAccepted(), (P, Q), ("accepted", (-QUARTER, QUARTER), (0, 0))),
    (invariants.MassValid(), faulty.NegativeResidual(), (P, Q), ("residual", (-QUARTER, QUARTER), (0, 0))),
    (invariants.MassValid(), faulty.EmptyResidual(), (P, Q), ("residual", (0, 0), "mass, since 1/4 is rejected")),
    (invariants.Normalised(), faulty.NotRenormalised(), (P, Q), ("sum of out", 13 * QUARTER**2, 1)),
    (invariants.Normalised(), faulty.Negative(), ([0, 1], P), ("out", (-HALF, 3 * HALF), (0, 0))),
    (invariants.Lossless(), ft.rule("lenience:l=1/2"), (P, [1, 0]), ("out", (1, 0), (HALF, HALF))),
    (invariants.Induces("p/2", halved), SOUND, (P, Q), ("out", (HALF, HALF), (QUARTER, QUARTER))),
    (invariants.Ceiling(Fraction(3, 2)), ft.rule("lenience:l=1/2"), (P, [1, 0]), ("out", (1, 0), (3 * QUARTER,) * 2)),
    (invariants.AcceptsMost(2), ft.rule("lossless"), (P, [1, 0]), ("acceptance", HALF, 1)),
    (invariants.SupportWithin("q", lambda p, q: q > 0), SOUND, (P, [1, 0]), ("out", (HALF, HALF), (1, 0))),
    (invariants.OnTheLine(), ft.rule("lenience-resample:l=1"), (P, [1, 0]), ("TV(out, p)", QUARTER, 0)),
    (invariants.FixedPoint(), ft.rule("sample-match"), (P, Q), ("acceptance", HALF, 1)),
    (
        invariants.DivergenceBound("total_variation", QUARTER, "1/4"),
        ft.rule("cos:w=1"),
        (P, [1, 0]),
        ("total_variation(p, out)", 0.5, 0.25),
    ),
    (invariants.ReducesTo("lossless", {"share": 1}), faulty.Greedy(), (P, Q), ("acceptance", 1, 3 * QUARTER)),
    (
        invariants.MonotoneIn("share", "smaller"),
        faulty.Greedy(),
        (P, Q),
        ("acceptance when looser", HALF, 1),
    ),
    (
        invariants.SamplerAgrees(),
        faulty.OffTheClosedForm(),
        (P, Q),
        ("law of sample", (5 * QUARTER * HALF, 3 * QUARTER * HALF), (HALF, HALF)),
    ),
    (invariants.SamplerAgrees(), faulty.KeepsTheImpossible(), ([1, 0], [1, 0]), ("keep", (1, 1), (1, 0))),
    (invariants.SamplerAgrees(), faulty.OneUniformForBoth(), SPREAD, ("sample", 2, 1)),
    (invariants.IndependentUniforms(), faulty.OneUniformForBoth(), SPREAD, ("sample", 1, 2)),
    (invariants.CoinEdges(), faulty.KeepsAtTheEdge(), ([1, 0], P), ("sample", 1, 0)),
    (invariants.CoinEdges(), faulty.CoinTheOtherWay(), (P, Q), ("sample", 0, 1)),
    (
        invariants.Equivariant(),
        faulty.LikesTokenZero(),
        (["1/3", "2/3"], ["3/4", "1/4"]),
        ("out", (2 * THIRD, THIRD), (QUARTER, 3 * QUARTER)),
    ),
    (invariants.IndependentRows(), faulty.CountsTokens(), (P, Q), None),
    (invariants.IndependentRows(), faulty.SharesRows(), (P, Q), None),
    (invariants.Pure(), faulty.Mutates(), (["1/3", "2/3"], Q), None),
    (invariants.Pure(), faulty.Forgets(), (P, Q), None),
    (invariants.ErrorsOut(), faulty.Guesses(), (P, Q), ("out", (0.5, 0.5), "an error")),
    (
        invariants.ErrorsOut(),
        faulty.HidesEmptyResiduals(),
        (P, Q),
        ("out", (3 * QUARTER, QUARTER), "ZeroResidualError"),
    ),
]
BROKEN_IDS = [f"{rule.spec} breaks {invariant.name}" for invariant, rule, _, _ in BROKEN]


@pytest.mark.parametrize(("invariant", "rule", "pair", "found"), BROKEN, ids=BROKEN_IDS)
def test_a_faulty_rule_is_caught_with_the_wrong_value_beside_the_right_one(invariant, rule, pair, found):
    violation = invariant.examine(rule, *pair)
    assert isinstance(violation, Violation)
    if found is not None:
        assert (violation.quantity, violation.got, violation.expected) == found


@pytest.mark.parametrize(("invariant", "rule", "pair", "found"), BROKEN, ids=BROKEN_IDS)
def test_float64_sees_the_same_fault(invariant, rule, pair, found):
    floats = (np.array([float(Fraction(x)) for x in row]) for row in pair)
    assert isinstance(invariant.examine(rule, *floats), Violation)


SOUND_CASES = [
    *((invariant, ft.rule("lossless")) for invariant in STRUCTURAL),
    (invariants.Lossless(), ft.rule("sample-match")),
    (invariants.Induces("p", lambda p, q: p), SOUND),
    (invariants.Ceiling(2), ft.rule("lenience:l=1/2")),
    (invariants.Ceiling(ft.divergence.max_ratio, "max q/p"), ft.rule("cos:w=1")),
    (invariants.AcceptsMost(2), ft.rule("lenience:l=1/2")),
    (invariants.SupportWithin("p", lambda p, q: p > 0), SOUND),
    (invariants.OnTheLine(), ft.rule("cos:w=1/3")),
    (invariants.FixedPoint(), ft.rule("lenience-resample:l=1/2")),
    (invariants.DivergenceBound("kl", 0.2, "0.2"), ft.rule("mentored:budget=0.2")),
    (invariants.ReducesTo("lossless", {"l": 1}), ft.rule("lenience:l=1/3")),
    (invariants.MonotoneIn("l", "smaller"), ft.rule("lenience:l=1/3")),
]
PAIRS = [
    (["1/2", "3/10", "3/20", "1/20"], ["1/5", "1/10", "3/10", "2/5"]),
    ([0, "1/2", "1/2"], ["1/2", 0, "1/2"]),
    ([1, 0], [0, 1]),
    (["2/3", "1/3"], ["2/3", "1/3"]),
    ([1], [1]),
]


@pytest.mark.parametrize(("invariant", "rule"), SOUND_CASES, ids=[f"{r.spec}: {i.name}" for i, r in SOUND_CASES])
def test_a_sound_rule_passes_exactly_and_in_float64(invariant, rule):
    for pair in PAIRS:
        floats = [np.array([float(Fraction(x)) for x in row]) for row in pair]
        assert invariant.examine(rule, *floats) is None
        if not rule.unreadable:
            assert invariant.examine(rule, *pair) is None


def test_every_invariant_is_covered_on_both_sides():
    kinds = {getattr(invariants, name) for name in invariants.__all__ if name[0].isupper()}
    kinds = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, invariants.Invariant)}
    kinds -= {invariants.Invariant}
    assert {type(invariant) for invariant, *_ in BROKEN} == kinds
    assert {type(invariant) for invariant, _ in SOUND_CASES} == kinds


def test_the_law_of_the_sampler_is_integrated_not_assumed():
    """A redraw that reads its coin in another order has the right law where masses are equal: only the edges differ."""
    rule = faulty.RedrawsFromTheTop()
    assert invariants.SamplerAgrees().examine(rule, *SPREAD) is None
    assert invariants.CoinEdges().examine(rule, *SPREAD) is not None
    assert invariants.SamplerAgrees().examine(rule, ["1/3", "1/2", "1/6"], [1, 0, 0]) is not None


@pytest.mark.parametrize("floor", ["1/1600000000", "1/4000000000", "1/10000000000000"])
def test_masses_next_to_nothing_are_told_from_none(floor):
    """A residual floored at such a mass lets a rejected token come back, and is sampled as its closed form says."""
    rule, pair = faulty.Floored(Fraction(floor)), (["1/4", "3/8", "3/8"], ["1/2", "1/4", "1/4"])
    floats = [np.array([float(Fraction(x)) for x in row]) for row in pair]
    for invariant in (invariants.SamplerAgrees(), invariants.IndependentUniforms(), invariants.CoinEdges()):
        assert invariant.examine(rule, *pair) is None
        assert invariant.examine(rule, *floats) is None
    assert invariants.Lossless().examine(rule, *pair) is not None


def test_permutations_are_judged_on_rows_without_ties_only():
    argmax = ft.rule("typical-argmax:eps=0.9,delta=1")
    tied = (["1/2", "1/2", 0], ["1/3", 0, "2/3"])
    assert not invariants.Equivariant().applies(Case(argmax, *map(ft.exact, tied)))
    assert invariants.Equivariant().examine(argmax, *tied) is None
    assert invariants.Equivariant().applies(Case(argmax, *map(ft.exact, SKEWED)))


def test_a_rule_that_raises_is_not_blamed_for_anything_but_that():
    with pytest.raises(RuleFailure, match="no luck"):
        invariants.Lossless().examine(faulty.Crashes(), [0, 1], P)
    with pytest.raises(RuleFailure, match="ZeroResidualError"):
        invariants.Normalised().examine(faulty.EmptyResidual(), P, Q)
    assert invariants.Answers().examine(faulty.EmptyResidual(), P, Q) is None


def test_every_claim_of_every_rule_has_an_invariant_of_the_same_name():
    for name in ft.rules(level="token"):
        from fly_theory.cli.catalogue import Entry
        from fly_theory.registry import rule_class

        for claim in Entry(name, "token", rule_class(name)).typical().claims:
            assert of_claim(claim).name == str(claim)


def test_a_rule_written_for_numpy_alone_is_told_how_to_write_it():
    class ForNumpy(faulty.Sound):
        def verdict(self, p, q):
            return np.minimum(p, q), np.maximum(p - q, 0)

    violation = invariants.Answers().examine(ForNumpy(), P, Q)
    assert "ufuncs" in violation.got
    assert "array_namespace(p, q)" in violation.expected


def test_what_cannot_be_judged_is_an_error():
    class Unheard(claims.Claim):
        pass

    with pytest.raises(InvalidInput, match="Unheard"):
        of_claim(Unheard())
    with pytest.raises(UnknownName, match="total_variation"):
        invariants.DivergenceBound("total-variation", 1, "1").examine(SOUND, P, Q)
    with pytest.raises(InvalidInput, match="'slack'; it declares share"):
        invariants.MonotoneIn("slack", "larger").examine(faulty.Greedy(), P, Q)
    with pytest.raises(InvalidInput, match="cannot be set to"):
        invariants.ReducesTo("lossless", {"slack": 1}).examine(faulty.Greedy(), P, Q)
    with pytest.raises(InvalidInput, match="KeyError"):
        invariants.Induces("nothing", lambda p, q: {}["law"]).examine(SOUND, P, Q)
