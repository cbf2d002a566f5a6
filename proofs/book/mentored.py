"""Mentored decoding, for any solution of its equations.

Statement.  Let 1/alpha >= 1 >= 1/beta make min(q, p/alpha) and (p/beta - q)+ sum to one together. Then out = clip(q,
p/beta, p/alpha), it is on the TV line, and it lies between p/beta and p/alpha. Where the whole draft is within the
budget, out = q.

Proof.  The residual holds just what is rejected, so out = m + (p/beta - q)+, which is between p and q.

The rule finds alpha and beta by bisection; the proof is about its own verdict with any alpha and beta that solve the
equation.
"""

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.claims import OnTheLine
from proofs import lemmas
from proofs.derivation import Derivation, implies
from proofs.lemmas import Reading
from proofs.theorem import theorem


@theorem(
    "mentored-line",
    "mentored decoding clips q between p/beta and p/alpha, on the TV line, for any multipliers that solve its equation",
    r"\mathrm{out} = \mathrm{clip}(q, p/\beta, p/\alpha),\;"
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
)
def mentored_line(d: Derivation) -> None:
    r, raised, lowered, unbound = any_multipliers(d)
    p, q, xp = r.p, r.q, array_namespace(r.p)
    clipped = xp.minimum(xp.maximum(q, lowered * p), raised * p)
    d.goal("within the budget out is the draft", implies(unbound, r.out == q))
    d.goal("beyond it out is the clipped draft", implies(~unbound, r.out == clipped))
    d.goal(
        "beyond it out/p is bounded on both sides", implies(~unbound, (lowered * p <= r.out) & (r.out <= raised * p))
    )
    lemmas.on_the_line(d, r)
    d.claim(r.rule, OnTheLine(), p, q)


def any_multipliers(d: Derivation) -> tuple[Reading, object, object, object]:
    """The rule with any 1/alpha >= 1 >= 1/beta that make out sum to one; also whether the whole draft is within the
    budget."""
    p, q = d.pair()
    xp = array_namespace(p, q)
    raised, lowered = d.number("1/alpha"), d.number("1/beta")
    rule = d.rule("mentored", _multipliers=lambda p, q: (raised, lowered))
    d.suppose("alpha <= 1 <= beta", raised >= 1, lowered <= 1, lowered >= 0)
    kept, filled = xp.minimum(q, raised * p), xp.clip(lowered * p - q, min=0)
    d.suppose("beta makes out sum to one", d.total(kept) + d.total(filled) == 1)
    unbound = ft.divergence.kl(p, q) <= rule.budget
    r = lemmas.read(d, rule, p, q)
    d.sum_lemma("beyond the budget, what is filled", implies(~unbound, r.residual == filled))
    d.sum_lemma("beyond the budget, what is kept", implies(~unbound, r.accepted == kept))
    d.lemma("within the budget all is kept", implies(unbound, r.accepted == q))
    d.sum_lemma("within the budget, the whole draft", implies(unbound, r.accepted == q))
    d.lemma("beyond the budget the residual holds just what is rejected", implies(~unbound, r.redrawn == r.rejected))
    d.lemma("the redraw adds nothing, or the residual", r.out == r.accepted + xp.where(unbound, 0 * p, r.residual))
    return r, raised, lowered, unbound
