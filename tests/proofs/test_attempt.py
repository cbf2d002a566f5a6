"""Any rule, tried with the standard lemmas, and the answer that `check` gets."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.arrays import Number, array_namespace, positive_part, scalar
from fly_theory.claims import Ceiling, FixedPoint, Lossless, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.errors import InvalidInput
from fly_theory.parameters import Interval, parameter
from fly_theory.rules import Rule, Verdict
from proofs.attempt import attempt, claim_about
from proofs.coverage import STANDARD, theorem_for


@dataclass(frozen=True, kw_only=True)
class Halfway(Rule):
    """Accept up to p + s (q - p), redraw from the excess."""

    name = "halfway"
    s: Number = parameter(Interval(0, 1), "share of the draft's excess that is kept", typical=(0.5,))

    def verdict(self, p, q):
        xp = array_namespace(p, q)
        raised = p + scalar(self.s, p) * positive_part(q - p)
        return Verdict(accepted=xp.minimum(q, raised), residual=positive_part(p - q))

    @property
    def claims(self):
        return (OnTheLine(), FixedPoint(), ReducesTo("lossless", {"s": 0}), MonotoneIn("s", looser="larger"))


@dataclass(frozen=True, kw_only=True)
class AtMost(Rule):
    """Accept up to a multiple of the target, of which no value is typical."""

    factor: Number = parameter(Interval(1, None), "how much more likely a token may become")

    def verdict(self, p, q):
        return Verdict(array_namespace(p, q).minimum(q, scalar(self.factor, p) * p), positive_part(p - q))


class Rooted(Rule):
    """Accept the geometric mean, which is irrational."""

    def verdict(self, p, q):
        xp = array_namespace(p, q)
        return Verdict(xp.minimum(q, xp.sqrt(p * q)), positive_part(p - q))


class Unwritten(Rule):
    """No verdict at all."""


class Halved(Rule):
    """One array, which over two tokens can be taken for two."""

    def verdict(self, p, q):
        return array_namespace(p, q).minimum(p, q)


@dataclass(frozen=True, kw_only=True)
class Product(Rule):
    """Accept p q, redraw from p (1 - q): one sample of the target, matched."""

    name = "product"

    def verdict(self, p, q):
        return Verdict(accepted=p * q, residual=p * (1 - q))


@dataclass(frozen=True, kw_only=True)
class Careless(Rule):
    """Written for numpy alone."""

    name = "careless"

    def verdict(self, p, q):
        return Verdict(accepted=np.minimum(p, q), residual=np.maximum(p - q, 0))


@dataclass(frozen=True, kw_only=True)
class Mistaken(Rule):
    """Redraws from nothing."""

    name = "mistaken"

    def verdict(self, p, q):
        xp = array_namespace(p, q)
        return Verdict(accepted=xp.minimum(p, q), residual=xp.zeros_like(p))


@pytest.mark.parametrize("claim", Halfway(s=0.5).claims, ids=str)
def test_a_sound_rule_is_proved_at_every_parameter(claim):
    proof = attempt(Halfway, lambda rule: claim, text=str(claim))
    assert proof.outcome == "proved", proof.missing
    assert any(step.role == "hypothesis" and step.text == "s in [0, 1]" for step in proof.certificate.steps)


def test_a_false_claim_is_refuted_with_fractions():
    proof = attempt(Halfway, claim_about("ceiling:2"), text="ceiling:2")
    assert proof.outcome == "refuted"
    p, out = (proof.witness.inputs["p"], proof.witness.found["out"])
    assert any(o > 2 * x for o, x in zip(out, p, strict=True))
    assert all(isinstance(x, Fraction) for x in (*p, *out))


def test_a_claim_that_fails_only_at_small_parameters_is_refuted_there():
    proof = attempt(ft.Lenience, claim_about("ceiling:7"), text="ceiling:7")
    assert proof.outcome == "refuted"
    assert Fraction(proof.witness.rule.partition("l=")[2]) < Fraction(1, 7)


@pytest.mark.parametrize("text", ["lossless", "ceiling:factor/2"])
def test_parameters_without_typical_values_are_found_by_the_solver(text):
    witness = attempt(AtMost, claim_about(text), text=text).witness
    p, q = witness.inputs["p"], witness.inputs["q"]
    factor = Fraction(witness.rule.partition("factor=")[2])
    limit = factor / 2 if "factor" in text else 1
    kept = [min(b, factor * a) for a, b in zip(p, q, strict=True)]
    lacking = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
    out = [m + (1 - sum(kept)) * r / (sum(lacking) or 1) for m, r in zip(kept, lacking, strict=True)]
    assert witness.found["out"] == tuple(out)
    assert any(o > limit * x for o, x in zip(witness.found["out"], p, strict=True))


def test_an_irrational_counterexample_is_shown_in_decimals():
    witness = attempt(Rooted(), claim_about("lossless"), text="lossless").witness
    assert witness.inputs["p"] == (Fraction(1, 2), Fraction(1, 2))
    assert witness.found["acceptance"] == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("rule", [Unwritten(), Halved()])
def test_what_is_no_rule_is_not_refuted(rule):
    assert attempt(rule, claim_about("lossless"), text="lossless").outcome == "unknown"


def test_the_largest_probability_is_known_to_be_positive():
    claim = Ceiling(lambda p, q: 2 / array_namespace(p).max(p, axis=-1) / scalar(Fraction(1, 2), p), "4 / max p")
    assert attempt(ft.GatedCeiling(l=0.5, base=0.5), lambda rule: claim, text="4 / max p").outcome == "proved"


@pytest.mark.parametrize(
    ("text", "outcome"), [("lossless", "proved"), ("ceiling:1", "proved"), ("on-the-line", "refuted")]
)
def test_a_rule_without_parameters(text, outcome):
    assert attempt(Product, claim_about(text), text=text).outcome == outcome


def test_an_object_is_read_at_its_parameters():
    rule = ft.Lenience(l=0.4)
    assert attempt(rule, claim_about("ceiling:5/2"), text="ceiling:5/2").outcome == "proved"
    assert attempt(rule, claim_about("ceiling:12/5"), text="ceiling:12/5").outcome == "refuted"


def test_what_is_lacking_is_named():
    proof = attempt(Mistaken, claim_about("lossless"), text="lossless")
    assert proof.outcome == "refuted"
    assert "of the standard lemmas it lacks" in proof.missing
    assert "a rejection has something to redraw from" in proof.missing
    assert set(proof.witness.found["residual"]) == {0}


def test_a_rule_that_symbols_cannot_read_says_why():
    proof = attempt(Careless, claim_about("lossless"), text="lossless")
    assert proof.outcome == "unknown"
    assert "write it against the array API" in proof.missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ceiling:1/x", "the parameters of Lenience are l"),
        ("ceiling:1/", "is no term; write one like"),
        ("ceiling:l**2", "is no term in numbers, parameters"),
        ("loss", "unknown claim 'loss'"),
        ("ceiling", "no number"),
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(InvalidInput, match=message):
        claim_about(text)(ft.Lenience(l=0.5))


def test_terms_in_parameters_are_exact():
    claim = claim_about("ceiling:(1 + l) / (2 * l) - 0.1")(ft.Lenience(l=0.4))
    assert claim.factor == Fraction(7, 4) - Fraction(1, 10)


@pytest.mark.parametrize(
    ("spec", "claim", "theorem"),
    [
        ("lossless", Lossless(), "lossless"),
        ("lenience:l=0.4", Ceiling(Fraction(5, 2)), "lenience-ceiling"),
        ("lenience:l=0.4", Ceiling(3), "lenience-ceiling"),
        ("lenience:l=0.4", Ceiling(2), None),
        ("cos:w=0.25", OnTheLine(), "on-the-line"),
        ("cos:w=0.25", Ceiling(2), None),
        ("lenience-substituted:l=0.5", OnTheLine(), None),
        ("lenience:l=1", Lossless(), STANDARD),
        ("mentored:budget=0.1", OnTheLine(), None),
    ],
)
def test_check_is_told_which_theorem_covers_a_claim(spec, claim, theorem):
    assert theorem_for(ft.rule(spec), claim) == theorem


def test_check_is_told_of_rules_that_the_book_does_not_know():
    assert theorem_for(Halfway(s=0.3), OnTheLine()) == STANDARD
    assert theorem_for(Halfway(s=0.3), Lossless()) is None
    assert theorem_for(Careless(), Lossless()) is None
    assert theorem_for(ft.block_rule("block"), Lossless()) is None


def test_a_subclass_of_a_known_rule_is_not_taken_for_it():
    class Altered(ft.Lenience):
        def verdict(self, p, q):
            return Verdict(accepted=q, residual=p)

    assert theorem_for(Altered(l=0.5), Ceiling(2)) is None


def test_check_shows_the_theorem():
    report = ft.check("lenience:l=0.4", ["ceiling:5/2", "lossless"], cases=20)
    outcomes = {result.name: (result.outcome, result.detail) for result in report.results}
    assert outcomes["ceiling 5/2"][0] == "proved"
    assert "lenience-ceiling" in outcomes["ceiling 5/2"][1]
    assert outcomes["lossless"][0] == "refuted"
