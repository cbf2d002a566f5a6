"""From the tallies of block rules to results, and what has to be said about them."""

from collections.abc import Iterator
from functools import cache, partial

from fly_theory.rules.lossless import Lossless
from gpu.replaying.bootstrap import DRAWS
from gpu.replaying.cases import examine
from gpu.replaying.estimates import Estimate
from gpu.replaying.modes import Level, mode_results
from gpu.replaying.on_blocks.figures import block_figure, block_gain
from gpu.replaying.on_blocks.measures import BLOCK_FIGURES
from gpu.replaying.on_blocks.result import BlockRuleResult
from gpu.replaying.on_blocks.setting import BlockSetting
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings, drawn_temperature
from gpu.replaying.tally import Tally
from gpu.replaying.tallying import Tallies
from gpu.trace import Trace

__all__ = ["block_notes", "summarise_block_rules"]

# Figures that need drafts drawn from the law that the rule is told.
_OF_THE_DRAFT_LAW = ("tokens_per_call", "accepted_per_call", "whole_blocks")


def summarise_block_rules(
    trace: Trace, plan: Plan, tallies: Tallies, mismatch: str | None
) -> tuple[BlockRuleResult, ...]:
    """The results of all block rules; `mismatch` says why the drafts are not those of the replay's draft law."""
    lossless = next(
        (tally for rule, tally in zip(plan.rules, tallies.rules, strict=True) if isinstance(rule, Lossless)), None
    )
    # As gates see the target, and with it alone: what is emitted are the drafts.
    look = cache(partial(examine, trace, ReplaySettings(temperature=1.0, dtype=plan.settings.dtype), Lossless()))
    results = []
    for setting, tally in zip(plan.block_rules, tallies.blocks, strict=True):
        identified = mismatch is None or setting.deferred is not None
        figures: dict[str, Estimate | None] = {
            name: block_figure(tally, name) if identified or name not in _OF_THE_DRAFT_LAW else None
            for name in BLOCK_FIGURES
        }
        figures["gain_over_lossless"] = _gain(setting, tally, lossless, plan.settings, mismatch, trace.draft_length)
        modes = mode_results(tally, plan.modes(Level.BLOCK), look)
        results.append(BlockRuleResult(setting, setting.draft_length or trace.draft_length, figures, modes))
    return tuple(results)


def _gain(
    setting: BlockSetting,
    tally: Tally,
    lossless: Tally | None,
    settings: ReplaySettings,
    mismatch: str | None,
    draft_length: int,
) -> Estimate | None:
    """The gain over lossless verification, where that is of the same target and of the same drafts."""
    if lossless is None or mismatch or setting.draft_length not in (None, draft_length):
        return None
    rule = setting.deferred
    if rule is not None and settings.temperature != (0 if rule.greedy else rule.target_temperature):
        return None
    return block_gain(tally, lossless)


def block_notes(trace: Trace, plan: Plan) -> Iterator[str]:
    """What a reader has to know about the figures of block rules."""
    if not plan.block_rules:
        return
    yield (
        "Figures of block rules are ratios of sums over all blocks, exact given the drafts. Their intervals are "
        f"bias-corrected and accelerated bootstrap intervals over the prompts ({DRAWS} draws, the same for all), which "
        "lean as the figures do: where prompts differ much, Student's interval of the same figure is another."
    )
    if any(setting.deferred for setting in plan.block_rules):
        yield (
            "FLy compares drafts with the target's argmax (with draws from the target where its own temperature is "
            "above 0) and its gate reads the target at temperature 1, whatever the temperature and the warpers of this "
            f"replay. It asks nothing of the draft's law{_drawn(trace)}."
        )
    if plan.settings.temperature == 0 and (plan.rules or any(not setting.deferred for setting in plan.block_rules)):
        yield "At temperature 0 both models put all mass on their argmax: token-level rules judge that."


def _drawn(trace: Trace) -> str:
    drawn = drawn_temperature(trace)
    if drawn == 0:
        return ", and the drafts of this trace are greedy, as it wants them"
    how = "at an unknown temperature" if drawn is None else f"at temperature {drawn:g}"
    return f", but drafts greedily: on these drafts, drawn {how}, its figures are those of FLy with such a draft"
