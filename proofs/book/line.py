"""The TV line: what rejecting costs, and which rules pay no more.

Statement.  Every token-level rule, redrawing from whatever it likes, has TV(out, p) >= TV(p, q) - P_rej. Equality
holds for each rule that claims it.

Proof.  out is at least the accepted mass m, so TV(q, out) = sum (q - out)+ <= sum (q - m) = P_rej; then the triangle
inequality. Equality is the same count, token by token: where out lies between p and q and keeps all of q it can, the
distances from p to out and from out to q add up.
"""

from collections.abc import Iterator
from typing import Any

import fly_theory as ft
from fly_theory.claims import OnTheLine
from fly_theory.rules import Rule, Verdict
from proofs import lemmas
from proofs.book.sampled_laws import FUZZY
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem

# The rules that claim to be on the line, each with the settings that its proof needs.
ON_THE_LINE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("lossless", {}),
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


class AnyRule(Rule):
    """A rule of which nothing is known: any accepted mass, any residual."""

    def __init__(self, d: Derivation) -> None:
        self._accepted, self._residual = d.function("kept"), d.function("redrawn")

    def verdict(self, p: SymbolicArray, q: SymbolicArray) -> Verdict:
        return Verdict(self._accepted, self._residual)


def any_rule(d: Derivation, p: SymbolicArray, q: SymbolicArray) -> Reading:
    """A rule of which only that is supposed which every rule must keep."""
    rule = AnyRule(d)
    accepted, residual = rule.verdict(p, q)
    d.suppose("what is kept is part of what was drafted", accepted >= 0, accepted <= q)
    d.suppose("the residual is nowhere negative", residual >= 0)
    r = lemmas.read(d, rule, p, q)
    d.suppose("a rejection has something to redraw from", (r.redrawn > 0) | (r.rejected <= 0))
    return r


@theorem(
    "tv-line",
    "no token-level rule is closer to the target than TV(p, q) less its rejection probability",
    r"\mathrm{TV}(\mathrm{out},p) \ge \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
)
def tv_line(d: Derivation) -> None:
    """The residual may depend on the rejected token: then R is its average over rejected tokens, and the proof is the
    same."""
    p, q = d.pair()
    r = any_rule(d, p, q)
    lemmas.out_is_a_law(d, r)
    d.sum_lemma(
        "at each token the distances from p to out and from out to q cover that from p to q",
        abs(p - q) / 2 <= abs(p - r.out) / 2 + (q - r.accepted),
        modulo=[r.out - q],
    )
    distance = ft.divergence.total_variation
    d.goal("the TV line", distance(p, r.out) >= distance(p, q) - r.rejected)


@theorem(
    "on-the-line",
    "the rules that claim it are on the TV line: no rule with their rejection probability is closer",
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
    *(Subject(name, OnTheLine, settings) for name, settings in ON_THE_LINE),
)
def on_the_line(d: Derivation) -> None:
    for r in readings_on_the_line(d):
        lemmas.on_the_line(d, r)
        d.claim(r.rule, OnTheLine, r.p, r.q)


def readings_on_the_line(d: Derivation) -> Iterator[Reading]:
    """A part of the proof for each rule."""
    for name, settings in d.parts(ON_THE_LINE):
        p, q = d.pair()
        rule = d.rule(name, **settings)
        r = lemmas.read(d, rule, p, q)
        lemmas.residual_suffices(d, r, lemmas.laws(rule, p, q))
        yield r
