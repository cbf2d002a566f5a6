"""The matched baselines are lossless for their truncated target.

Statement.  With p_A = p 1_A / p(A), m = min(q, p_A) and residual (p_A - q)+ give out = p_A, supported in A; the sets
of min-p and of eta are never empty.

Proof.  As for lossless verification, once p(A) > 0. The min-p set holds the most probable token. So does the eta set:
since log p <= log max p everywhere, -H <= log max p, hence sqrt(eps) exp(-H) <= max p.
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import Induces, SupportWithin
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem


@theorem(
    "truncated-lossless",
    "the truncated rules are lossless for their truncated target and never leave the allowed set",
    r"\mathrm{out} = p_A = \frac{p\,1_A}{p(A)}",
    Subject("truncated-min-p", Induces),
    Subject("truncated-min-p", SupportWithin),
    Subject("truncated-eta", Induces),
    Subject("truncated-eta", SupportWithin),
)
def truncated_lossless(d: Derivation) -> None:
    for name in d.parts(("truncated-min-p", "truncated-eta")):
        r = truncated(d, name)
        d.claim(r.rule, Induces, r.p, r.q)
        d.claim(r.rule, SupportWithin, r.p, r.q)


def truncated(d: Derivation, name: str) -> Reading:
    """A truncated rule, whose allowed set is shown not to be empty."""
    p, q = d.pair()
    rule = d.rule(name)
    lemmas.largest_is_positive(d, p)
    if name == "truncated-eta":
        _surprise_is_bounded(d, p)
    law = _allowed_set_has_mass(d, rule, p)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_is_rejection(d, r, law)
    return r


def _surprise_is_bounded(d: Derivation, p: SymbolicArray) -> None:
    """-H <= log max p, so that exp(-H) <= max p."""
    xp = array_namespace(p)
    log = xp.log(xp.where(p > 0, p, xp.ones_like(p)))
    most_likely = xp.argmax(p, axis=-1).term
    d.sum_lemma("no token is less surprising than the most likely one", p * log <= p * log.at(most_likely))
    d.lemma("exp(-H) is at most the largest probability", xp.exp(d.total(p * log)) <= p.at(most_likely))


def _allowed_set_has_mass(d: Derivation, rule: object, p: SymbolicArray) -> SymbolicArray:
    """p(A) > 0, since A holds the most likely token; returns the truncated target, which is a law."""
    xp = array_namespace(p)
    allowed = rule.allowed_set(p)  # type: ignore[attr-defined]
    kept = xp.where(allowed, p, xp.zeros_like(p))
    mass = d.mass("the allowed part of the target is nowhere negative", kept)
    d.lemma("the most likely token is allowed", kept.at(xp.argmax(p, axis=-1).term) > 0)
    d.lemma("the allowed set has mass", mass > 0)
    law = rule.matched_target(p)  # type: ignore[attr-defined]
    d.lemma("the truncated target is a law", law >= 0, d.total(law) == 1)
    return law
