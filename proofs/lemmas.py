"""The lemmas that nearly every proof about a token-level rule begins with, and that a new rule is tried with.

Each speaks of a `Reading`: the terms that come out when the rule's own code runs over symbols.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import fly_theory as ft
from fly_theory.any_rule import claims_of
from fly_theory.arrays import array_namespace
from fly_theory.claims import Induces
from proofs.derivation import Derivation, implies
from proofs.symbolic import SymbolicArray


class Reading(NamedTuple):
    """A rule read over symbols: its accepted mass and residual, the law of the emitted token, and the masses
    involved."""

    rule: Any
    p: SymbolicArray
    q: SymbolicArray
    accepted: SymbolicArray
    residual: SymbolicArray
    out: SymbolicArray
    rejected: SymbolicArray
    redrawn: SymbolicArray


def read(d: Derivation, rule: Any, p: SymbolicArray, q: SymbolicArray) -> Reading:
    """Run the rule, and show that it is one: 0 <= m <= q and a residual that is nowhere negative."""
    accepted, residual = rule.verdict(p, q)
    d.lemma("nothing negative is kept", accepted >= 0)
    rejected = d.mass("no more is kept than was drafted", q - accepted)
    redrawn = d.mass("the residual is nowhere negative", residual)
    out = rule.induced(p, q)
    d.name(m=accepted, residual=residual, out=out)
    return Reading(rule, p, q, accepted, residual, out, rejected, redrawn)


def laws(rule: Any, p: SymbolicArray, q: SymbolicArray) -> list[SymbolicArray]:
    """The laws that the rule claims to induce."""
    return [claim.law(p, q) for claim in claims_of(rule) if isinstance(claim, Induces)]


def residual_is_rejection(d: Derivation, r: Reading, law: SymbolicArray | None = None) -> None:
    """The residual has exactly the mass that is rejected, up to multiples of p - q or, given the law of a sampler,
    law - q."""
    null = (r.p if law is None else law) - r.q
    d.sum_lemma("the residual holds just what is rejected", r.q - r.accepted == r.residual, modulo=[null])
    d.lemma("the redraw adds the residual", r.out == r.accepted + r.residual)


def residual_suffices(d: Derivation, r: Reading, laws: Sequence[SymbolicArray] = ()) -> None:
    """The residual has at least the mass that is rejected, so that the redraw raises no token above its residual."""
    null = [r.p - r.q, *(law - r.q for law in laws)]
    d.sum_lemma("the residual holds what is rejected", r.q - r.accepted <= r.residual, modulo=null)
    d.lemma("the redraw adds at most the residual", r.out >= r.accepted, r.out <= r.accepted + r.residual)


def something_to_redraw(d: Derivation, r: Reading) -> None:
    """Where something is rejected the residual has mass."""
    d.lemma("a rejection has something to redraw from", implies(r.redrawn <= 0, r.rejected <= 0))


def out_is_a_law(d: Derivation, r: Reading) -> None:
    """The emitted token has a law: at least the accepted mass at each token, and of total one."""
    d.lemma("what is kept is emitted", r.out >= r.accepted)
    d.lemma("out sums to one", d.total(r.out) == 1)


def on_the_line(d: Derivation, r: Reading) -> None:
    """TV(out, p) = TV(p, q) - P_rej, token by token up to a multiple of out - q."""
    out_is_a_law(d, r)
    d.sum_lemma(
        "at each token the distances from p to out and from out to q add up",
        abs(r.p - r.q) / 2 == abs(r.p - r.out) / 2 + (r.q - r.accepted),
        modulo=[r.out - r.q],
    )
    distance = ft.divergence.total_variation
    d.lemma("on the line", distance(r.p, r.out) == distance(r.p, r.q) - r.rejected)


def redraws_another(d: Derivation, r: Reading) -> SymbolicArray:
    """For a rule that redraws from p without the rejected token: its residual has the rejected mass, and is p times
    what the other tokens pass on. Returns what each token passes on: its rejected mass divided by 1 - p."""
    xp = array_namespace(r.p)
    others = 1 - r.p
    passed_on = (r.q - r.accepted) / xp.where(others > 0, others, xp.ones_like(others))
    everything = d.mass("what a token passes on is nowhere negative", passed_on)
    d.name(passed_on=passed_on)
    d.lemma("a token passes on what it rejects", passed_on * others == r.q - r.accepted)
    d.lemma("each token receives its share", r.residual == r.p * (everything - passed_on))
    d.sum_lemma(
        "the residual holds just what is rejected",
        r.q - r.accepted == r.residual,
        modulo=[r.p * everything - passed_on],
    )
    d.lemma("the redraw adds the residual", r.out == r.accepted + r.residual)
    return passed_on


def largest_is_positive(d: Derivation, p: SymbolicArray) -> SymbolicArray:
    """The largest probability of a distribution is positive: otherwise it would sum to zero."""
    largest = array_namespace(p).max(p, axis=-1)
    d.sum_lemma("a distribution has a positive largest probability", implies(largest <= 0, p <= 0 * p))
    return largest
