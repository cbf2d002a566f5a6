"""Every rule emits a distribution.

Statement.  For each registered token-level rule out is nowhere negative, at least the accepted mass, and sums to one.

Proof.  out = m + P_rej residual / sum residual sums to (1 - P_rej) + P_rej as soon as the residual has mass wherever something is
rejected; it has at least the rejected mass, or mass one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from proofs import lemmas
from proofs.derivation import Derivation
from proofs.lemmas import Reading
from proofs.theorem import theorem
from proofs.theorems.contrastive import MU, law_of_contrast
from proofs.theorems.line import ON_THE_LINE
from proofs.theorems.mentored import any_multipliers
from proofs.theorems.sample_match import any_number_of_samples, thresholds
from proofs.theorems.sampled_laws import TOKEN_CASCADES, token_cascade
from proofs.theorems.truncated import truncated


def _holding_what_is_rejected(name: str, **settings: Any) -> Callable[[Derivation], Reading]:
    def reading(d: Derivation) -> Reading:
        p, q = d.pair()
        rule = d.rule(name, **settings)
        r = lemmas.read(d, rule, p, q)
        lemmas.residual_suffices(d, r, lemmas.laws(rule, p, q))
        return r

    return reading


def _any_accept_set(name: str) -> Callable[[Derivation], Reading]:
    def reading(d: Derivation) -> Reading:
        p, q = d.pair()
        allowed = d.subset("A")
        return lemmas.read(d, d.rule(name, allowed_set=lambda p: allowed), p, q)

    return reading


def _contrast(d: Derivation) -> Reading:
    p, q = d.pair()
    rule = d.rule("cos-contrastive", **MU)
    law = law_of_contrast(d, rule, p, q)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_is_rejection(d, r, law)
    return r


def _mentored(d: Derivation) -> Reading:
    return any_multipliers(d)[0]


PARTS: dict[str, Callable[[Derivation], Reading]] = {
    **{" ".join([name, *settings.values()]): _holding_what_is_rejected(name, **settings) for name, settings in ON_THE_LINE},
    **{
        name: _holding_what_is_rejected(name)
        for name in ("lenience-resample", "ceiling-none-off", "gated-excess", "gated-cliff")
    },
    **{name: partial(token_cascade, name=name) for name in TOKEN_CASCADES},
    **{name: _any_accept_set(name) for name in ("min-p", "typical", "typical-argmax", "eta", "top-k-match")},
    "lenience-substituted": _holding_what_is_rejected("lenience-substituted"),
    "truncated-min-p": partial(truncated, name="truncated-min-p"),
    "truncated-eta": partial(truncated, name="truncated-eta"),
    "sample-match": any_number_of_samples,
    "threshold": thresholds,
    "cos-contrastive": _contrast,
    "mentored": _mentored,
}


@theorem(
    "normalised",
    "every rule emits a distribution: nowhere negative, at least the accepted mass, of total one",
    r"\mathrm{out} \ge m \ge 0,\qquad \sum \mathrm{out} = 1",
)
def normalised(d: Derivation) -> None:
    for name, reading in PARTS.items():
        d.begin(name)
        r = reading(d)
        lemmas.something_to_redraw(d, r)
        d.goal("out is at least what is kept", r.out >= r.accepted)
        d.goal("out sums to one", d.total(r.out) == 1)
