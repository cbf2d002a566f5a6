"""A plan carried out on blocks. Tallies of parts of a trace merge into those of the whole, to the last bit."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from fly_theory.errors import FlyTheoryError
from gpu.replaying.measures import measure, measure_draft
from gpu.replaying.plan import Plan
from gpu.replaying.tally import Tally
from gpu.trace import TraceBlock

__all__ = ["Tallies", "tally_blocks"]


@dataclass
class Tallies:
    """What a plan found on some blocks: the tally of the pair itself, and one a rule in the order of the plan."""

    draft: Tally
    rules: tuple[Tally, ...]

    @classmethod
    def empty(cls, plan: Plan) -> "Tallies":
        """Nothing counted yet."""
        return cls(Tally(), tuple(Tally() for _ in plan.rules))

    def merge(self, other: "Tallies") -> None:
        """Count everything that `other`, of the same plan, counted."""
        self.draft.merge(other.draft)
        for ours, theirs in zip(self.rules, other.rules, strict=True):
            ours.merge(theirs)


@torch.inference_mode()
def tally_blocks(blocks: Iterable[TraceBlock], plan: Plan) -> Tallies:
    """Evaluate everything a plan asks for on blocks, read once and in the order they come."""
    tallies = Tallies.empty(plan)
    for block in blocks:
        try:
            p, q = plan.settings.pair(block)
            tokens = block.tokens.to(p.device)
            tallies.draft.add(block.prompt, block.index, _values(measure_draft(p, q, tokens)))
            for rule, tally in zip(plan.rules, tallies.rules, strict=True):
                tally.add(block.prompt, block.index, _values(measure(rule, p, q, tokens, plan.further)))
        except FlyTheoryError as error:
            msg = f"block {block.index}: {error}"
            raise type(error)(msg) from error
    return tallies


def _values(measures: dict[str, torch.Tensor]) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in measures.items()}
