"""The contrastive law is a law.

Statement.  norm(p q^-mu), read as its limit where the draft has no mass, sums to one over every vocabulary on which
the positive draft probabilities have a positive lower bound, such as a finite one.

Proof.  If some token has p > 0 and q = 0 the limit lives there. Otherwise the most likely token of the target has q >
0, and its weight p q^-mu is positive.
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import Induces
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem

MU = {"mu": 0.1}  # mu enters the proof only through being positive


@theorem(
    "contrastive-law",
    "contrastive CoS emits its contrastive law (shown at mu = 0.1, of which only mu > 0 is used)",
    r"\mathrm{out} = \mathrm{norm}(p\,q^{-\mu})",
    Subject("cos-contrastive", Induces, MU),
)
def contrastive_law(d: Derivation) -> None:
    p, q = d.pair()
    rule = d.rule("cos-contrastive", **MU)
    law = law_of_contrast(d, rule, p, q)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_is_rejection(d, r, law)
    d.claim(rule, Induces, p, q)


def law_of_contrast(d: Derivation, rule: object, p: SymbolicArray, q: SymbolicArray) -> SymbolicArray:
    """The law of the rule, shown to be nowhere negative and to sum to one."""
    xp = array_namespace(p, q)
    possible = (p > 0) & (q > 0)
    smallest = xp.min(xp.where(possible, q, xp.ones_like(q)), axis=-1)
    d.suppose("the positive draft probabilities are bounded away from 0", smallest > 0)
    lemmas.largest_is_positive(d, p)
    (law,) = lemmas.laws(rule, p, q)
    only_target = xp.where((p > 0) & (q == 0), p, 0 * p)
    ratio = xp.where(possible, smallest / xp.where(q > 0, q, xp.ones_like(q)), 0 * q)
    shared = p * ratio ** rule.exact("mu")  # type: ignore[attr-defined]
    d.lemma(
        "ratios to the smallest draft probability are positive where both can happen",
        (ratio > 0) | ~possible,
        ratio >= 0,
    )
    beyond = d.mass("mass that the draft never reaches is nowhere negative", only_target)
    weight = d.mass("the contrastive weights are nowhere negative", shared)
    d.lemma("the most likely token has weight", weight + beyond > 0)
    d.lemma("the contrastive law is a law", law >= 0, d.total(law) == 1)
    return law
