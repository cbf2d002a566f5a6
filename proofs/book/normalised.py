"""Every rule emits a distribution.

Statement.  For each registered token-level rule out is nowhere negative, at least the accepted mass, and sums to one.

Proof.  out = m + P_rej residual / sum residual sums to (1 - P_rej) + P_rej as soon as the residual has mass wherever
something is rejected; it has at least the rejected mass, or mass one.
"""

from collections.abc import Callable
from typing import Any

from proofs import lemmas
from proofs.book.contrastive import MU, law_of_contrast
from proofs.book.line import ON_THE_LINE
from proofs.book.mentored import any_multipliers
from proofs.book.sample_match import any_number_of_samples, thresholds
from proofs.book.sampled_laws import FUZZY, TOKEN_CASCADES, token_cascade
from proofs.book.truncated import truncated
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.theorem import theorem


def _holding_what_is_rejected(d: Derivation, name: str, **settings: Any) -> Reading:
    p, q = d.pair()
    rule = d.rule(name, **settings)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_suffices(d, r, lemmas.laws(rule, p, q))
    return r


def _any_accept_set(d: Derivation, name: str) -> Reading:
    p, q = d.pair()
    allowed = d.subset("A")
    return lemmas.read(d, d.rule(name, allowed_set=lambda p: allowed), p, q)


def _contrast(d: Derivation, name: str, **settings: Any) -> Reading:
    p, q = d.pair()
    rule = d.rule(name, **settings)
    law = law_of_contrast(d, rule, p, q)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_is_rejection(d, r, law)
    return r


def _mentored(d: Derivation, name: str) -> Reading:
    return any_multipliers(d)[0]


# How each rule is read, with the lemma that shows that it has something to redraw from.
READINGS: dict[str, Callable[..., Reading]] = {
    **dict.fromkeys(dict(ON_THE_LINE), _holding_what_is_rejected),
    **dict.fromkeys(("lenience-substituted", "lenience-resample"), _holding_what_is_rejected),
    **dict.fromkeys(("ceiling-none-off", "gated-excess", "gated-cliff"), _holding_what_is_rejected),
    **dict.fromkeys(("min-p", "typical", "typical-argmax", "eta", "top-k-match"), _any_accept_set),
    **dict.fromkeys(TOKEN_CASCADES, token_cascade),
    **dict.fromkeys(("truncated-min-p", "truncated-eta"), truncated),
    "sample-match": any_number_of_samples,
    "threshold": thresholds,
    "cos-contrastive": _contrast,
    "mentored": _mentored,
}
RULES = (
    *((name, {}) for name in READINGS if name not in ("fuzzy", "cos-contrastive")),
    *FUZZY,
    ("cos-contrastive", MU),
)


@theorem(
    "normalised",
    "every rule emits a distribution: nowhere negative, at least the accepted mass, of total one",
    r"\mathrm{out} \ge m \ge 0,\qquad \sum \mathrm{out} = 1",
)
def normalised(d: Derivation) -> None:
    for name, settings in d.parts(RULES):
        r = READINGS[name](d, name, **settings)
        lemmas.something_to_redraw(d, r)
        d.goal("out is at least what is kept", r.out >= r.accepted)
        d.goal("out sums to one", d.total(r.out) == 1)
