"""Cactus can always redraw.

Statement.  After rejecting a token x, Cactus redraws from a residual that is nowhere negative and has at least the mass
q(x) - h(x) by which x was over its raised target h(x); so what it emits is a distribution.

Proof.  Off x the raised law H_x is p scaled down by (1 - h(x)) / (1 - p(x)), with mass 1 - h(x) there, while q has 1
- q(x) there.

Its average residual is computed by sorting, which symbols cannot follow; this is about the residual after each single
token.
"""

from fly_theory.arrays import array_namespace
from proofs.derivation import Derivation, implies
from proofs.symbolic import SymbolicArray
from proofs.theorem import theorem


@theorem(
    "cactus-redraw",
    "after any rejection Cactus has a residual of at least the mass by which the token was over its raised target",
    r"\sum_v \left(\tfrac{1-h(x)}{1-p(x)}\,p(v) - q(v)\right)_+ \ge q(x) - h(x)",
)
def cactus_redraw(d: Derivation) -> None:
    p, q = d.pair()
    xp = array_namespace(p)
    rule = d.rule("cactus", verdict=None)  # its verdict sorts, which symbols cannot read; its parts do not
    rejected = d.token("x")
    residual = rule.residual_after(p, q, SymbolicArray(d.world, rejected))
    raised = rule._raised(p)
    kept, over = xp.minimum(q, raised), q.at(rejected) - raised.at(rejected)
    d.goal("the accepted mass is part of the draft", kept >= 0, kept <= q)
    d.lemma("raising lowers nothing", raised >= p, raised <= 1)
    mass = d.mass("the residual is nowhere negative", residual)
    shrink = rule._shrink(p).at(rejected)
    d.lemma(
        "the other tokens are scaled to what is left",
        implies(over > 0, shrink * (1 - p.at(rejected)) == 1 - raised.at(rejected)),
    )
    d.sum_lemma(
        "the residual covers what the raised law has over the draft", shrink * p - q <= residual, apart_from=rejected
    )
    d.goal("a rejected token leaves something to redraw from", implies(over > 0, mass >= over))
