"""What stands out among failure modes, in sentences for the head of a report."""

from collections import defaultdict
from collections.abc import Iterator

from gpu.replaying.modes import ModeResult, claimed_ceiling
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.wording import consistency, is_suspicious, percent, percent_interval

__all__ = ["mode_findings"]

# Shares that are worth a sentence: of positions or divergence, and of the drafts that a block rule loses.
_NOTABLE, _NOTABLE_LOSS = 0.005, 0.1


def mode_findings(replay: Replay) -> Iterator[str]:
    """Sentences on the failure modes that stand out."""
    for result in replay:
        found = {mode.mode.name: mode for mode in result.modes}
        broken = found.get("ceiling_violation")
        if broken is not None and broken.rate.mean and claimed_ceiling(result.rule) is not None:
            yield f"{result.spec} breaks the ceiling it claims at {percent(broken.rate)} of the positions."
    leading: dict[str, list[tuple[RuleResult, ModeResult]]] = defaultdict(list)
    for result in replay:
        if result.modes and result["tv"].mean > _NOTABLE and result.modes[0].explained is not None:
            leading[result.modes[0].mode.label].append((result, result.modes[0]))
    if leading:
        yield (
            "The failure mode that explains the largest part of the divergence is "
            + "; ".join(
                f"{label} for " + ", ".join(f"{result.spec} ({percent(mode.explained)})" for result, mode in found)
                for label, found in leading.items()
            )
            + "."
        )
    for result in replay.block_rules:
        lost = [mode for mode in result.modes if mode.mode.of == "lost" and mode.explained is not None]
        if lost and lost[0].explained.mean > _NOTABLE_LOSS:
            yield (
                f"Of the drafts that {result.label} loses, {percent(lost[0].explained)} "
                f"{percent_interval(lost[0].explained)} are lost to: {lost[0].mode.label}."
            )
    sure = [(result, mode) for result in replay for mode in result.modes if mode.mode.name == "low_entropy_flip"]
    if sure:
        result, worst = max(sure, key=lambda pair: pair[1].rate.mean)
        if worst.rate.mean > _NOTABLE:
            yield (
                f"{result.spec} changes the most probable token most often where the target is sure of it: at "
                f"{percent(worst.rate)} of the positions {percent_interval(worst.rate)}."
            )
    if replay.consistency is not None and is_suspicious(replay.consistency):
        yield f"Beware: {consistency(replay.consistency)}."
    for mode in replay.pair_modes:
        if mode.rate.mean > _NOTABLE:
            yield f"{mode.mode.label.capitalize()} in the pair itself, at {percent(mode.rate)} of the positions."
