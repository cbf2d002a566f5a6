"""Any rule, tried with the standard lemmas: a proof for every vocabulary, a counterexample, or the lemma that is
lacking."""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import fly_theory as ft
from fly_theory.arrays import as_fraction
from fly_theory.claim_text import claim_from_text
from fly_theory.claims import Ceiling, Claim, FixedPoint, MonotoneIn, OnTheLine, ReducesTo
from fly_theory.errors import InvalidInput
from fly_theory.parameters import parameters
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.prover import Proof, prove_theorem
from proofs.statements import altered
from proofs.steps import Unproved
from proofs.subjects import read_by_symbols
from proofs.theorem import Subject, Theorem

__all__ = ["attempt", "claim_about"]


def attempt(
    rule: Any,
    claim: Callable[[Any], Claim],
    *,
    text: str,
    settings: Mapping[str, Any] | None = None,
    search: bool = True,
) -> Proof:
    """Try to prove a claim of a rule, or of a class of rules at the given settings, for every vocabulary.

    `claim` makes the claim of a rule at its parameters; `text` is how it is written.
    """
    label = rule.__name__ if isinstance(rule, type) else type(rule).__name__
    subject = Subject(label, claim, settings or {})
    theorem = Theorem(
        name=f"{label}: {text}",
        statement=f"{label} keeps the claim {text}",
        latex=rf"\text{{{text}}}",
        about=(subject,),
        proof=partial(_standard_proof, subject=subject),
        explanation="Tried with the standard lemmas.",
    )
    return prove_theorem(theorem, {label: rule}, search=search)


def claim_about(text: str) -> Callable[[Any], Claim]:
    """The claim that a text makes of a rule: as `fly_theory.claim_text`, and `ceiling:` with a term in the rule's
    parameters.

    Raises
    ------
    InvalidInput
        For a claim that cannot be read; for a term, when it is asked of a rule without such parameters.
    """
    name, _, written = text.partition(":")
    try:
        fixed = claim_from_text(text)
    except InvalidInput:
        if name != "ceiling" or not written:
            raise
        tree = _parsed(text, written)
        return lambda rule: Ceiling(_value(tree, rule, text), written)
    return lambda rule: fixed


def _standard_proof(d: Derivation, *, subject: Subject) -> None:
    p, q = d.pair()
    rule = d.rule(subject.rule, **subject.settings)
    (claim,) = subject.claims(rule)
    with read_by_symbols(subject.rule):
        r = lemmas.read(d, rule, p, q)
    lacking = _prepare(d, r)
    try:
        _conclude(d, r, claim, lacking)
    except Unproved as failure:
        if lacking:
            failure.args = (f"{failure}; of the standard lemmas it lacks: {', '.join(lacking)}",)
        raise


def _prepare(d: Derivation, r: Reading) -> list[str]:
    """Know as many of the standard lemmas as hold, and return those that are wanted and do not."""
    if any(definition.kind == "largest" for definition in d.world.definitions.values()):
        d.attempt(lambda: lemmas.largest_is_positive(d, r.p))
    laws = lemmas.laws(r.rule, r.p, r.q)
    exactly = [partial(lemmas.residual_is_rejection, d, r, law) for law in (None, *laws)]
    failures = []
    for step in (*exactly, partial(lemmas.residual_suffices, d, r, laws), partial(lemmas.something_to_redraw, d, r)):
        failure = d.attempt(step)
        if failure is None:
            break
        failures.append(failure)
    lacking = list(dict.fromkeys(failure.text for failure in failures)) if failure else []
    failure = d.attempt(lambda: lemmas.out_is_a_law(d, r))
    return [*lacking, failure.text] if failure else lacking


def _conclude(d: Derivation, r: Reading, claim: Claim, lacking: list[str]) -> None:
    rule, p, q, looser = r.rule, r.p, r.q, None
    if isinstance(claim, OnTheLine):
        lemmas.on_the_line(d, r)
    elif isinstance(claim, FixedPoint):
        p = q = d.row("p")
        there = lemmas.read(d, rule, p, p)
        d.sum_lemma("at p = q all of the draft is kept", there.accepted == p)
    elif isinstance(claim, ReducesTo):
        mine, simpler = altered(rule, **claim.at).verdict(p, q), ft.rule(claim.rule).verdict(p, q)
        d.sum_lemma("the same accepted mass", mine.accepted == simpler.accepted)
        d.sum_lemma("the same residual", mine.residual == simpler.residual)
    elif isinstance(claim, MonotoneIn):
        looser = d.moved(rule, claim.parameter, looser=claim.looser)
        after = lemmas.read(d, looser, p, q)
        lacking += _prepare(d, after)
        lemmas.on_the_line(d, r)
        lemmas.on_the_line(d, after)
        d.sum_lemma("the looser setting keeps more of each token", r.accepted <= after.accepted)
    d.claim(rule, claim, p, q, looser=looser)


# -- terms in a rule's parameters ------------------------------------------------------------------------------------

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def _parsed(text: str, written: str) -> ast.expr:
    try:
        return ast.parse(written, mode="eval").body
    except SyntaxError as error:
        msg = f"claim {text!r}: {written!r} is no term; write one like 2, 3/2 or 1/l"
        raise InvalidInput(msg) from error


def _value(tree: ast.expr, rule: Any, text: str) -> Any:
    """The value of a term made of numbers, parameters, + - * / and parentheses."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float):
        return as_fraction(tree.value)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return _OPERATORS[type(tree.op)](_value(tree.left, rule, text), _value(tree.right, rule, text))
    names = [declared.name for declared in parameters(type(rule))]
    if isinstance(tree, ast.Name) and tree.id in names:
        return rule.exact(tree.id)
    known = (
        f"the parameters of {type(rule).__name__} are {', '.join(names)}" if names else "this rule has no parameters"
    )
    msg = f"claim {text!r}: {ast.unparse(tree)!r} is no term in numbers, parameters and + - * /; {known}"
    raise InvalidInput(msg)
