"""The law of the text a verifier emits, and how far it is from the law it should be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fly_theory.conformance.cases import Case
from fly_theory.conformance.laws import Text
from fly_theory.conformance.numbers import ratio
from fly_theory.report import Estimate

__all__ = ["Emitted", "distance", "largest_ratio", "prefix_law", "readable", "surely"]


@dataclass(frozen=True)
class Emitted:
    """What came out of a verifier on one case.

    Numbers are Fractions where found exactly.

    law : text -> probability
    radius : how far in TV the true law may be from `law`
    tokens_per_call : expected number of tokens one call emits, give or take `rate_radius`
    tv : total variation between the law and the goal law
    ratio : the largest out(x)/p(x) of one token x, given those before it
    differs : whether the law is found to differ from the goal law
    """

    case: Case
    law: Mapping[Text, Any]
    radius: Any
    tokens_per_call: Any
    rate_radius: Any
    tv: Any
    ratio: Any
    differs: bool


def distance(law: Mapping[Text, Any], other: Mapping[Text, Any]) -> Any:
    """Total variation between two laws of texts: half the sum of |difference|."""
    return sum(abs(law.get(text, 0) - other.get(text, 0)) for text in {*law, *other}) / 2


def prefix_law(law: Mapping[Text, Any], positions: int) -> dict[Text, Any]:
    """Law of the first `positions` tokens of texts with this law."""
    found: dict[Text, Any] = {}
    for text, mass in law.items():
        found[text[:positions]] = found.get(text[:positions], 0) + mass
    return found


def largest_ratio(law: Mapping[Text, Any], goal: Mapping[Text, Any], positions: int, least: Any = 0) -> Any:
    """Largest out(x)/p(x) of one token x given those before it; texts of mass <= `least` are left out.

    Per token, so that it can be held against the ceiling of a rule whatever the number of positions.
    """
    largest: Any = 1
    for i in range(1, positions + 1):
        out, target = prefix_law(law, i), prefix_law(goal, i)
        before, target_before = prefix_law(law, i - 1), prefix_law(goal, i - 1)
        for text, mass in out.items():
            if len(text) == i and mass > least and target_before.get(text[:-1], 0) > 0:
                share = target.get(text, 0) / target_before[text[:-1]]
                largest = max(largest, ratio(mass / before[text[:-1]], share))
    return largest


def readable(law: Mapping[Text, Any], case: Case) -> Any:
    """A law as a witness shows it: a row (V,) for one token, else text -> probability."""
    if case.positions == 1:
        return tuple(law.get((token,), 0) for token in range(case.vocabulary))
    return {text: law[text] for text in sorted(law) if law[text]}


def surely(quantity: Any) -> Any:
    """The least that a measured quantity can be."""
    return quantity.low if isinstance(quantity, Estimate) else quantity
