"""What replay measures of a block rule on one captured block, and the figures that come of it.

Given the drafts everything here is an exact expectation over the rule's own coins, which nothing has to be drawn for:
all rules see the same drafts, so differences between them are paired.
"""

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from fly_theory.arrays import scalar
from fly_theory.blocks.fly import DeferredWindow, Endings
from fly_theory.blocks.fly_released import top_3_entropy
from fly_theory.distributions import trusted_inputs
from fly_theory.entropies import entropy as shannon
from fly_theory.entropies import normalised_entropy
from gpu.replaying.modes import DeferralRows, Detectors
from gpu.replaying.on_blocks.laws import BlockLaws
from gpu.replaying.on_blocks.setting import BlockSetting

__all__ = ["BLOCK_FIGURES", "BlockFigure", "measure_block"]


@dataclass(frozen=True)
class BlockFigure:
    """A ratio of two counts over all blocks: what it is called, what it tells, and where it can lie."""

    label: str
    meaning: str
    numerator: str
    denominator: str = "rounds"
    low: float = 0.0
    high: float = inf


BLOCK_FIGURES = {
    "tokens_per_call": BlockFigure(
        "tokens per call",
        "block efficiency: tokens emitted over target calls; a round is one call, except for a rule that redraws the "
        "rest of its block, which pays a call for each further token",
        "emitted",
        "calls",
        low=1,
    ),
    "accepted_per_call": BlockFigure("kept", "drafts kept in a round", "kept"),
    "whole_blocks": BlockFigure("whole blocks", "share of the rounds in which every draft is kept", "whole", high=1),
    "strict_tokens_per_call": BlockFigure(
        "strict",
        "tokens per call of strict verification of the same drafts, which ends a round at the first mismatch",
        "strict",
        low=1,
    ),
    "gain_over_strict": BlockFigure(
        "gain over strict",
        "tokens per call more than strict verification makes; the interval is that of the paired difference",
        "gain",
    ),
    "match_rate": BlockFigure(
        "match", "share of all drafts that match the target's token", "matches", "drafts", high=1
    ),
    "gate_open": BlockFigure(
        "gate open",
        "share of the mismatches, over all drafts, at which the rule's gate is open",
        "open",
        "mismatches",
        high=1,
    ),
    "gate_open_met": BlockFigure(
        "gate open, met", "the same over the mismatches that a round comes to", "met_open", "met", high=1
    ),
    "paper_gate_open": BlockFigure(
        "paper's gate",
        "share of the mismatches at which the entropy over log V is at least this theta",
        "paper_open",
        "mismatches",
        high=1,
    ),
    "released_gate_open": BlockFigure(
        "released gate",
        "share of the mismatches at which the entropy of the 3 largest probabilities, in nats, is at least this theta",
        "released_open",
        "mismatches",
        high=1,
    ),
    "forgiven": BlockFigure("forgiven", "mismatches kept in a round", "forgiven"),
    "lost_to_gate": BlockFigure(
        "gate", "share of the rejections that are due to a shut gate", "gate", "rejections", high=1
    ),
    "lost_to_window": BlockFigure(
        "window",
        "share of the rejections due to another mismatch within the window; the gate was open",
        "window",
        "rejections",
        high=1,
    ),
    "lost_to_boundary": BlockFigure(
        "boundary",
        "share of the rejections too near the end of the block to be judged; the gate was open",
        "boundary",
        "rejections",
        high=1,
    ),
    "lost_to_boundary_only": BlockFigure(
        "boundary only",
        "the part of them with no other mismatch up to the end of the block: a longer block might have kept them",
        "boundary_only",
        "rejections",
        high=1,
    ),
}


def measure_block(setting: BlockSetting, laws: BlockLaws, detectors: Detectors | None = None) -> dict[str, Tensor]:
    """Every count of a block rule on one block, as expectations (1,) given its drafts.

    With `detectors` also the failure modes of a rule that defers, (K,) each.
    """
    block, rule = laws.block(setting), setting.deferred
    with trusted_inputs():
        if rule is None:
            counts = _lengths(setting, setting.rule.length_law(block))
        else:
            match, entropy = rule.match_probability(block), laws.entropy(rule.statistic)[: block.draft_length]
            ended = rule.endings(block, entropy=entropy)
            counts = _lengths(setting, ended.length_law)
            counts["strict"] = 1 + match.cumprod(-1).sum()
            counts["gain"] = counts["emitted"] - counts["strict"]
            gate = rule.gate_open(block, entropy=entropy)
            counts |= _mismatches(rule, match, gate, laws) | _ends(ended)
            if detectors is not None:
                sure, classes = laws.entropy(shannon)[: block.draft_length], detectors.masks(block.target)
                counts |= detectors.of_deferral(
                    DeferralRows(block, match, gate, ended, rule.window_length, sure, classes)
                )
    return {name: torch.atleast_1d(count.double()) for name, count in counts.items()}


def _lengths(setting: BlockSetting, law: Tensor) -> dict[str, Tensor]:
    k = law.shape[-1] - 1
    lengths = torch.arange(k + 1, dtype=law.dtype, device=law.device)
    one = torch.ones_like(law[-1])
    kept, whole = (law * lengths).sum(), law[-1]
    emitted, calls = kept + 1, one
    if setting.rule.completes_block:
        emitted, calls = k + whole, (law * (k - lengths).clamp(min=1)).sum()
    return {"rounds": one, "kept": kept, "whole": whole, "emitted": emitted, "calls": calls}


def _mismatches(rule: DeferredWindow, match: Tensor, gate: Tensor, laws: BlockLaws) -> dict[str, Tensor]:
    missed = 1 - match

    def reached_by(read: Tensor) -> Tensor:
        return (missed * (read[: len(missed)] >= scalar(rule.threshold, read))).sum()

    return {
        "drafts": torch.full_like(match[0], len(match)),
        "matches": match.sum(),
        "mismatches": missed.sum(),
        "open": (missed * gate).sum(),
        "paper_open": reached_by(laws.entropy(normalised_entropy)),
        "released_open": reached_by(laws.entropy(top_3_entropy)),
    }


def _ends(ended: Endings) -> dict[str, Tensor]:
    return {
        "met": ended.met.sum(),
        "met_open": (ended.met - ended.gate).sum(),
        "forgiven": ended.forgiven.sum(),
        "rejections": ended.rejected.sum(),
        "gate": ended.gate.sum(),
        "window": ended.window.sum(),
        "boundary": ended.boundary.sum(),
        "boundary_only": ended.boundary_only.sum(),
    }
