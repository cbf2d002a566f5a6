"""What stands out about block rules, in sentences."""

from collections.abc import Iterator, Sequence

from gpu.replaying.on_blocks.result import BlockRuleResult
from gpu.replaying.result import Replay
from gpu.replaying.wording import interval, number, percent, percent_interval

__all__ = ["block_findings"]


def block_findings(replay: Replay) -> Iterator[str]:
    """Sentences on the block rules that were asked for by name and see whole blocks; sweeps are told by their ends."""
    named = [result for result in replay.block_rules if result.spec not in replay.points_only]
    whole = [result for result in named if result.draft_length == replay.trace.draft_length]
    fly, others = [r for r in whole if r.setting.deferred], [r for r in whole if not r.setting.deferred]
    if fly:
        yield from _fly(fly)
    gained = [result for result in others if result["gain_over_lossless"] is not None]
    if gained:
        yield f"Tokens per call more than token by token: {_listed(gained, 'gain_over_lossless')}."
    for sweep in replay.sweeps:
        first, last = sweep.points[0], sweep.points[-1]
        if all(replay[end.rule]["tokens_per_call"] is not None for end in (first, last)):
            ends = (f"{_amount(replay[end.rule], 'tokens_per_call')} at {end.value:g}" for end in (first, last))
            yield f"Over {sweep.text} tokens per call go from {' to '.join(ends)}."


def _fly(results: Sequence[BlockRuleResult]) -> Iterator[str]:
    # Greedy matches are the same for all; sampled ones make a strict rule of another kind.
    of_argmax = [result for result in results if result.setting.deferred and result.setting.deferred.greedy]
    if of_argmax:
        said = _amount(of_argmax[0], "strict_tokens_per_call")
        yield f"Strict verification, which ends a round at the first mismatch, makes {said} tokens per call."
    looser = [result for result in results if result["gain_over_strict"].mean]
    if looser:
        yield f"More than strict makes, in tokens per call: {_listed(looser, 'gain_over_strict')}."
    gates = {result["gate_open"]: result for result in reversed(results)}
    if None not in gates:
        first_of_each = [result for result in results if result in gates.values()]
        yield f"Share of the mismatches at which the gate is open: {_listed(first_of_each, 'gate_open', share=True)}."
    judged = [result for result in looser if result["lost_to_window"] is not None and result["lost_to_window"].mean]
    if judged:
        lost = ", ".join(
            f"{result.label} {_share(result, 'lost_to_boundary')} "
            f"({_share(result, 'lost_to_boundary_only')} with no other mismatch up to the end)"
            for result in judged
        )
        window = _listed(judged, "lost_to_window", share=True)
        yield f"Of all rejections, ended by another mismatch within the window: {window}."
        yield f"Of all rejections, boundary losses, too near the end of the block to be judged: {lost}."


def _listed(results: Sequence[BlockRuleResult], name: str, *, share: bool = False) -> str:
    say = _share if share else _amount
    return ", ".join(f"{result.label} {say(result, name)}" for result in results)


def _share(result: BlockRuleResult, name: str) -> str:
    return f"{percent(result[name])} {percent_interval(result[name])}".strip()


def _amount(result: BlockRuleResult, name: str) -> str:
    return f"{number(result[name], digits=2)} {interval(result[name], digits=2)}".strip()
