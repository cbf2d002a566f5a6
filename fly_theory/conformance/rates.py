"""How many drafts a verifier keeps, beside what the known rules would keep: with K = 1, on the first position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fly_theory.conformance.cases import Case
from fly_theory.conformance.emitted import Emitted

__all__ = ["Rates", "mean_rates", "rates"]


@dataclass(frozen=True)
class Rates:
    """Probabilities that one drafted token is kept.

    case : what they were found on
    own : the verifier's, give or take `radius`
    ratio_rule : sum min(p, q), the most that any lossless verifier can keep; without eos, which no bonus follows
    sampled_match : sum p q, what equality with a target sample keeps
    greedy_match : p(argmax q^), the same for a draft that is an argmax
    """

    case: Case
    own: Any
    radius: Any
    ratio_rule: Any
    sampled_match: Any
    greedy_match: Any

    @property
    def missed(self) -> Any:
        """How much of the ratio rule's rate is missed for certain."""
        return self.ratio_rule - self.own - self.radius


def mean_rates(found: Sequence[Rates]) -> Mapping[str, Any]:
    """Means over cases, by the names a report gives them."""
    names = {"kept": "own", "sum min(p, q)": "ratio_rule", "sum p q": "sampled_match", "p(argmax q^)": "greedy_match"}
    return {name: _mean([getattr(each, which) for each in found]) for name, which in names.items() if found}


def _mean(values: Sequence[Any]) -> Any:
    return values[0] if len(set(values)) == 1 else float(sum(values) / len(values))


def rates(emitted: Emitted) -> Rates | None:
    """The rates on a case of one drafted token; None for other cases."""
    case = emitted.case
    if case.draft_length != 1 or case.candidates is not None:
        return None
    p, q, told = case.goal(()), case.drawn(()), case.told(())
    kind = type(emitted.tokens_per_call)
    pairs = [pair for token, pair in enumerate(zip(p, q, strict=False)) if token != case.eos]
    return Rates(
        case,
        emitted.tokens_per_call - 1,
        emitted.rate_radius,
        kind(sum(min(pair) for pair in pairs)),
        kind(sum(target * draft for target, draft in pairs)),
        kind(p[max(range(len(told)), key=told.__getitem__)]),
    )
