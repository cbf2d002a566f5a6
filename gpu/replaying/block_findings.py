"""What stands out about block rules, in sentences."""

from collections.abc import Iterator, Sequence

from gpu.replaying.block_result import BlockRuleResult
from gpu.replaying.estimates import Estimate
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
        ends = [replay[point.rule]["tokens_per_call"] for point in (sweep.points[0], sweep.points[-1])]
        if all(end is not None for end in ends):
            first, last = (f"{number(end, digits=2)} {interval(end, digits=2)}".strip() for end in ends)
            yield (
                f"Over {sweep.text} tokens per call go from {first} at {float(sweep.values[0]):g} to {last} at "
                f"{float(sweep.values[-1]):g}."
            )


def _fly(results: Sequence[BlockRuleResult]) -> Iterator[str]:
    # Greedy matches are the same for all; sampled ones make a strict rule of another kind.
    of_argmax = [result for result in results if result.setting.deferred and result.setting.deferred.greedy]
    if of_argmax:
        strict = of_argmax[0]["strict_tokens_per_call"]
        said = f"{number(strict, digits=2)} {interval(strict, digits=2)}".strip()
        yield f"Strict verification, which ends a round at the first mismatch, makes {said} tokens per call."
    looser = [result for result in results if result["gain_over_strict"].mean]
    if looser:
        yield f"More than strict makes, in tokens per call: {_listed(looser, 'gain_over_strict')}."
    yield f"Share of the mismatches at which the gate is open: {_listed(results, 'gate_open', share=True)}."
    judged = [result for result in looser if result["lost_to_window"] is not None and result["lost_to_window"].mean]
    for name, what in (
        ("lost_to_window", "Rejections for another mismatch within the window"),
        ("lost_to_boundary", "Rejections too near the end of the block to be judged (boundary losses)"),
        ("lost_to_boundary_only", "Boundary losses with no other mismatch up to the end of the block"),
    ):
        if judged:
            yield f"{what}, of all rejections: {_listed(judged, name, share=True)}."


def _listed(results: Sequence[BlockRuleResult], name: str, *, share: bool = False) -> str:
    return ", ".join(f"{result.label} {_said(result[name], share=share)}" for result in results)


def _said(estimate: Estimate | None, *, share: bool) -> str:
    if share:
        return f"{percent(estimate)} {percent_interval(estimate)}".strip()
    return f"{number(estimate, digits=2)} {interval(estimate, digits=2)}".strip()
