"""CoS: the price of a mixture.

Statement.  out = w q + (1 - w) p, so TV(out, p) = w TV(p, q). For w > 0 no bound on out/p holds: whatever B, some p
and q have a token with out > B p.

Proof.  q - min(q, r) = (r - q)+ - (r - q) for the mixture r, and (r - q)+ = (1 - w) (p - q)+. For the second part
take two tokens, p = (e, 1 - e) with e = w / (B + 1), and q = (1, 0).
"""

import fly_theory as ft
from fly_theory.claims import Induces
from proofs import finite, lemmas
from proofs.derivation import Derivation
from proofs.statements import Says
from proofs.theorem import Subject, theorem

_tv = ft.divergence.total_variation
SHRINKS = Says("TV(out, p) = w TV(p, q)", lambda rule, p, q: _tv(p, rule.induced(p, q)) == rule.exact("w") * _tv(p, q))


@theorem(
    "cos-distance",
    "CoS emits the mixture, at w times the distance from target to draft",
    r"\mathrm{out} = w\,q + (1-w)\,p,\qquad \mathrm{TV}(\mathrm{out},p) = w\,\mathrm{TV}(p,q)",
    Subject("cos", Induces),
    Subject("cos", lambda rule: SHRINKS),
)
def cos_distance(d: Derivation) -> None:
    p, q = d.pair()
    r = lemmas.read(d, d.rule("cos"), p, q)
    w = r.rule.w
    d.sum_lemma("what is rejected", q - r.accepted == (1 - w) * (r.residual - (p - q)))
    d.lemma("the redraw adds 1 - w of the residual", r.out == r.accepted + (1 - w) * r.residual)
    d.claim(r.rule, Induces, p, q)
    d.sum_lemma("distances shrink by w", abs(p - r.out) == w * abs(p - q))
    d.claim(r.rule, SHRINKS, p, q)


@theorem(
    "cos-unbounded",
    "CoS bounds out/p by no number",
    r"\forall w > 0,\, B\; \exists p, q, v:\; \mathrm{out}(v) > B\,p(v)",
)
def cos_unbounded(d: Derivation) -> None:
    rule, bound = d.rule("cos"), d.number("B")
    d.suppose("the draft has some weight", rule.w > 0)
    d.suppose("a bound worth breaking", bound >= 0)
    e = rule.w / (bound + 1)
    p, q = finite.row(d.world, [e, 1 - e]), finite.row(d.world, [1, 0])
    d.lemma("p and q are distributions", *finite.is_distribution(p), *finite.is_distribution(q))
    d.goal("the first token is above the bound", rule.induced(p, q)[0] > bound * p[0])
