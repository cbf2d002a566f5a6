"""Rules that accept an allowed set A and redraw from the target.

Statement.  For any set A, however chosen, out = q 1_A + (1 - q(A)) p and TV(out, p) = q(A) TV(q_A, p). When A misses
a token that target and draft both can produce, the rule is strictly above the TV line. Its distance to the truncated
target p_A, which the matched baseline emits, lies between (1 - q(A)) (1 - p(A)) and that plus q(A) TV(q_A, p_A).
Trying n drafts in turn gives out_n = (1 - s_n) q_A + s_n p with s_n = (1 - q(A))^n: more drafts, less target.
Deterministic candidates, such as the top k of a draft tree, collapse to a point mass at the first that is allowed.

Proof.  out - p = q(A) (q_A - p). On the line each token would have out between p and q; a missed token keeps out = (1
- q(A)) p there, while its whole draft is rejected, which wastes min(p, q). The law of n drafts is an induction on n;
a candidate with q(A) = 0 changes nothing, and one with q(A) = 1 is emitted.
"""

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.claims import Induces
from fly_theory.distributions import restrict
from fly_theory.rules import Verdict
from proofs import lemmas
from proofs.derivation import Derivation, implies
from proofs.lemmas import Reading
from proofs.symbolic import SymbolicArray
from proofs.theorem import Subject, theorem

ACCEPT_SETS = ("min-p", "typical", "eta", "top-k-match")
_tv = ft.divergence.total_variation


def _reading(d: Derivation, name: str) -> tuple[Reading, SymbolicArray, SymbolicArray, SymbolicArray]:
    """The rule with any set A in place of its own, the mask of A, q(A), and q_A."""
    p, q = d.pair()
    allowed = d.subset("A")
    r = lemmas.read(d, d.rule(name, allowed_set=lambda p: allowed), p, q)
    lemmas.residual_suffices(d, r)
    mass = d.mass("what is kept is nowhere negative", r.accepted)
    return r, allowed, mass, restrict(q, allowed)


@theorem(
    "accept-set-law",
    "accepting a set A and redrawing from p mixes q on A with p, at distance q(A) TV(q_A, p) from the target",
    r"\mathrm{out} = q\,1_A + (1-q(A))\,p,\qquad \mathrm{TV}(\mathrm{out},p) = q(A)\,\mathrm{TV}(q_A,p)",
    *(Subject(name, Induces) for name in ACCEPT_SETS),
)
def accept_set_law(d: Derivation) -> None:
    for name in d.parts(ACCEPT_SETS):
        r, _, mass, on_set = _reading(d, name)
        d.claim(r.rule, Induces, r.p, r.q)
        d.lemma("out is p moved towards q on the set", r.out == mass * on_set + (1 - mass) * r.p)
        d.sum_lemma("distances shrink by q(A)", abs(r.p - r.out) == mass * abs(r.p - on_set))
        d.goal("distance", _tv(r.p, r.out) == mass * _tv(r.p, on_set))


@theorem(
    "accept-set-argmax",
    "typical acceptance that redraws the argmax emits q on its set and the most likely token for the rest",
    r"\mathrm{out} = q\,1_A + (1-q(A))\,e_{\arg\max p}",
    Subject("typical-argmax", Induces),
)
def accept_set_argmax(d: Derivation) -> None:
    p, q = d.pair()
    allowed = d.subset("A")
    r = lemmas.read(d, d.rule("typical-argmax", allowed_set=lambda p: allowed), p, q)
    d.claim(r.rule, Induces, p, q)


@theorem(
    "accept-set-above-line",
    "an accept-set rule whose set misses a token that both can produce is strictly above the TV line",
    r"t \notin A,\; p(t) q(t) > 0 \;\Rightarrow\; \mathrm{TV}(\mathrm{out},p) > \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
)
def accept_set_above_line(d: Derivation) -> None:
    for name in d.parts(ACCEPT_SETS):
        r, allowed, mass, _ = _reading(d, name)
        missed = d.token("t")
        d.suppose("the set misses a token", ~allowed.at(missed))
        d.suppose("that target and draft can produce", r.p.at(missed) > 0, r.q.at(missed) > 0)
        lemmas.out_is_a_law(d, r)
        d.lemma("out", r.out == r.accepted + (1 - mass) * r.p)
        d.sum_lemma(
            "every other token is at least on the line",
            abs(r.p - r.q) / 2 <= abs(r.p - r.out) / 2 + (r.q - r.accepted) + (r.out - r.q) / 2,
            apart_from=missed,
        )
        waste = abs(r.p - r.out) / 2 + (r.q - r.accepted) + (r.out - r.q) / 2 - abs(r.p - r.q) / 2
        d.lemma("the missed token is above it", waste.at(missed) > 0)
        d.goal("strictly above the line", _tv(r.p, r.out) > _tv(r.p, r.q) - r.rejected)


@theorem(
    "matched-baseline",
    "an accept-set rule accepts no less than its matched baseline, but misses the truncated target",
    r"(1-q(A))(1-p(A)) \le \mathrm{TV}(\mathrm{out},p_A) \le q(A)\,\mathrm{TV}(q_A,p_A) + (1-q(A))(1-p(A))",
)
def matched_baseline(d: Derivation) -> None:
    for name in d.parts(ACCEPT_SETS):
        r, allowed, mass, on_set = _reading(d, name)
        p, q, xp = r.p, r.q, array_namespace(r.p)
        inside, outside = xp.where(allowed, p, 0 * p), xp.where(allowed, 0 * p, p)
        target = d.mass("the allowed part of the target is nowhere negative", inside)
        d.suppose("the allowed set has mass", target > 0)
        d.sum_lemma("and no more than all", inside <= p)
        truncated = r.rule.matched_target(p)
        d.lemma("the truncated target is a law", truncated >= 0, d.total(truncated) == 1)
        d.name(truncated=truncated, on_set=on_set)
        d.lemma(
            "it is nowhere below the target on the set, and zero off it",
            truncated >= inside,
            implies(~allowed, truncated <= 0),
        )
        d.lemma("out", r.out == mass * on_set + (1 - mass) * p, r.out == r.accepted + (1 - mass) * p)
        lemmas.out_is_a_law(d, r)
        d.sum_lemma("p off the set", outside == p - inside)
        d.sum_lemma(
            "what out has off the set is all too much",
            (1 - mass) * outside <= abs(truncated - r.out) / 2,
            modulo=[r.out - truncated],
        )
        d.goal("at least", _tv(truncated, r.out) >= (1 - mass) * (1 - target))
        d.sum_lemma("truncation moves the mass off the set", abs(truncated - p) / 2 == outside, modulo=[truncated - p])
        d.sum_lemma(
            "distances to a mixture are at most the mixed distances",
            abs(truncated - r.out) <= mass * abs(truncated - on_set) + (1 - mass) * abs(truncated - p),
        )
        d.goal("at most", _tv(truncated, r.out) <= mass * _tv(truncated, on_set) + (1 - mass) * (1 - target))
        d.sum_lemma("the baseline keeps no more than the set", xp.minimum(q, truncated) <= r.accepted)
        d.goal("acceptance", xp.sum(xp.minimum(q, truncated), axis=-1) <= r.rule.acceptance(p, q))


@theorem(
    "iid-drafts",
    "an accept-set rule that tries n drafts in turn moves ever further from the target",
    r"\mathrm{out}_n = (1-s_n)\,q_A + s_n\,p,\; s_n = (1-q(A))^n,\; "
    r"\mathrm{TV}(\mathrm{out}_{n+1},p) \ge \mathrm{TV}(\mathrm{out}_n,p)",
)
def iid_drafts(d: Derivation) -> None:
    """out_0 = p, and one draft more redraws from what the others would emit."""
    for name in d.parts(ACCEPT_SETS):
        r, _, mass, on_set = _reading(d, name)
        p, q = r.p, r.q
        d.suppose("the draft can produce an allowed token", mass > 0)
        d.lemma("q on the set is a law", on_set >= 0, d.total(on_set) == 1, r.accepted == mass * on_set)

        def one_more(out: SymbolicArray, share: SymbolicArray) -> tuple[SymbolicArray, SymbolicArray]:
            return r.rule.induced_from(Verdict(r.accepted, out), q), (1 - mass) * share  # noqa: B023

        out, share = d.function("out_n"), d.number("s_n")
        d.induction(
            "the law of n drafts",
            lambda out, share: (
                (out == (1 - share) * on_set + share * p)  # noqa: B023
                & (d.total(out) == 1)
                & (share >= 0)
                & (share <= 1)
            ),
            start=(p, d.number("s_n") * 0 + 1),
            step=one_more,
            at=(out, share),
        )
        after, shorter = one_more(out, share)
        d.sum_lemma("the distance of n drafts", abs(p - out) == (1 - share) * abs(p - on_set))
        d.lemma("the law of n + 1 drafts", after == (1 - shorter) * on_set + shorter * p)
        d.sum_lemma("the distance of n + 1 drafts", abs(p - after) == (1 - shorter) * abs(p - on_set))
        apart = d.mass("distances are nowhere negative", abs(p - on_set))
        d.goal("distance", _tv(p, out) == (1 - share) * _tv(p, on_set))
        d.goal("more drafts, less target", (1 - shorter) * apart >= (1 - share) * apart, _tv(p, after) >= _tv(p, out))


@theorem(
    "deterministic-drafts",
    "of deterministic candidates an accept-set rule emits the first allowed for certain, else the target",
    r"q(A) = 1 \Rightarrow \mathrm{out} = q,\qquad q(A) = 0 \Rightarrow \mathrm{out} = \mathrm{later}",
)
def deterministic_drafts(d: Derivation) -> None:
    """One candidate more, before those that would emit any law `later`: a point mass q has q(A) = 1 or q(A) = 0."""
    for name in d.parts(ACCEPT_SETS):
        r, allowed, mass, _ = _reading(d, name)
        p, q, xp = r.p, r.q, array_namespace(r.p)
        later = d.row("later")
        out = r.rule.induced_from(Verdict(r.accepted, later), q)
        d.mass("the draft off the set is nowhere negative", xp.where(allowed, 0 * q, q))
        d.goal("an allowed candidate is emitted", implies(mass == 1, out == q))
        d.goal("another changes nothing", implies(mass == 0, out == later))
        d.goal("and without others the target is emitted", implies(mass == 0, r.out == p))
