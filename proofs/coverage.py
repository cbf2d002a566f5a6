"""Whether a theorem covers a claim of a rule: the prover that `fly-theory check` finds as an entry point."""

import functools
from typing import Any

from fly_theory.arrays import as_fraction
from fly_theory.claims import Ceiling, Claim
from fly_theory.errors import FlyTheoryError, UnknownName
from fly_theory.registry import rule_class
from fly_theory.rules import Rule
from proofs.attempt import attempt
from proofs.prover import prove_theorem
from proofs.theorem import Subject, find, theorems

__all__ = ["theorem_for"]

STANDARD = "standard lemmas"


def theorem_for(rule: Any, claim: Claim) -> str | None:
    """The name of a theorem that covers the claim and is proved, here and now; None when there is none.

    A rule that the book knows is covered by its theorems. Any other claim of a token-level rule is tried with the
    standard lemmas.
    """
    if not isinstance(rule, Rule):
        return None
    if _is_registered(rule):
        for name in theorems():
            if any(_covers(subject, rule, claim) for subject in find(name).about) and _is_proved(name, rule.name):
                return name
        return STANDARD if _is_standard_once(rule, claim) else None
    return STANDARD if _is_standard(rule, claim) else None


def _is_registered(rule: Rule) -> bool:
    try:
        return rule_class(getattr(rule, "name", "")) is type(rule)
    except UnknownName:
        return False


def _covers(subject: Subject, rule: Rule, claim: Claim) -> bool:
    if subject.rule != rule.name or any(getattr(rule, name) != value for name, value in subject.settings.items()):
        return False
    return any(_implies(shown, claim) for shown in subject.claims(rule))


def _implies(shown: Claim, claim: Claim) -> bool:
    """Whether one claim of a rule is another, or a lower ceiling."""
    if (
        isinstance(shown, Ceiling)
        and isinstance(claim, Ceiling)
        and not (callable(shown.factor) or callable(claim.factor))
    ):
        return as_fraction(shown.factor) <= as_fraction(claim.factor)
    return shown == claim


@functools.cache
def _is_proved(theorem: str, rule: str) -> bool:
    return prove_theorem(find(theorem), {}, only=rule, search=False).outcome == "proved"


@functools.cache
def _is_standard_once(rule: Rule, claim: Claim) -> bool:
    """For registered rules, which are frozen: a rule of one's own may change between two questions."""
    return _is_standard(rule, claim)


def _is_standard(rule: Rule, claim: Claim) -> bool:
    try:
        proof = attempt(rule, lambda rule: claim, text=str(claim), search=False)
    except FlyTheoryError:
        return False
    return proof.outcome == "proved"
