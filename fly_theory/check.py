"""`check`: is this rule, or this verifier, what it claims to be?"""

from collections.abc import Iterable
from typing import Any

from fly_theory.claim_text import claim_from_text
from fly_theory.claims import Claim
from fly_theory.errors import FlyTheoryError, InvalidInput
from fly_theory.parameters import build
from fly_theory.registry import load, rules
from fly_theory.report import Report
from fly_theory.rule_check import Source, check_rule, quoted
from fly_theory.rules.base import Rule

__all__ = ["check"]


def check(spec: Any, claims: Iterable[Claim | str] | None = None, *, cases: int = 300, seed: int = 0) -> Report:
    """Whether a rule is what it claims to be: one result per invariant, a refutation with its smallest counterexample.

    Every invariant is judged on rational pairs of a target p and a draft q over a few tokens, in exact arithmetic; a
    rule that cannot be read exactly is judged in float64, and the report says so.

    Parameters
    ----------
    spec
        A SPEC (`lenience:l=0.4`, `package.module:Object`, `my_rule.py:MyRule`), a rule, a rule class without required
        parameters, or a verifier function, which goes to `fly_theory.conformance`.
    claims
        Claims, or their texts (`lossless`, `ceiling:2`); by default what the rule itself claims. What every rule owes
        (`fly_theory.invariants.STRUCTURAL`) is always judged.
    cases
        How many pairs are drawn; equal ones are judged once.
    seed
        The same seed draws the same pairs.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        For a SPEC or a claim that cannot be read.
    """
    subject = _subject(spec)
    if isinstance(subject, Rule):
        asked = subject.claims if claims is None else [_claim(claim) for claim in claims]
        name, source = _names(subject, spec)
        return check_rule(subject, asked, subject=name, source=source, cases=cases, seed=seed)
    if callable(subject):
        from fly_theory.conformance import conformance

        return conformance(subject, seed=seed)
    msg = f"{spec!r} is a {type(subject).__name__}; check takes rules and verifier functions"
    raise InvalidInput(msg)


def _claim(claim: Claim | str) -> Claim:
    return claim_from_text(claim) if isinstance(claim, str) else claim


def _subject(spec: Any) -> Any:
    if isinstance(spec, str):
        return _loaded(spec)
    return build(spec, {}) if isinstance(spec, type) and issubclass(spec, Rule) else spec


def _names(rule: Rule, spec: Any) -> tuple[str, Source]:
    """What to call a rule, and how Python code makes it."""
    if isinstance(spec, str):
        return spec, Source(f"ft.rule({quoted(spec)})")
    if getattr(rule, "name", None) in rules(level="token"):
        return rule.spec, Source(f"ft.rule({quoted(rule.spec)})")
    cls = type(rule)
    return rule.spec, Source(repr(rule), (f"from {cls.__module__} import {cls.__qualname__}",))


def _loaded(spec: str) -> Any:
    try:
        target, settings = load(spec)
    except FlyTheoryError:
        raise
    except Exception as error:
        msg = f"{spec!r} cannot be imported: {type(error).__name__}: {error}"
        raise InvalidInput(msg) from error
    if isinstance(target, type):
        return build(target, settings)
    if settings:
        msg = f"{spec!r} names a {type(target).__name__}, which takes no parameters"
        raise InvalidInput(msg)
    return target
