"""`check`: is this rule, or this verifier, what it claims to be?"""

from collections.abc import Iterable
from typing import Any

from fly_theory.any_rule import claims_of
from fly_theory.block_check import check_block_rule
from fly_theory.blocks.base import BlockRule
from fly_theory.claim_text import claim_from_text
from fly_theory.claims import Claim
from fly_theory.errors import InvalidInput
from fly_theory.parameters import build
from fly_theory.registry import Level, load, rules
from fly_theory.report import Report
from fly_theory.rule_check import check_rule
from fly_theory.rules.base import Rule
from fly_theory.tree_check import check_tree_rule
from fly_theory.trees.base import TreeRule
from fly_theory.witness_test import Source, quoted

__all__ = ["check"]


def check(spec: Any, claims: Iterable[Claim | str] | None = None, *, cases: int = 300, seed: int = 0) -> Report:
    """Whether a rule is what it claims to be: one result per invariant, a refutation with its smallest counterexample.

    Every invariant is judged on rational pairs of a target p and a draft q over a few tokens, in exact arithmetic; a
    rule that cannot be read exactly is judged in float64, and the report says so. A block rule is judged on pairs whose
    rows depend on the last token, by the law of the text that it emits; a tree rule as well, on small topologies and
    every way to draw siblings that it is made for.

    Parameters
    ----------
    spec
        A SPEC (`lenience:l=0.4`, `block`, `package.module:Object`, `my_rule.py:MyRule`), a rule of any level, such a
        class without required parameters, or a verifier function, which goes to `ft.conformance`.
    claims
        Claims, or their texts (`lossless`, `ceiling:2`); by default what the rule itself claims, and of a verifier that
        it is lossless. What every rule owes (`STRUCTURAL` in `fly_theory.invariants`) is always judged.
    cases
        How many pairs are drawn for a token-level rule (half of that for a tree rule, a fifth for a block rule); equal
        ones are judged once.
    seed
        The same seed draws the same pairs.

    Raises
    ------
    UnknownName, ParameterError, InvalidInput
        For a SPEC or a claim that cannot be read.
    """
    subject = _subject(spec)
    asked = (
        None if claims is None else [claim_from_text(claim) if isinstance(claim, str) else claim for claim in claims]
    )
    if isinstance(subject, Rule | BlockRule | TreeRule):
        asked = claims_of(subject) if asked is None else asked
        name, source = _names(subject, spec)
        if isinstance(subject, Rule):
            return check_rule(subject, asked, subject=name, source=source, cases=cases, seed=seed)
        if isinstance(subject, TreeRule):
            return check_tree_rule(subject, asked, subject=name, source=source, cases=cases, seed=seed)
        return check_block_rule(subject, asked, subject=name, source=source, cases=cases, seed=seed)
    if callable(subject):
        from fly_theory.conformance import conformance

        return conformance(subject, seed=seed) if asked is None else conformance(subject, claims=asked, seed=seed)
    msg = f"{spec!r} is a {type(subject).__name__}; check takes rules and verifier functions"
    raise InvalidInput(msg)


def _subject(spec: Any) -> Any:
    if not isinstance(spec, str):
        return build(spec, {}) if isinstance(spec, type) and issubclass(spec, Rule | BlockRule | TreeRule) else spec
    elsewhere: tuple[Level, ...] = ("block", "tree")
    level: Level = next((each for each in elsewhere if spec.partition(":")[0] in rules(level=each)), "token")
    target, settings = load(spec, level=level)
    if isinstance(target, type):
        return build(target, settings)
    if settings:
        msg = f"{spec!r} names a {type(target).__name__}, which takes no parameters"
        raise InvalidInput(msg)
    return target


def _names(rule: Rule | BlockRule | TreeRule, spec: Any) -> tuple[str, Source]:
    """What to call a rule, and how Python code makes it."""
    function = "rule" if isinstance(rule, Rule) else "tree_rule" if isinstance(rule, TreeRule) else "block_rule"
    if isinstance(spec, str):
        return spec, Source(f"ft.{function}({quoted(spec)})")
    if rule.spec.partition(":")[0] in rules():
        return rule.spec, Source(f"ft.{function}({quoted(rule.spec)})")
    cls = type(rule)
    return rule.spec, Source(repr(rule), (f"from {cls.__module__} import {cls.__qualname__}",))
