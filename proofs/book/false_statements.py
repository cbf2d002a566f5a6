"""Statements that are false, each kept with its smallest counterexample in proofs/refuted.

They are what one might expect of a rule, or what its name suggests, and what a wrong implementation would satisfy by
luck.
"""

from fly_theory.claims import Ceiling, Lossless, OnTheLine
from proofs.theorem import Subject, false_statement

_HALF = {"l": 0.5}


def _one_over_l(rule: object) -> Ceiling:
    return Ceiling(1 / rule.exact("l"), "1/l")  # type: ignore[attr-defined]


false_statement(
    "lenience-substituted-on-line",
    "lenience with l q for q in its residual is on the TV line",
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
    Subject("lenience-substituted", lambda rule: OnTheLine(), _HALF),
    "A token with l q < p < q is redrawn although it has too much mass already.",
)

false_statement(
    "lenience-resample-ceiling",
    "lenience that redraws from the target keeps out below p/l",
    r"\mathrm{out} \le p/\ell",
    Subject("lenience-resample", _one_over_l, _HALF),
    "A token at the ceiling is redrawn as well.",
)

false_statement(
    "lenience-resample-lossless",
    "lenience that redraws from the target is lossless at l = 1",
    r"\ell = 1 \;\Rightarrow\; \mathrm{out} = p",
    Subject("lenience-resample", lambda rule: Lossless(), {"l": 1}),
    "The redraw ignores what the draft has covered already.",
)

false_statement(
    "lenience-lossless",
    "lenience is lossless",
    r"\mathrm{out} = p",
    Subject("lenience", lambda rule: Lossless(), _HALF),
    "It emits min(q, p/l) where the draft exceeds the target.",
)

false_statement(
    "cos-ceiling",
    "CoS with half the weight on the draft at most doubles a token's probability",
    r"\mathrm{out} \le 2\,p",
    Subject("cos", lambda rule: Ceiling(2), {"w": 0.5}),
    "A token that only the draft proposes keeps half its mass; no other number is a bound either (cos-unbounded).",
)

false_statement(
    "min-p-on-line",
    "accepting the min-p set is on the TV line",
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
    Subject("min-p", lambda rule: OnTheLine(), {"base": 0.5}),
    "A token outside the set is rejected even where target and draft agree.",
)

false_statement(
    "typical-on-line",
    "typical acceptance is on the TV line",
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
    Subject("typical", lambda rule: OnTheLine(), {"eps": 0.3, "delta": 0.6}),
    "A token outside the set is rejected even where target and draft agree.",
)

false_statement(
    "ceiling-none-off-on-line",
    "the ceiling on the allowed set, with nothing kept off it, is on the TV line",
    r"\mathrm{TV}(\mathrm{out},p) = \mathrm{TV}(p,q) - P_{\mathrm{rej}}",
    Subject("ceiling-none-off", lambda rule: OnTheLine(), {"base": 0.5, "l": 0.5}),
    "Tokens off the set are rejected and then redrawn.",
)

false_statement(
    "ceiling-on-set-ceiling",
    "the ceiling on the allowed set alone keeps out below p/l",
    r"\mathrm{out} \le p/\ell",
    Subject("ceiling-on-set", _one_over_l, {"base": 0.5, "l": 0.5}),
    "Improbable tokens are kept unchecked.",
)

false_statement(
    "sample-match-two-lossless",
    "matching either of two samples of the target is lossless",
    r"n = 2 \;\Rightarrow\; \mathrm{out} = p",
    Subject("sample-match", lambda rule: Lossless(), {"n": 2}),
    "A drafted token has two chances to be matched.",
)

false_statement(
    "threshold-lossless",
    "a threshold of one half on the target is lossless",
    r"\mathrm{out} = p",
    Subject("threshold", lambda rule: Lossless(), {"single": 0.5, "acc": 1}),
    "A token above the threshold is accepted outright.",
)
