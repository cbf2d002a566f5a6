"""Whether the draft rows q^ that a verifier is told are the law q that drafts are drawn from, and how they are not."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from fly_theory.conformance.cases import Case
from fly_theory.conformance.laws import Row, Table, Text, text_law
from fly_theory.report import Outcome, Result, Witness

__all__ = ["told_findings"]


def told_findings(cases: Iterable[Case]) -> Iterator[Result]:
    """One result for each way in which q^ can be wrong. They inform; what is emitted decides."""
    cases = list(cases)
    rows = [(text, *_padded(case, text), case.rounding) for case in cases for text in _prefixes(case)]
    for name, fine, said in _CHECKS:
        wrong = [(text, told, drawn) for text, told, drawn, slack in rows if not fine(told, drawn, slack)]
        if not wrong:
            yield Result(name, "held", len(rows), asked=False)
            continue
        text, told, drawn = wrong[0]
        witness = Witness({"q": drawn, **({"prefix": text} if text else {})}, "q^", told, drawn)
        yield Result(name, "refuted", len(rows), witness, said(told, drawn), asked=False)
    dtypes = [law.dtype or "exact" for law in (cases[0].told, cases[0].drawn) if isinstance(law, Table)]
    if len(dtypes) == 2:
        told_dtype, drawn_dtype = dtypes
        detail = f"q^ is {told_dtype}, drafts are drawn in {drawn_dtype}"
        outcome: Outcome = "held" if told_dtype == drawn_dtype else "refuted"
        yield Result("q^ has the dtype drafts are drawn in", outcome, 1, detail=detail, asked=False)


def _prefixes(case: Case) -> Iterator[Text]:
    for size in range(case.draft_length):
        yield from text_law(case.drawn, size)


def _padded(case: Case, text: Text) -> tuple[Row, Row]:
    told, drawn = case.told(text), case.drawn(text)
    width = max(len(told), len(drawn))
    return told + (Fraction(0),) * (width - len(told)), drawn + (Fraction(0),) * (width - len(drawn))


def _outside(told: Row, drawn: Row) -> Fraction:
    return sum((mass for mass, drawable in zip(told, drawn, strict=True) if not drawable), Fraction(0))


def _distance(told: Row, drawn: Row) -> Fraction:
    return sum((abs(mass - other) for mass, other in zip(told, drawn, strict=True)), Fraction(0)) / 2


# What is looked at, whether it is fine up to the rounding of the numbers given, and what is said when it is not.
_CHECKS: tuple[tuple[str, Callable[[Row, Row, Fraction], bool], Callable[[Row, Row], str]], ...] = (
    (
        "q^ is normalised",
        lambda told, _, slack: abs(sum(told, Fraction(-1))) <= 2 * slack,
        lambda told, _: f"q^ sums to {sum(told)}",
    ),
    (
        "q^ has mass only where drafts are drawn",
        lambda told, drawn, slack: _outside(told, drawn) <= slack,
        lambda told, drawn: f"q^ gives mass {_outside(told, drawn)} to tokens that are never drafted",
    ),
    (
        "q^ is a point mass if the draft is one",
        lambda told, drawn, _: max(drawn) < 1 or told == drawn,
        lambda *_: "the draft is an argmax, q^ is not",
    ),
    (
        "q^ is the law drafts are drawn from",
        lambda told, drawn, slack: _distance(told, drawn) <= slack,
        lambda told, drawn: f"half the sum of |q^ - q| is {_distance(told, drawn)}",
    ),
)
