"""From what was seen of a verifier to a report: the verdict, the bound it keeps, the smallest counterexample."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from fly_theory.arrays import as_fraction
from fly_theory.claims import Ceiling, Claim, Lossless
from fly_theory.conformance.cases import Case
from fly_theory.conformance.emitted import Emitted, readable, surely
from fly_theory.conformance.guard import CallFailed
from fly_theory.conformance.observations import Observations
from fly_theory.conformance.rates import Rates, mean_rates, rates
from fly_theory.errors import InvalidInput
from fly_theory.report import Estimate, Report, Result, VerdictName, Witness, show

# How much larger the ratio of small probabilities may come out by rounding.
_RATIO_ROUNDING = 1e-4

__all__ = ["check_claims", "invalid", "summarise"]


def check_claims(claims: Sequence[Claim]) -> None:
    """Refuse claims that cannot be judged from outside.

    Raises
    ------
    InvalidInput
        For anything but Lossless and ceilings that are numbers.
    """
    for claim in claims:
        if not (isinstance(claim, Lossless) or (isinstance(claim, Ceiling) and not callable(claim.factor))):
            msg = (
                f"claims hold {claim!r}; a black box is judged on Lossless() and Ceiling(number); another law is goal="
            )
            raise InvalidInput(msg)


def invalid(subject: str, failed: CallFailed, settings: Mapping[str, Any], informing: Iterable[Result] = ()) -> Report:
    """The report on a verifier that failed on inputs it must be able to handle."""
    witness = Witness(failed.inputs, "the answer", failed.what, "a list of token ids")
    runs = Result("runs", "refuted", 1, witness, failed.what)
    return Report(subject, "invalid", (runs, *informing), settings=settings)


def summarise(
    subject: str,
    seen: Observations,
    claims: Sequence[Claim],
    settings: Mapping[str, Any],
    *,
    enough: bool,
    witness: Witness | None = None,
) -> Report:
    """The report on a verifier that ran.

    `enough` says whether there was time to see as much as was asked for; `witness` shows what a joint law does not.
    """
    # Changed experiments count where those given show nothing.
    judged = seen.emitted if any(emitted.differs for emitted in seen.emitted) else [*seen.emitted, *seen.changed]
    lossless = _lossless(judged, seen.left_out, asked=Lossless() in claims, enough=enough, witness=witness)
    ratio = max((emitted.ratio for emitted in judged), key=_by_least)
    kept = list(filter(None, map(rates, seen.emitted)))
    slower = next((each for each in kept if each.missed > 0), None)
    return Report(
        subject,
        _verdict(lossless, slower),
        (
            lossless,
            *(_ceiling(claim, ratio, len(judged)) for claim in claims if isinstance(claim, Ceiling)),
            *(replace(result, asked=lossless.asked) for result in seen.changes),
            *([_bound(ratio, len(judged))] if lossless.outcome == "refuted" else []),
            _support(judged),
            *([_speed(kept, slower)] if kept else []),
            *seen.informing,
        ),
        tv=max((emitted.tv for emitted in judged), key=_by_least),
        max_ratio=ratio,
        measures=mean_rates(kept),
        settings=settings,
    )


def _by_least(quantity: Any) -> tuple[Any, Any]:
    return surely(quantity), quantity.value if isinstance(quantity, Estimate) else quantity


def _verdict(lossless: Result, slower: Rates | None) -> VerdictName:
    if lossless.outcome == "refuted":
        return "lossy"
    if lossless.outcome == "undecided":
        return "undecided"
    return "lossless but slower" if slower is not None else "lossless"


def _lossless(
    judged: Sequence[Emitted], left_out: int, *, asked: bool, enough: bool, witness: Witness | None
) -> Result:
    wrong = next((emitted for emitted in judged if emitted.differs), None)
    if wrong is None:
        detail = f"joint laws of up to {max(emitted.case.positions for emitted in judged)} tokens"
        detail += f"; {left_out} cases left out for lack of time" if left_out else ""
        return Result("lossless", "held" if enough else "undecided", len(judged), detail=detail, asked=asked)
    case = wrong.case
    got, expected = readable(wrong.law, case), readable(case.goal_law, case)
    witness = witness or Witness(case.shown(), "out", got, expected, test=_as_test(case))
    detail = f"TV {show(wrong.tv)} in the smallest case"
    return Result("lossless", "refuted", len(judged), witness, detail, asked)


def _ceiling(claim: Ceiling, ratio: Any, cases: int) -> Result:
    slack = 0 if isinstance(ratio, Fraction) else _RATIO_ROUNDING
    broken = surely(ratio) > as_fraction(claim.factor) * (1 + slack)  # type: ignore[arg-type]
    return Result(str(claim), "refuted" if broken else "held", cases, detail=f"largest out/p {show(ratio)}")


def _bound(ratio: Any, cases: int) -> Result:
    name = "smallest ceiling kept"
    if surely(ratio) == math.inf:
        return Result(name, "not applicable", cases, detail="mass lands where the target has none", asked=False)
    return Result(name, "held", cases, detail=f"out <= {show(ratio)} p", asked=False)


def _support(judged: Sequence[Emitted]) -> Result:
    name, cases = "support within the target", len(judged)
    leaking = next((emitted for emitted in judged if surely(emitted.ratio) == math.inf), None)
    if leaking is None:
        return Result(name, "held", cases, asked=False)
    outside = {text: mass for text, mass in leaking.law.items() if text not in leaking.case.goal_law}
    return Result(name, "refuted", cases, Witness(leaking.case.shown(), "mass outside", outside, 0), asked=False)


def _speed(kept: Sequence[Rates], slower: Rates | None) -> Result:
    name = "keeps what the ratio rule keeps"
    if slower is None:
        return Result(name, "held", len(kept), asked=False)
    witness = Witness(slower.case.shown(), "share of drafts kept", slower.own, slower.ratio_rule)
    return Result(name, "refuted", len(kept), witness, asked=False)


def _as_test(case: Case) -> str:
    """A pytest case for rows that are the same after every prefix, of exact numbers."""
    rows = {name: row for name, row in case.shown().items() if name != "K"}
    plain = case.goal is case.given and case.candidates is None and type(case) is Case
    if not plain or case.rounding or not all(isinstance(row, tuple) for row in rows.values()):
        return ""
    written = {name: "[" + ", ".join(f'"{mass}"' for mass in row) + "]" for name, row in rows.items()}
    told = f", told={written['q^']}" if "q^" in written else ""
    eos = f", eos={case.eos}" if case.eos is not None else ""
    return (
        "import fly_theory as ft\n\n\n"
        "def test_verifier():\n"
        f"    report = ft.conformance(verifier, {written['q']}, target={written['p']}{told}, "
        f"length={case.draft_length}{eos})\n"
        "    assert report.ok, report"
    )
