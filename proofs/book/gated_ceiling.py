"""The gated ceilings: what a ceiling off the most probable tokens is worth.

Statement.  Keeping the whole draft where p >= base max p, and at most p/l elsewhere, gives out <= max(1/l, 1/(base
max p)) p.

Proof.  On the set q <= 1 <= p / (base max p). The residual (p - m)+ holds what is rejected, so the redraw raises no
token above p.
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import Ceiling
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.theorem import Subject, theorem

RULES = ("gated-ceiling", "gated-excess", "gated-cliff")


@theorem(
    "gated-ceiling-ratio",
    "the gated ceilings raise no token by more than max(1/l, 1/(base max p))",
    r"\mathrm{out} \le \max\left(\frac1\ell, \frac{1}{\mathrm{base}\cdot\max p}\right) p",
    *(Subject(name, Ceiling) for name in RULES),
)
def gated_ceiling_ratio(d: Derivation) -> None:
    for name in d.parts(RULES):
        p, q = d.pair()
        rule = d.rule(name)
        largest = lemmas.largest_is_positive(d, p)
        r = lemmas.read(d, rule, p, q)
        lemmas.residual_suffices(d, r)
        l, xp = rule.l, array_namespace(p)
        d.lemma("the factor on the set undoes base max p", (1 / (rule.base * largest)) * (rule.base * largest) == 1)
        factor = xp.maximum(1 / l, 1 / (rule.base * largest))
        d.name(factor=factor)
        d.lemma("the accepted mass obeys the ceiling", r.accepted <= factor * p)
        d.lemma("the factor is at least 1", factor >= 1)
        d.claim(rule, Ceiling, p, q)
