"""The headline of a report: what stands out, in sentences."""

from collections.abc import Iterator, Sequence
from typing import get_args

from gpu.replaying.comparison import Verdict
from gpu.replaying.mode_findings import mode_findings
from gpu.replaying.on_blocks.findings import block_findings
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.wording import interval, number, percent

__all__ = ["findings"]

# What is worth a sentence.
_NOTABLE = 0.005


def findings(replay: Replay) -> Iterator[str]:
    """Sentences for the head of the report, comparing means except where an interval is given."""
    yield (
        f"The draft is at TV {number(replay.draft['tv'], digits=3)} {interval(replay.draft['tv'], digits=3)} from the "
        f"target, and their most probable tokens differ at {percent(replay.draft['argmax_flip'])} of the positions."
    )
    if any(result.spec not in replay.points_only for result in replay):
        yield from _of_token_rules(replay)
    yield from block_findings(replay)
    yield from mode_findings(replay)


def _of_token_rules(replay: Replay) -> Iterator[str]:
    named = [result for result in replay if result.spec not in replay.points_only]
    identified = [result for result in named if result["tokens_per_call"] is not None]
    yield from _speed(identified) if identified else _acceptance(named)
    yield from _dominated(named, "tokens_per_call" if identified else "acceptance")
    # Truncation rules leave the line on purpose: their target is p_A.
    others = [result for result in named if result.matched is None]
    wasteful = max(others, key=lambda result: result["waste"].mean, default=None)
    if wasteful is not None and wasteful["waste"].mean > _NOTABLE:
        yield (
            f"{wasteful.spec} is farthest from the TV line (waste {number(wasteful['waste'], digits=3)}): a rule that "
            "rejects as often could be that much closer to the target."
        )
    yield from _matched(named)
    leaking = [result for result in named if result["outside_support"].mean > _NOTABLE]
    if leaking:
        shares = ", ".join(f"{result.spec} ({percent(result['outside_support'])})" for result in leaking)
        yield f"Tokens to which the target gives no mass are emitted by {shares}."


def _matched(results: Sequence[RuleResult]) -> Iterator[str]:
    compared = [result for result in results if result.comparison and result.comparison.verdict]
    for against, what in (
        ("p_A", "Against lossless verification of the same truncated target"),
        ("own law", "Against the verifier that samples their own output law exactly"),
    ):
        by_verdict = {
            verdict: [r.spec for r in compared if (r.comparison.against, r.comparison.verdict) == (against, verdict)]
            for verdict in get_args(Verdict)
        }
        told = [f"{verdict} for {', '.join(specs)}" for verdict, specs in by_verdict.items() if specs]
        if told:
            yield f"{what}: {'; '.join(told)}."
    off = [result for result in compared if result.matched is not None and result.matched["tv"].mean > _NOTABLE]
    if off:
        shares = ", ".join(f"{result.spec} ({number(result.matched['tv'], digits=3)})" for result in off)
        yield f"What truncated sampling itself would write is not what these write, by their TV to p_A: {shares}."


def _speed(results: Sequence[RuleResult]) -> Iterator[str]:
    lossless = next((result for result in results if result.rule.name == "lossless"), None)
    if lossless is None:
        yield "Replay `lossless` beside these rules to see their gain over it."
        return
    yield f"Lossless verification makes {_tokens(lossless)} tokens per target call."
    faster = [result for result in results if (result["gain_over_lossless"].low or 0) > 0]
    if results == [lossless]:
        return
    if not faster:
        yield "No setting makes more tokens per call than lossless verification beyond the interval of the difference."
        return
    fastest = max(faster, key=lambda result: result["tokens_per_call"].mean)
    closest = min(faster, key=lambda result: result["tv"].mean)
    yield f"{fastest.spec} makes the most, {_tokens(fastest)}: {_gain(fastest)} more, at {_price(fastest)}."
    if closest is not fastest:
        yield (
            f"Of the {len(faster)} settings with a gain beyond its interval, {closest.spec} stays closest to the "
            f"target: {_gain(closest)} more, at {_price(closest)}."
        )


def _acceptance(results: Sequence[RuleResult]) -> Iterator[str]:
    loosest = max(results, key=lambda result: result["acceptance"].mean)
    share = percent(loosest["acceptance"])
    yield f"{loosest.spec} accepts the most, {share} of the draft tokens, at {_price(loosest)}."


def _dominated(results: Sequence[RuleResult], name: str) -> Iterator[str]:
    what = {"tokens_per_call": "makes more tokens per call", "acceptance": "accepts more"}[name]
    dominated = [
        result.spec
        for result in results
        if any(other[name].mean > result[name].mean and other["tv"].mean <= result["tv"].mean for other in results)
    ]
    if dominated:
        yield f"Another setting {what} at no larger TV than each of: {', '.join(dominated)}."


def _tokens(result: RuleResult) -> str:
    return f"{number(result['tokens_per_call'], digits=2)} {interval(result['tokens_per_call'], digits=2)}".strip()


def _gain(result: RuleResult) -> str:
    gain = result["gain_over_lossless"]
    return f"{number(gain, digits=2)} {interval(gain, digits=2)}".strip()


def _price(result: RuleResult) -> str:
    return f"TV {number(result['tv'], digits=3)} and {percent(result['argmax_flip'])} argmax flips"
