"""Rules that sample a law exactly.

Statement.  The cascades, interpolation and fuzzy verification emit the law that they name. The token cascades' law is
that of an accept-set rule, at distance q(A) TV(q_A, p) from the target.

Proof.  For any law r, q - min(q, r) = (r - q)+ - (r - q), and r - q sums to zero: the redraw adds (r - q)+ to min(q,
r), which makes r. Rules with residual (p - q)+ have (r - q)+ in proportion to it.
"""

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.claims import Induces
from fly_theory.distributions import restrict
from proofs import lemmas
from proofs.derivation import Derivation, implies
from proofs.lemmas import Reading
from proofs.theorem import Subject, theorem

SWITCHES = ("cascade-chow", "cascade-diff", "cascade-opt")
TOKEN_CASCADES = ("cascade-token-v1", "cascade-token-v2", "cascade-token-v3")
FUZZY = tuple(("fuzzy", {"divergence": divergence}) for divergence in ("kl", "js", "tv"))


@theorem(
    "switch-law",
    "the switching cascades and fuzzy verification emit the draft where they trust it and the target elsewhere",
    r"\mathrm{out} = q \text{ where trusted, else } p",
    *(Subject(name, Induces) for name in SWITCHES),
    *(Subject(name, Induces, settings) for name, settings in FUZZY),
)
def switch_law(d: Derivation) -> None:
    for name in d.parts(SWITCHES):
        p, q = d.pair()
        rule = d.rule(name)
        r = lemmas.read(d, rule, p, q)
        lemmas.residual_is_rejection(d, r, *lemmas.laws(rule, p, q))
        d.claim(rule, Induces, p, q)
    for name, settings in d.parts(FUZZY):
        p, q = d.pair()
        rule = d.rule(name, **settings)
        r = lemmas.read(d, rule, p, q)
        close = rule._close(p, q)[0]
        d.sum_lemma("where the two are close all is kept", implies(close, r.accepted == q))
        d.sum_lemma(
            "elsewhere the residual is what is rejected", implies(~close, q - r.accepted == r.residual), modulo=[p - q]
        )
        d.lemma("where nothing is rejected nothing is redrawn", implies(close, r.out == r.accepted))
        d.lemma("elsewhere the redraw adds the residual", implies(~close, r.out == r.accepted + r.residual))
        d.claim(rule, Induces, p, q)


@theorem(
    "cascade-token-law",
    "the token cascades emit q on their set and p elsewhere, at distance q(A) TV(q_A, p)",
    r"\mathrm{out} = q\,1_A + (1-q(A))\,p,\qquad \mathrm{TV}(\mathrm{out},p) = q(A)\,\mathrm{TV}(q_A,p)",
    *(Subject(name, Induces) for name in TOKEN_CASCADES),
)
def cascade_token_law(d: Derivation) -> None:
    for name in d.parts(TOKEN_CASCADES):
        r = token_cascade(d, name)
        p, q, xp = r.p, r.q, array_namespace(r.p)
        d.claim(r.rule, Induces, p, q)
        chosen = r.rule._set(p, q)
        on_set, mass = restrict(q, chosen), d.total(xp.where(chosen, q, 0 * q))
        d.lemma("out is p moved towards q on the set", r.out == mass * on_set + (1 - mass) * p)
        d.sum_lemma("distances shrink by q(A)", abs(p - r.out) == mass * abs(p - on_set))
        distance = ft.divergence.total_variation
        d.goal("distance", distance(p, r.out) == mass * distance(p, on_set))


def token_cascade(d: Derivation, name: str) -> Reading:
    """A token cascade, whose law is shown to be one."""
    p, q = d.pair()
    rule = d.rule(name)
    kept = array_namespace(p, q).where(rule._set(p, q), q, 0 * q)
    d.sum_lemma("the set holds at most the whole draft", kept <= q)
    d.mass("the draft on the set is nowhere negative", kept)
    (law,) = lemmas.laws(rule, p, q)
    d.lemma("the law is one", law >= 0, d.total(law) == 1)
    r = lemmas.read(d, rule, p, q)
    lemmas.residual_is_rejection(d, r, law)
    return r


@theorem(
    "interpolation-law",
    "interpolation emits l p + (1 - l) q, as CoS does with draft weight 1 - l",
    r"\mathrm{out} = \ell\,p + (1-\ell)\,q",
    Subject("interpolation", Induces),
)
def interpolation_law(d: Derivation) -> None:
    p, q = d.pair()
    r = lemmas.read(d, d.rule("interpolation"), p, q)
    l = r.rule.l
    d.sum_lemma("what is rejected", q - r.accepted == l * (r.residual - (p - q)))
    d.lemma("the redraw adds l times the residual", r.out == r.accepted + l * r.residual)
    d.claim(r.rule, Induces, p, q)
