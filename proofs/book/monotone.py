"""Looser settings accept more and move further from the target.

Statement.  For each rule that claims it, moving the parameter in its looser direction lowers neither acceptance nor
TV(out, p).

Proof.  The accepted mass grows token by token. Both settings are on the TV line, so the distance grows with the
acceptance.
"""

from typing import Any

from fly_theory.claims import MonotoneIn
from proofs import lemmas
from proofs.book.sampled_laws import FUZZY
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem

RULES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lenience", {}),
    ("ceiling-everywhere", {}),
    ("gated-ceiling", {}),
    ("ceiling-on-set", {}),
    ("cos", {}),
    ("interpolation", {}),
    ("cascade-chow", {}),
    ("cascade-diff", {}),
    ("cascade-opt", {}),
    *FUZZY,
)


@theorem(
    "monotone",
    "a looser setting accepts no less and is no closer to the target, for each rule that claims so",
    r"\sum m \text{ and } \mathrm{TV}(\mathrm{out},p) \text{ grow as the setting gets looser}",
    *(Subject(name, MonotoneIn, settings) for name, settings in RULES),
)
def monotone(d: Derivation) -> None:
    for name, settings in d.parts(RULES):
        p, q = d.pair()
        stricter = d.rule(name, **settings)
        before = _on_the_line(d, stricter, p, q)
        d.mass("distances are nowhere negative", abs(p - q))
        for claim in [c for c in stricter.claims if isinstance(c, MonotoneIn)]:
            looser = d.moved(stricter, claim.parameter, looser=claim.looser)
            after = _on_the_line(d, looser, p, q)
            d.sum_lemma(f"a looser {claim.parameter} keeps more of each token", before.accepted <= after.accepted)
            d.claim(stricter, claim, p, q, looser=looser)


def _on_the_line(d: Derivation, rule: object, p: SymbolicArray, q: SymbolicArray) -> Reading:
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_suffices(d, r, lemmas.laws(rule, p, q))
    lemmas.on_the_line(d, r)
    return r
