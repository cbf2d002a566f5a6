"""Lenience is the most accepting rule under its ceiling.

Statement.  A token-level rule with out <= p/l, whatever it keeps and however it redraws, accepts at most sum min(q,
p/l), which is what lenience accepts; and lenience has out <= p/l.

Proof.  The accepted mass is part of the draft and part of what is emitted: m <= q and m <= out <= p/l.
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import AcceptsMost, Ceiling
from proofs import lemmas
from proofs.book.line import any_rule
from proofs.derivation import Derivation
from proofs.theorem import Subject, theorem


@theorem(
    "lenience-optimal",
    "among all rules that keep out below p/l, lenience accepts most",
    r"\mathrm{out} \le p/\ell \;\Rightarrow\; \sum m \le \sum \min(q, p/\ell)",
    Subject("lenience", AcceptsMost),
    Subject("ceiling-everywhere", AcceptsMost),
)
def lenience_optimal(d: Derivation) -> None:
    for name in d.parts(("lenience", "ceiling-everywhere")):
        p, q = d.pair()
        lenience = d.rule(name)
        own = lemmas.read(d, lenience, p, q)
        lemmas.residual_suffices(d, own)
        d.claim(lenience, Ceiling, p, q)
        under_the_ceiling = array_namespace(p).minimum(q, (1 / lenience.l) * p)
        d.sum_lemma("it keeps all that the ceiling allows", own.accepted == under_the_ceiling)
        d.claim(lenience, AcceptsMost, p, q)
        other = any_rule(d, p, q)
        lemmas.out_is_a_law(d, other)
        d.suppose("the other rule keeps the same ceiling", other.out <= p / lenience.l)
        d.sum_lemma("the other rule keeps no more of any token", other.accepted <= own.accepted)
        kept = array_namespace(p).sum(other.accepted, axis=-1)
        d.goal("lenience accepts at least as much", kept <= lenience.acceptance(p, q))
