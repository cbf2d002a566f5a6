"""Checks on the counters of an engine: what it reports, against what its steps say.

A harness records the steps of its requests and hands over the figures that the engine reports. Each check is a
`Result`; figures that are not reported are not checked.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fly_theory.errors import InvalidInput, unknown_name
from fly_theory.report import Result, Witness

__all__ = ["FIGURES", "Step", "check_log_probs", "check_metrics", "check_stopping"]


@dataclass(frozen=True)
class Step:
    """One call of the target.

    passed : for each drafted token, whether its own test was passed; what follows the first failure is not kept
    emitted : number of tokens that reached the text
    cut : number of tokens that the end of the text or a length limit cut off
    """

    passed: tuple[bool, ...]
    emitted: int
    cut: int = 0

    @property
    def due(self) -> int:
        """Tokens that must be emitted: the drafts before the first failure and one more, less what was cut off."""
        failure = next((i for i, passed in enumerate(self.passed) if not passed), len(self.passed))
        return failure + 1 - self.cut

    @property
    def kept(self) -> int:
        """Drafted tokens that must reach the text; a cut takes the corrected or bonus token first."""
        return self.due if self.cut else self.due - 1


Request = Sequence[Step]

# Figures by name, with what they mean; rates and means are over all steps ("pooled") or means of the requests' own.
FIGURES: Mapping[str, str] = {
    "drafted": "drafted tokens, those that were rejected among them",
    "accepted": "drafted tokens kept: those before the first failure of each step that reached the text",
    "emitted": "tokens emitted",
    "steps": "calls of the target",
    "acceptance_rate": "accepted / drafted",
    "accepted_per_call": "accepted / steps, pooled, the bonus token not counted",
    "tokens_per_call": "emitted / steps, pooled, the corrected or bonus token counted",
    "mean_accepted_per_call": "mean over requests of accepted / steps",
    "mean_tokens_per_call": "mean over requests of emitted / steps",
}


def check_metrics(requests: Sequence[Request], reported: Mapping[str, float]) -> tuple[Result, ...]:
    """Hold the figures an engine reports, by their names in `FIGURES`, against the steps of its requests.

    Raises
    ------
    InvalidInput
        For no requests, a request without steps, or a figure of another name.
    """
    if not requests or not all(requests):
        msg = "requests is empty, or holds one without steps; a rate needs at least one step a request"
        raise InvalidInput(msg)
    for name in reported:
        if name not in FIGURES:
            raise unknown_name(name, kind="figure", known=FIGURES)
    right = _figures(requests)
    return (
        _identity(requests),
        *_rates_in_range(reported),
        *(_compared(name, value, right, requests) for name, value in reported.items()),
    )


def check_log_probs(
    tokens: Sequence[int],
    target_probs: Sequence[Sequence[float]],
    reported: Sequence[float],
    *,
    tolerance: float = 1e-4,
) -> Result:
    """Whether the log-probabilities reported for emitted tokens are those of the target, in nats.

    tokens (T,), target_probs (T, V) the target's law of each, reported (T,).
    """
    name = "log-probabilities of emitted tokens"
    for i, (token, row, value) in enumerate(zip(tokens, target_probs, reported, strict=True)):
        right = math.log(row[token]) if row[token] > 0 else -math.inf
        if not (value == right or abs(value - right) <= tolerance):
            witness = Witness({"position": i, "token": token, "p(token)": row[token]}, "log-probability", value, right)
            return Result(name, "refuted", len(tokens), witness)
    return Result(name, "held", len(tokens))


def check_stopping(texts: Iterable[Sequence[int]], eos: int) -> Result:
    """Whether nothing follows the end of any text but more ends, which are padding."""
    name, count = "nothing after the end of a text", 0
    for text in texts:
        count += 1
        tail = list(text[list(text).index(eos) :]) if eos in text else []
        if any(token != eos for token in tail):
            return Result(
                name, "refuted", count, Witness({"text": tuple(text), "eos": eos}, "tail", tuple(tail), (eos,))
            )
    return Result(name, "held", count)


def _figures(requests: Sequence[Request]) -> Mapping[str, Fraction]:
    kept, emitted = (
        [sum(getattr(step, what) for step in request) for request in requests] for what in ("kept", "emitted")
    )
    steps = list(map(len, requests))
    drafted = sum(len(step.passed) for request in requests for step in request)
    return {
        "drafted": Fraction(drafted),
        "accepted": Fraction(sum(kept)),
        "emitted": Fraction(sum(emitted)),
        "steps": Fraction(sum(steps)),
        "acceptance_rate": Fraction(sum(kept), drafted) if drafted else Fraction(0),
        "accepted_per_call": Fraction(sum(kept), sum(steps)),
        "tokens_per_call": Fraction(sum(emitted), sum(steps)),
        "mean_accepted_per_call": _mean(kept, steps),
        "mean_tokens_per_call": _mean(emitted, steps),
    }


def _mean(counts: Sequence[int], steps: Sequence[int]) -> Fraction:
    ratios = [Fraction(count, number) for count, number in zip(counts, steps, strict=True)]
    return sum(ratios, Fraction(0)) / len(ratios)


def _identity(requests: Sequence[Request]) -> Result:
    name, count = "emitted = accepted + 1, or accepted where cut, in each step", 0
    for step in (step for request in requests for step in request):
        count += 1
        if step.emitted != step.due:
            inputs = {"passed": step.passed, "cut": step.cut}
            return Result(name, "refuted", count, Witness(inputs, "emitted", step.emitted, step.due))
    return Result(name, "held", count)


def _rates_in_range(reported: Mapping[str, float]) -> Iterator[Result]:
    if "acceptance_rate" in reported:
        rate, name = reported["acceptance_rate"], "acceptance rate within [0, 1]"
        fine = 0 <= rate <= 1
        yield Result(name, "held" if fine else "refuted", 1, None if fine else Witness({}, "rate", rate, 1, "<="))


def _compared(name: str, value: float, right: Mapping[str, Fraction], requests: Sequence[Request]) -> Result:
    if math.isclose(value, right[name], rel_tol=1e-6, abs_tol=1e-9):
        return Result(name, "held", 1, detail=FIGURES[name])
    inputs: dict[str, Any] = {"passed": tuple(tuple(step.passed for step in request) for request in requests)}
    others = [other for other, figure in right.items() if other != name and figure == value]
    detail = FIGURES[name] + (f"; {value} is {' and '.join(others)}" if others else "")
    return Result(name, "refuted", 1, Witness(inputs, name, value, right[name]), detail)
