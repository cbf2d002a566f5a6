"""Looser settings accept more and move further from the target.

Statement.  For each rule that claims it, moving the parameter in its looser direction lowers neither acceptance nor TV(out, p).

Proof.  The accepted mass grows token by token. Both settings are on the TV line, so the distance grows with the acceptance.
"""

from typing import Any

from fly_theory.claims import MonotoneIn
from proofs import lemmas
from proofs.derivation import Derivation
from proofs.theorem import Subject, theorem

RULES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("lenience", "l", {}),
    ("ceiling-everywhere", "l", {}),
    ("gated-ceiling", "l", {}),
    ("gated-ceiling", "base", {}),
    ("ceiling-on-set", "l", {}),
    ("ceiling-on-set", "base", {}),
    ("cos", "w", {}),
    ("interpolation", "l", {}),
    ("cascade-chow", "alpha", {}),
    ("cascade-diff", "alpha", {}),
    ("cascade-opt", "alpha", {}),
    *(("fuzzy", "t", {"divergence": divergence}) for divergence in ("kl", "js", "tv")),
)


@theorem(
    "monotone",
    "a looser setting accepts no less and is no closer to the target, for each rule that claims so",
    r"\sum m \text{ and } \mathrm{TV}(\mathrm{out},p) \text{ grow as the setting gets looser}",
    *(Subject(name, MonotoneIn, settings) for name, settings in {name: s for name, _, s in RULES}.items()),
)
def monotone(d: Derivation) -> None:
    for name, parameter, settings in RULES:
        d.begin(f"{name} in {parameter}", **settings)
        p, q = d.pair()
        stricter = d.rule(name, **settings)
        (claim,) = (c for c in stricter.claims if isinstance(c, MonotoneIn) and c.parameter == parameter)
        looser = d.moved(stricter, parameter, looser=claim.looser)
        readings = []
        for rule in (stricter, looser):
            r = lemmas.read(d, rule, p, q)
            lemmas.residual_suffices(d, r, lemmas.laws(rule, p, q))
            lemmas.on_the_line(d, r)
            readings.append(r)
        d.mass("distances are nowhere negative", abs(p - q))
        d.sum_lemma("the looser setting keeps more of each token", readings[0].accepted <= readings[1].accepted)
        d.claim(stricter, claim, p, q, looser=looser)
