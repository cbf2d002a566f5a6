"""Lenience: what it emits, between which bounds, and how it gets looser.

Statement.  With Delta = P_rej / TV(p, q), out is p/l where q >= p/l, q where p < q < p/l, and Delta p + (1 - Delta) q
where q <= p. Hence min(p, q) <= out <= p/l, and as l falls acceptance and TV(out, p) grow.

Proof.  q - min(q, p/l) <= (q - p)+ = (p - q)+ - (p - q), so P_rej <= sum (p - q)+ = TV(p, q): the redraw raises no
token above p. Where q >= p nothing is redrawn; where q <= p a share Delta of p - q is added to q.
"""

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.claims import Ceiling, Induces
from proofs import lemmas
from proofs.derivation import Derivation, implies
from proofs.lemmas import Reading
from proofs.statements import Says
from proofs.theorem import Subject, theorem

FLOOR = Says("out >= min(p, q)", lambda rule, p, q: rule.induced(p, q) >= array_namespace(p).minimum(p, q))


def _lenient(d: Derivation, name: str = "lenience") -> Reading:
    p, q = d.pair()
    r = lemmas.read(d, d.rule(name), p, q)
    lemmas.residual_suffices(d, r)
    return r


@theorem(
    "lenience-closed-form",
    "lenience emits p/l where q >= p/l, q where p < q < p/l, and a mixture of p and q where q <= p",
    r"\mathrm{out} = p/\ell,\; q,\; \Delta p + (1-\Delta) q \text{ where } q \ge p/\ell,\; p < q < p/\ell,\; q \le p",
)
def closed_form(d: Derivation) -> None:
    r = _lenient(d)
    p, q, out, l = r.p, r.q, r.out, r.rule.l
    distance = ft.divergence.total_variation(p, q)
    d.sum_lemma("the residual is what the target has in excess", r.residual == abs(p - q) / 2, modulo=[p - q])
    d.sum_lemma("the ceiling cuts off a total variation", r.q - r.accepted == abs(q - p / l) / 2 + (q - p / l) / 2)
    d.goal("rejection probability", r.rejected == array_namespace(p).sum(abs(q - p / l)) / 2 + (1 - 1 / l) / 2)
    d.goal("cut region", implies(q >= p / l, out == p / l))
    d.goal("free region", implies((p < q) & (q < p / l), out == q))
    d.goal("filled region", implies(q <= p, distance * out == r.rejected * p + (distance - r.rejected) * q))


@theorem(
    "lenience-ceiling",
    "lenience, and the ceiling on every token, keep out below p/l",
    r"\mathrm{out} \le p/\ell",
    Subject("lenience", Ceiling),
    Subject("ceiling-everywhere", Ceiling),
    Subject("ceiling-none-off", Ceiling),
)
def ceiling(d: Derivation) -> None:
    for name in d.parts(("lenience", "ceiling-everywhere", "ceiling-none-off")):
        r = _lenient(d, name)
        d.claim(r.rule, Ceiling, r.p, r.q)


@theorem(
    "lenience-floor",
    "lenience leaves each token at least what target and draft agree on",
    r"\mathrm{out} \ge \min(p,q)",
    Subject("lenience", lambda rule: FLOOR),
)
def floor(d: Derivation) -> None:
    r = _lenient(d)
    d.claim(r.rule, FLOOR, r.p, r.q)


@theorem(
    "lenience-substituted-law",
    "lenience with l q for q in its residual emits a mixture of p/l and what it keeps",
    r"\mathrm{out} = \Delta p/\ell + (1-\Delta) m,\qquad"
    r"\Delta = \frac{P_{\mathrm{rej}}}{P_{\mathrm{rej}} + 1/\ell - 1}",
    Subject("lenience-substituted", Induces),
)
def substituted_law(d: Derivation) -> None:
    """The residual (p - l q)+ is l times p/l - m, whose mass is P_rej + 1/l - 1."""
    p, q = d.pair()
    r = lemmas.read(d, d.rule("lenience-substituted"), p, q)
    xp, l = array_namespace(p), r.rule.l
    raised, lacking = p / l, r.rejected + (1 / l - 1)
    share = r.rejected / xp.where(lacking > 0, lacking, xp.ones_like(lacking))
    d.name(raised=raised, share=share)
    d.sum_lemma("the residual is what lacks to p/l, times l", r.residual == p - l * r.accepted)
    d.lemma("at each token", r.residual == l * (raised - r.accepted))
    d.lemma("and its mass", r.redrawn == l * lacking)
    d.lemma("nothing is rejected where nothing lacks", implies(lacking <= 0, r.rejected <= 0))
    d.lemma("a share of it is redrawn", share * r.redrawn == l * r.rejected)
    d.lemma("and of what lacks at each token", r.out - r.accepted == share * (raised - r.accepted))
    d.claim(r.rule, Induces, p, q)


@theorem(
    "lenience-substituted-ceiling",
    "lenience with l q for q in its residual keeps out below p/l as well",
    r"\mathrm{out} \le p/\ell",
    Subject("lenience-substituted", Ceiling),
)
def substituted_ceiling(d: Derivation) -> None:
    """l (q - p/l)+ = (p - l q)+ - (p - l q), and p - l q sums to 1 - l >= 0: so P_rej is at most the residual's mass
    over l, and the redraw fills at most (p - l q)/l where l q < p."""
    p, q = d.pair()
    r = lemmas.read(d, d.rule("lenience-substituted"), p, q)
    l = r.rule.l
    d.sum_lemma("l times what is rejected, token by token", l * (q - r.accepted) == r.residual - (p - l * q))
    d.lemma("l times what is rejected is at most the residual's mass", l * r.rejected <= r.redrawn)
    d.lemma("the redraw adds at most 1/l times the residual", l * (r.out - r.accepted) <= r.residual)
    d.lemma("the whole draft is kept where something is redrawn", l * r.accepted + r.residual <= p)
    d.claim(r.rule, Ceiling, p, q)


@theorem(
    "overshoot-is-lenience",
    "the overshoot ablation, a ceiling on every token, is lenience: same accepted mass, same residual",
    r"(p - \min(q, p/\ell))_+ = (p-q)_+",
    Subject("ceiling-everywhere", lambda rule: Says("induces what lenience does", _same_as_lenience)),
)
def overshoot(d: Derivation) -> None:
    p, q = d.pair()
    rule = d.rule("ceiling-everywhere")
    ablation, lenience = rule.verdict(p, q), d.rule("lenience", l=rule.l).verdict(p, q)
    d.goal("accepted mass", ablation.accepted == lenience.accepted)
    d.goal("residual", ablation.residual == lenience.residual)


def _same_as_lenience(rule: object, p: object, q: object) -> object:
    return rule.induced(p, q) == ft.Lenience(l=rule.l).induced(p, q)  # type: ignore[attr-defined]
