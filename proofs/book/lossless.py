"""Strict verification emits the target, whatever the draft.

Statement.  m = min(q, p) and residual (p - q)+ give out = p, for every p and q over any vocabulary.

Proof.  q - min(q, p) = (p - q)+ - (p - q), and p - q sums to zero: the residual has exactly the rejected mass, so
that the redraw adds (p - q)+ to min(q, p). Where nothing is rejected (p - q)+ vanishes everywhere.
"""

from fly_theory.claims import Lossless
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.theorem import Subject, theorem


@theorem(
    "lossless",
    "lossless verification emits the target, whatever the draft",
    r"\min(q,p) + P_{\mathrm{rej}}\,\frac{(p-q)_+}{\sum (p-q)_+} = p",
    Subject("lossless", Lossless),
)
def lossless(d: Derivation) -> None:
    p, q = d.pair()
    r = lemmas.read(d, d.rule("lossless"), p, q)
    lemmas.residual_is_rejection(d, r)
    d.claim(r.rule, Lossless, p, q)
