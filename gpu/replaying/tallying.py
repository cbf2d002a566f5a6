"""A plan carried out on blocks. Tallies of parts of a trace merge into those of the whole, to the last bit."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import torch

from fly_theory.errors import FlyTheoryError
from gpu.replaying.bounding import bounded_values
from gpu.replaying.evaluation import evaluator
from gpu.replaying.modes import ZERO_RESIDUAL, Level, depends_on_output
from gpu.replaying.on_blocks.laws import BlockLaws
from gpu.replaying.on_blocks.measures import measure_block
from gpu.replaying.plan import Plan
from gpu.replaying.tally import Tally
from gpu.replaying.transfer import on_device
from gpu.trace import TopKBlock, TraceBlock

__all__ = ["Tallies", "tally_blocks"]

# Blocks whose intervals are computed together.
_TOGETHER = 8


@dataclass
class Tallies:
    """What a plan found on some blocks.

    Attributes
    ----------
    draft, rules, blocks
        The tally of the pair itself, and one for each of the rules and of the block rules in the order of the plan.
    notes
        What a reader has to know about how they were evaluated, in alphabetical order.
    """

    draft: Tally
    rules: tuple[Tally, ...]
    blocks: tuple[Tally, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def empty(cls, plan: Plan) -> "Tallies":
        """Nothing counted yet."""
        of_pair, of_rule, of_block = (plan.ranked(level) for level in (Level.PAIR, Level.RULE, Level.BLOCK))
        return cls(
            Tally(of_pair), tuple(Tally(of_rule) for _ in plan.rules), tuple(Tally(of_block) for _ in plan.block_rules)
        )

    def merge(self, other: "Tallies") -> None:
        """Count everything that `other`, of the same plan, counted."""
        self.draft.merge(other.draft)
        for ours, theirs in zip((*self.rules, *self.blocks), (*other.rules, *other.blocks), strict=True):
            ours.merge(theirs)
        self.notes = tuple(sorted({*self.notes, *other.notes}))


@torch.inference_mode()
def tally_blocks(blocks: Iterable[TraceBlock | TopKBlock], plan: Plan) -> Tallies:
    """Evaluate everything a plan asks for on blocks, read once and in the order they come."""
    if plan.bounded:
        return _tally_bounds(blocks, plan)
    tallies, evaluate = Tallies.empty(plan), evaluator(plan)
    for block in on_device(blocks, plan.settings.device):
        try:
            for tally, measures in zip((tallies.draft, *tallies.rules), evaluate(block), strict=True):
                tally.add(block.prompt, block.index, _values(measures))
            _add_block_rules(tallies, block, plan)
        except FlyTheoryError as error:
            msg = f"block {block.index}: {error}"
            raise type(error)(msg) from error
    tallies.notes = tuple(sorted(evaluate.notes))
    return tallies


def _add_block_rules(tallies: Tallies, block: TraceBlock, plan: Plan) -> None:
    laws = BlockLaws(block, plan.settings)
    for setting, tally in zip(plan.block_rules, tallies.blocks, strict=True):
        tally.add(block.prompt, block.index, _values(measure_block(setting, laws, plan.detectors)))


def _tally_bounds(blocks: Iterable[TraceBlock | TopKBlock], plan: Plan) -> Tallies:
    """The same where figures are intervals, several blocks at a time."""
    tallies, remaining = Tallies.empty(plan), iter(blocks)
    while batch := list(islice(remaining, _TOGETHER)):
        try:
            for block, (of_pair, of_rules) in zip(batch, bounded_values(batch, plan), strict=True):
                tallies.draft.add(block.prompt, block.index, of_pair)
                for tally, values in zip(tallies.rules, of_rules, strict=True):
                    tally.add(block.prompt, block.index, values)
                _add_block_rules(tallies, block, plan)
        except FlyTheoryError as error:
            msg = f"blocks {batch[0].index} to {batch[-1].index}: {error}"
            raise type(error)(msg) from error
    return tallies


def _values(measures: dict[str, torch.Tensor]) -> dict[str, list[float | None]]:
    """As lists, with None where the output is undefined because the rule is stuck."""
    values: dict[str, list[float | None]] = {name: found.tolist() for name, found in measures.items()}
    stuck = values.get(ZERO_RESIDUAL.found, ())
    if any(stuck):
        for name in values:
            if depends_on_output(name):
                values[name] = [
                    None if no_output else value for no_output, value in zip(stuck, values[name], strict=True)
                ]
    return values
