"""The gated ceilings: what a ceiling off the most probable tokens is worth.

Statement.  Keeping the whole draft where p >= base max p, and at most p/l elsewhere, gives out <= max(1/l, 1/(base
max p)) p. The gated ceiling emits m where q > p, and Delta p + (1 - Delta) q elsewhere, where Delta = P_rej / TV(p, q).

Proof.  On the set q <= 1 <= p / (base max p). The residual (p - m)+ holds what is rejected, so the redraw raises no
token above p. The gated ceiling keeps all of q where q <= p, so its residual is (p - q)+, of total TV(p, q).
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import Ceiling, Induces
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


@theorem(
    "gated-ceiling-law",
    "the gated ceiling emits what it keeps where q > p, and a mixture of p and q elsewhere",
    r"\mathrm{out} = m \text{ where } q > p\text{, else } \Delta p + (1-\Delta) q,\quad"
    r"\Delta = P_{\mathrm{rej}} / \mathrm{TV}(p,q)",
    Subject("gated-ceiling", Induces),
)
def gated_ceiling_law(d: Derivation) -> None:
    p, q = d.pair()
    r = lemmas.read(d, d.rule("gated-ceiling"), p, q)
    lemmas.residual_suffices(d, r)
    d.sum_lemma("the residual is what the target has in excess", r.residual == abs(p - q) / 2, modulo=[p - q])
    d.claim(r.rule, Induces, p, q)
