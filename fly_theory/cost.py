"""What a round costs: from draft, verification and gate times to speed-ups, and how published figures compare.

A round drafts K tokens, verifies them in one target call and decides. Plain decoding spends one target step a token, so
a verifier that emits `tokens` a round is faster by tokens * step / round time. Times are in any one unit.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from scipy import optimize

from fly_theory import published
from fly_theory.arrays import Number
from fly_theory.errors import InvalidInput
from fly_theory.parameters import Integers, Interval, Parametrised, parameter

__all__ = ["Comparison", "Lookup", "RoundTime", "compare_with_published", "fly_table1", "implied_lookup"]

_TIME = Interval(0, None)
_POSITIVE_TIME = Interval(0, None, low_open=True)


@dataclass(frozen=True, kw_only=True)
class Lookup(Parametrised):
    """A second level of speculation: the drafter itself is drafted for, by copying an earlier continuation.

    Prompt lookup (Saxena 2023) as FLy's multi-level acceleration uses it (arXiv 2511.22972, section 2.3): when the last
    tokens occurred before, the `length` tokens that followed are verified in one drafter call. It changes the time a
    draft takes and not the draft. A call writes the accepted copies and one token more.
    """

    acceptance: Number = parameter(Interval(0, 1), "probability that a copied token is what the drafter would write")
    length: int = parameter(Integers(0), "copied tokens a call")
    hit: Number = parameter(Interval(0, 1), "probability that there is something to copy", default=1)

    def tokens_law(self) -> list[float]:
        """Probability that one drafter call writes exactly 1, 2, ..., length + 1 tokens."""
        a, h = float(self.acceptance), float(self.hit)
        law = [h * a**n * (1 - a) for n in range(self.length)] + [h * a**self.length]
        law[0] += 1 - h
        return law

    def calls(self, draft_length: int) -> float:
        """Expected drafter calls until a draft of K tokens is written; what a last call writes beyond K is cut."""
        law = self.tokens_law()
        expected = [0.0]
        for k in range(1, draft_length + 1):
            expected.append(1 + sum(p * expected[max(k - n, 0)] for n, p in enumerate(law, start=1)))
        return expected[draft_length]


@dataclass(frozen=True, kw_only=True)
class RoundTime(Parametrised):
    """The time a round takes; called with K it returns that time, so it serves `renewal.optimal_draft_length`.

    `verify` is taken as one time for every K: a target call over K + 1 positions is bound by memory traffic.

    Examples
    --------
    >>> import fly_theory as ft
    >>> ft.cost.RoundTime(step=58.62, draft=197.45 / 15, verify=58.62, gate=0.45).speedup(12.61, 15).__round__(2)
    2.88
    """

    step: Number = parameter(_POSITIVE_TIME, "one plain decoding step of the target")
    draft: Number = parameter(_TIME, "one call of the drafter")
    verify: Number = parameter(_POSITIVE_TIME, "one target call over a draft")
    gate: Number = parameter(_TIME, "the verifier's own decisions in a round", default=0)
    lookup: Lookup = Lookup(acceptance=0, length=0)

    def __call__(self, draft_length: int) -> float:
        """Time of a round with K draft tokens."""
        if draft_length < 1:
            msg = f"draft_length={draft_length!r} is not an integer >= 1"
            raise InvalidInput(msg)
        return float(self.draft) * self.lookup.calls(draft_length) + float(self.verify) + float(self.gate)

    def speedup(self, tokens: float, draft_length: int) -> float:
        """Speed-up over plain decoding when a round of K draft tokens emits `tokens`, the bonus counted."""
        return tokens * float(self.step) / self(draft_length)


def implied_lookup(gain: float, draft_length: int, *, length: int = 6, hit: Number = 1) -> Lookup:
    """The lookup that makes drafting K tokens `gain` times faster; FLy's released code copies 6 tokens.

    Raises
    ------
    InvalidInput
        When even accepting every copied token gives less.
    """

    def excess(acceptance: float) -> float:
        return draft_length / Lookup(acceptance=acceptance, length=length, hit=hit).calls(draft_length) - gain

    if not excess(0.0) <= 0 <= excess(1.0):
        least, most = excess(0.0) + gain, excess(1.0) + gain
        msg = f"gain={gain} is outside [{least:.4g}, {most:.4g}], what {length} copied tokens can give"
        raise InvalidInput(msg)
    return Lookup(acceptance=float(optimize.brentq(excess, 0.0, 1.0)), length=length, hit=hit)


# -- published figures -------------------------------------------------------------------------------------------------

_DRAFT_LENGTHS = {"L3-70B": 15, "L3-405B": 25}


def fly_table1(target: str, *, accelerated: bool) -> RoundTime:
    """The round of FLy Table 1 in milliseconds, for target "L3-70B" (K = 15) or "L3-405B" (K = 25).

    `accelerated` says whether multi-level acceleration is on; its gain is turned into the lookup that would explain it.
    A plain target step is taken to cost what a verification does: the table gives no other time for it.
    """
    if target not in _DRAFT_LENGTHS:
        msg = f"target={target!r} is not one of {', '.join(map(repr, _DRAFT_LENGTHS))}"
        raise InvalidInput(msg)
    length = _DRAFT_LENGTHS[target]
    rows = [row for row in published.table("fly_table1_round_time_ms") if row["target"] == target]
    ms = {(row["component"], row["mla"]): row["ms"] for row in rows}
    verify, gate = ms["target_verification", "off"], ms["gate_and_window", "off"]
    plain = RoundTime(step=verify, draft=ms["draft", "off"] / length, verify=verify, gate=gate)
    if not accelerated:
        return plain
    return replace(plain, lookup=implied_lookup(ms["draft", "off"] / ms["draft", "on"], length))


class Comparison(NamedTuple):
    """A published speed-up beside what the published round time and tokens a round give."""

    source: str
    setting: str
    tokens: float
    published: float
    model: float

    @property
    def error(self) -> float:
        """Relative difference model / published - 1."""
        return self.model / self.published - 1


def compare_with_published() -> list[Comparison]:
    """Every speed-up of FLy Tables 4, 5 and 9 beside the arithmetic of Table 1: the tables do not all agree.

    Table 9 does not say whether multi-level acceleration was on, so it is compared both ways.
    """
    rows = []
    on, off = fly_table1("L3-70B", accelerated=True), fly_table1("L3-70B", accelerated=False)
    ablation = published.table("fly_table4_ablation")
    tokens = next(row["tau"] for row in ablation if (row["hyperparameter"], row["value"]) == ("K", 15))
    for row in published.table("fly_table5_mla"):
        time = on if row["mla"] == "on" else off
        setting = f"70B, acceleration {row['mla']}"
        rows.append(Comparison("Table 5", setting, tokens, row["speedup"], time.speedup(tokens, 15)))
    for row in ablation:
        length = int(row["value"]) if row["hyperparameter"] == "K" else 15
        setting = f"70B, {row['hyperparameter']} = {row['value']:g}, acceleration on"
        rows.append(Comparison("Table 4", setting, row["tau"], row["speedup"], on.speedup(row["tau"], length)))
    for accelerated in (True, False):
        time = fly_table1("L3-405B", accelerated=accelerated)
        for row in published.table("fly_table9_405b_k"):
            setting = f"405B, K = {row['K']:g}, acceleration {'on' if accelerated else 'off'}"
            model = time.speedup(row["tau"], int(row["K"]))
            rows.append(Comparison("Table 9", setting, row["tau"], row["speedup"], model))
    return rows
