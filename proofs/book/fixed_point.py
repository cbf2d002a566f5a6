"""When target and draft agree.

Statement.  Each rule that claims it accepts every token at p = q, and emits p.

Proof.  The accepted mass at p = q is p itself, at every token.
"""

from typing import Any

from fly_theory.claims import FixedPoint
from proofs import lemmas
from proofs.book.line import ON_THE_LINE
from proofs.derivation import Derivation
from proofs.theorem import Subject, theorem

RULES: tuple[tuple[str, dict[str, Any]], ...] = (*ON_THE_LINE, ("lenience-substituted", {}), ("lenience-resample", {}))


@theorem(
    "fixed-point",
    "where target and draft agree every token is accepted and nothing changes, for each rule that claims so",
    r"p = q \;\Rightarrow\; \sum m = 1,\; \mathrm{out} = p",
    *(Subject(name, FixedPoint, settings) for name, settings in RULES),
)
def fixed_point(d: Derivation) -> None:
    for name, settings in d.parts(RULES):
        p = d.row("p")
        rule = d.rule(name, **settings)
        r = lemmas.read(d, rule, p, p)
        d.sum_lemma("all of the draft is kept", r.accepted == p)
        d.lemma("so nothing is redrawn", r.out == r.accepted)
        d.claim(rule, FixedPoint, p, p)
