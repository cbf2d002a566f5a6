"""A lossy rule beside the lossless verification of the target it is matched to, and the verdict."""

from dataclasses import dataclass
from typing import Any, Literal

from gpu.replaying.estimates import Estimate, difference
from gpu.replaying.measures import BASELINE, MATCHED
from gpu.replaying.tally import Tally

__all__ = ["VERDICT_RULE", "Comparison", "Verdict", "compare"]

Verdict = Literal["real gain", "no gain", "worse"]

VERDICT_RULE = (
    "A difference counts where its whole interval lies on one side of zero. Real gain: more tokens per call at no "
    "larger TV to the target, or a smaller TV at no fewer tokens. Worse: the reverse. No gain: neither differs, or one "
    "is bought with the other. Where tokens per call are not identified, acceptance takes their place"
)

# Below this a difference is rounding.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Comparison:
    """A rule minus its baseline, on the same blocks.

    Attributes
    ----------
    against
        "p_A": lossless verification of the target truncated to the rule's allowed set. "own law": the verifier that
        samples the rule's own output law exactly, whose TV to the target is therefore the same.
    tokens_per_call, acceptance, tv
        Differences with their intervals; tokens per call None where they are not identified.
    verdict
        By `VERDICT_RULE`; None where there are no intervals.
    """

    against: Literal["p_A", "own law"]
    tokens_per_call: Estimate | None
    acceptance: Estimate
    tv: Estimate
    verdict: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "against": self.against,
            "tokens_per_call": self.tokens_per_call and self.tokens_per_call.to_json(),
            "acceptance": self.acceptance.to_json(),
            "tv": self.tv.to_json(),
            "verdict": self.verdict,
        }


def compare(tally: Tally, *, identified: bool) -> Comparison | None:
    """The comparison of a rule with its baseline; None where it has none, or an output that is undefined somewhere."""
    if f"{BASELINE}acceptance" not in tally.measures or _count(tally, "tv") < _count(tally, "acceptance"):
        return None
    truncated = f"{MATCHED}tv" in tally.measures
    tokens = _minus_baseline(tally, "accepted_per_call") if identified else None
    acceptance = _minus_baseline(tally, "acceptance")
    tv = _minus_baseline(tally, "tv") if truncated else difference(tally, tally, "tv")
    return Comparison("p_A" if truncated else "own law", tokens, acceptance, tv, _verdict(tokens or acceptance, tv))


def _minus_baseline(tally: Tally, name: str) -> Estimate:
    return difference(tally, tally, name, f"{BASELINE}{name}")


def _count(tally: Tally, name: str) -> int:
    return sum(totals[name].finite for totals in tally.prompts.values() if name in totals)


def _verdict(faster: Estimate, farther: Estimate) -> Verdict | None:
    if faster.low is None or farther.low is None:
        return None
    advantage = _direction(faster) - _direction(farther)
    if not advantage:
        return "no gain"
    return "real gain" if advantage > 0 else "worse"


def _direction(found: Estimate) -> int:
    """1 where the whole interval is above zero, -1 where it is below, else 0."""
    if found.low is None or found.high is None:
        return 0
    return int(found.low > _ROUNDING) - int(found.high < -_ROUNDING)
