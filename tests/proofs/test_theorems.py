"""The book: every statement comes out as it says, about terms that the rules' own code made."""

import pytest

import fly_theory as ft
import proofs
from fly_theory.claims import Claim, DivergenceBound
from fly_theory.errors import MissingExtra, UnknownName
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class
from proofs.book import normalised
from proofs.theorem import find


def _typical_rules():
    """Each rule at its defaults, and at the first typical value of every parameter without one."""
    for name in ft.rules(level="token"):
        cls = rule_class(name)
        yield cls(**{p.name: p.typical[0] if p.required else p.default for p in parameters(cls)})


RULES = list(_typical_rules())


@pytest.mark.parametrize("name", proofs.theorems())
def test_every_statement_comes_out_as_the_book_says(name, proof_of):
    proof = proof_of(name)
    assert proof.outcome == find(name).expected, proof.missing
    assert bool(proof.witness) == (proof.outcome == "refuted")
    assert bool(proof.certificate.obligations) == (proof.method.startswith("z3"))


def test_z3_and_cvc5_agree_on_every_obligation(proof_of):
    answers = {
        (solver, o.title, ask())
        for o in proof_of("lenience-closed-form").certificate.obligations
        for solver, ask in (("z3", o.check), ("cvc5", o.recheck))
    }
    assert {answer for _, _, answer in answers} == {"proved"}


def test_the_solvers_refute_what_does_not_follow(proof_of):
    from dataclasses import replace

    (goal,) = (o for o in proof_of("lossless").certificate.obligations if o.title == "lossless")
    weaker = replace(goal, hypotheses=goal.hypotheses[:1])
    assert weaker.check() == "refuted"
    assert weaker.recheck() in ("refuted", "unknown")


def test_every_rule_that_symbols_read_emits_a_distribution():
    read = {rule.name for rule in RULES if Interpreter.SYMBOLIC not in rule.unreadable}
    assert read <= set(normalised.READINGS)
    assert set(ft.rules(level="token")) - set(normalised.READINGS) == {"cactus"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.spec)
def test_every_claim_of_a_rule_that_symbols_read_is_covered(rule):
    about = [subject for name in proofs.theorems() for subject in find(name).about if subject.rule == rule.name]
    covered = {type(claim) for subject in about for claim in _claims(subject, rule)}
    stated = {type(claim) for claim in rule.claims if not isinstance(claim, DivergenceBound)}
    if Interpreter.SYMBOLIC not in rule.unreadable:
        assert stated <= covered


def _claims(subject, rule) -> list[Claim]:
    fits = all(getattr(rule, name) == value for name, value in subject.settings.items())
    return subject.claims(rule) if fits or not isinstance(subject.claim, type) else []


def test_an_unknown_theorem_is_named_with_its_neighbours():
    with pytest.raises(UnknownName, match="lenience-ceiling"):
        proofs.prove("lenience-celing")


def test_without_solvers_the_extra_is_named(monkeypatch):
    from proofs import theorem

    def missing(name):
        raise ModuleNotFoundError(name="z3")

    monkeypatch.setattr(theorem.importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'fly-theory\[prove\]'"):
        proofs.theorems()


def test_chapters_state_what_they_prove_before_they_prove_it():
    for name in proofs.theorems():
        theorem = find(name)
        if theorem.expected == "proved":
            assert theorem.chapter.index("Statement.") < theorem.chapter.index("Proof."), name
        assert theorem.statement
        assert theorem.latex
