"""Matching a draft token against samples of the target, and SGLang's thresholds.

Statement.  With one sample out = p. With n samples out <= n p. With thresholds, out <= max(1/single, 1/acc) p. All
emit out = q - r + p sum r, where r = (q - m)/(1 - p).

Proof.  A rejected token x passes q(x) (1 - a(x)) / (1 - p(x)) on, and each other token v receives p(v) times that.
With 1 - a(x) <= 1 - p(x) no token passes on more than q(x), so v receives at most p(v) (1 - q(v)); what it keeps is
q(v) a(v), and a <= n p by Bernoulli's inequality. For n = 1 both are equalities, except at a token of probability
one. The law counts the draw that a token would pass on to itself as well: it gives up r and gets p r back.
"""

from fly_theory.arrays import array_namespace
from fly_theory.claims import Ceiling, Induces, Lossless
from fly_theory.rules.base import law_of_redrawing_other
from proofs import lemmas
from proofs.derivation import Derivation, implies
from proofs.lemmas import Reading
from proofs.theorem import Subject, theorem

_LAW_IN_TEX = r"\mathrm{out} = q - r + p \sum r,\qquad r = \frac{q - m}{1 - p}"


def _n_times(rule: object) -> Ceiling:
    return Ceiling(rule.n, "n")  # type: ignore[attr-defined]


def _law(rule: object) -> Induces:
    return law_of_redrawing_other(rule._rejected)  # type: ignore[attr-defined]


@theorem(
    "sample-match-lossless",
    "matching one sample of the target emits the target",
    r"q\,p + p \sum_{x \ne v} q(x) = p",
    Subject("sample-match", Lossless, {"n": 1}),
)
def sample_match_lossless(d: Derivation) -> None:
    p, q = d.pair()
    r = lemmas.read(d, d.rule("sample-match", n=1), p, q)
    one_sample(d, r)
    d.claim(r.rule, Lossless, p, q)


@theorem(
    "sample-match-ratio",
    "matching any of n samples of the target raises no token above n times its probability",
    r"\mathrm{out} \le n\,p",
    Subject("sample-match", _n_times),
)
def sample_match_ratio(d: Derivation) -> None:
    r = any_number_of_samples(d)
    d.lemma("a token keeps at most n p q", r.accepted <= r.rule.n * r.p * r.q)
    d.claim(r.rule, _n_times(r.rule), r.p, r.q)


@theorem(
    "sample-match-law",
    "matching any of n samples of the target replaces a share r of the draft by the target",
    _LAW_IN_TEX,
    Subject("sample-match", _law),
)
def sample_match_law(d: Derivation) -> None:
    r = any_number_of_samples(d)
    d.claim(r.rule, _law(r.rule), r.p, r.q)


def any_number_of_samples(d: Derivation, name: str = "sample-match") -> Reading:
    """The rule for any n."""
    p, q = d.pair()
    rule = d.rule(name)
    missed = (1 - p) ** rule.n
    d.induction(
        "a token is in none of n samples with probability between 1 - n p and 1 - p",
        lambda missed, n: (n >= 1) & (missed >= 0) & (missed <= 1 - p) & (missed >= 1 - n * p),
        start=(1 - p, d.number("n") * 0 + 1),
        step=lambda missed, n: (missed * (1 - p), n + 1),
        at=(missed, rule.n),
    )
    r = lemmas.read(d, rule, p, q)
    _others_pass_on_no_more_than_was_drafted(d, r)
    return r


def _highest(rule: object) -> Ceiling:
    single, acc = 1 / rule.exact("single"), 1 / rule.exact("acc")  # type: ignore[attr-defined]
    higher = array_namespace(single).maximum(single, acc) if hasattr(single, "is_symbolic") else max(single, acc)
    return Ceiling(higher, "max(1/single, 1/acc)")


@theorem(
    "threshold-ratio",
    "SGLang's thresholds raise no token above its probability over the smaller of them",
    r"\mathrm{out} \le \max(1/\mathrm{single}, 1/\mathrm{acc})\,p",
    Subject("threshold", _highest),
)
def threshold_ratio(d: Derivation) -> None:
    r = thresholds(d)
    factor = _highest(r.rule).factor
    d.name(factor=factor)
    d.lemma("the factor is at least 1", factor >= 1)
    d.lemma("a token keeps at most p q times the factor", r.accepted <= factor * r.p * r.q)
    d.claim(r.rule, _highest(r.rule), r.p, r.q)


@theorem(
    "threshold-law",
    "SGLang's thresholds replace a share r of the draft by the target",
    _LAW_IN_TEX,
    Subject("threshold", _law),
)
def threshold_law(d: Derivation) -> None:
    r = thresholds(d)
    d.claim(r.rule, _law(r.rule), r.p, r.q)


def thresholds(d: Derivation, name: str = "threshold") -> Reading:
    """The rule for any two thresholds."""
    p, q = d.pair()
    r = lemmas.read(d, d.rule(name), p, q)
    _others_pass_on_no_more_than_was_drafted(d, r)
    return r


def one_sample(d: Derivation, r: Reading) -> None:
    """What the other tokens pass on to a possible token is their whole draft."""
    passed_on = lemmas.redraws_another(d, r)
    another = d.token("w")
    d.sum_lemma(
        "beside a possible token, every other token passes on what it drafted",
        implies(r.p > 0, passed_on.at(another) == r.q.at(another)),
        over=another,
        apart_from=d.world.generic,
    )
    d.lemma("a token receives p (1 - q)", r.residual == r.p * (1 - r.q))
    d.lemma("and keeps p q", r.accepted == r.p * r.q)


def _others_pass_on_no_more_than_was_drafted(d: Derivation, r: Reading) -> None:
    passed_on = lemmas.redraws_another(d, r)
    another = d.token("w")
    d.sum_lemma(
        "every other token passes on at most what it drafted",
        passed_on.at(another) <= r.q.at(another),
        over=another,
        apart_from=d.world.generic,
    )
    d.lemma("a token receives at most p (1 - q)", r.residual <= r.p * (1 - r.q))
