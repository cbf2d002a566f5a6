"""Where a loose rule becomes strict.

Statement.  Each rule that claims it induces, at the stated parameters, what the lossless rule induces, at the same
acceptance.

Proof.  Accepted mass and residual agree token by token, hence so do their sums. For SGLang's thresholds both sides
are the target.
"""

from typing import Any

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.claims import Lossless, ReducesTo
from proofs import lemmas
from proofs.book.sample_match import one_sample
from proofs.book.sampled_laws import FUZZY
from proofs.derivation import Derivation
from proofs.statements import altered
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem

RULES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lenience", {}),
    ("lenience-substituted", {}),
    ("ceiling-everywhere", {}),
    ("cos", {}),
    ("cos-contrastive", {"mu": 0.1}),
    ("interpolation", {}),
    ("cascade-chow", {}),
    ("cascade-diff", {}),
    ("cascade-opt", {}),
    ("cascade-token-v1", {}),
    ("cascade-token-v2", {}),
    *FUZZY,
)


@theorem(
    "reduces-to-strict",
    "each rule with a strict setting is lossless verification there",
    r"\mathrm{out}_{\mathrm{strict}} = p,\qquad \sum m_{\mathrm{strict}} = \sum \min(p,q)",
    *(Subject(name, ReducesTo, settings) for name, settings in RULES),
)
def reduces_to_strict(d: Derivation) -> None:
    for name, settings in d.parts(RULES):
        p, q = d.pair()
        rule = d.rule(name, **settings)
        if name.startswith("cascade"):
            _cascade_never_trusts(d, p, q)
        if name == "fuzzy":
            d.mass("distances are nowhere negative", abs(p - q))
        (claim,) = (c for c in rule.claims if isinstance(c, ReducesTo))
        at_strict = altered(rule, **claim.at)
        if name.startswith("cascade-token"):
            kept = array_namespace(p, q).where(at_strict._set(p, q), q, 0 * q)
            d.sum_lemma("no token is in the set", kept == 0 * q)
        there, strict = at_strict.verdict(p, q), ft.rule(claim.rule).verdict(p, q)
        d.sum_lemma("the same accepted mass", there.accepted == strict.accepted)
        d.sum_lemma("the same residual", there.residual == strict.residual)
        d.claim(rule, claim, p, q)


@theorem(
    "thresholds-strict",
    "SGLang's thresholds at one match one sample of the target",
    r"\mathrm{single} = \mathrm{acc} = 1 \;\Rightarrow\; \mathrm{out} = p",
    Subject("threshold", ReducesTo),
)
def thresholds_strict(d: Derivation) -> None:
    p, q = d.pair()
    rule, sampled = d.rule("threshold", single=1, acc=1), d.rule("sample-match", n=1)
    for subject in (rule, sampled):
        r = lemmas.read(d, subject, p, q)
        one_sample(d, r)
        d.lemma("out = p", r.out == p)
    d.sum_lemma("the same accepted mass", rule.verdict(p, q).accepted == sampled.verdict(p, q).accepted)
    d.claim(sampled, Lossless, p, q)
    d.claim(rule, ReducesTo("sample-match:n=1", {"single": 1, "acc": 1}), p, q)


def _cascade_never_trusts(d: Derivation, p: SymbolicArray, q: SymbolicArray) -> None:
    """0 < max p, and max p - max q <= TV(p, q), with TV(p, q) = 0 only for p = q."""
    xp = array_namespace(p, q)
    most_likely = lemmas.largest_is_positive(d, p)
    excess = d.mass("excess is nowhere negative", xp.clip(p - q, min=0))
    shortfall = d.mass("shortfall is nowhere negative", xp.clip(q - p, min=0))
    d.mass("distances are nowhere negative", abs(p - q))
    d.sum_lemma("distance is excess and shortfall", abs(p - q) == xp.clip(p - q, min=0) + xp.clip(q - p, min=0))
    d.sum_lemma("excess and shortfall balance", xp.clip(p - q, min=0) == xp.clip(q - p, min=0), modulo=[p - q])
    d.lemma(
        "the largest probabilities differ by no more",
        xp.max(q, axis=-1) - most_likely <= shortfall,
        excess == shortfall,
    )
