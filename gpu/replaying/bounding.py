"""The measures of rules as intervals, for rows that are not known in full, or of which a tail is only summed."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from fly_theory.errors import NotReadable, ZeroResidualError
from fly_theory.rules.base import Rule
from gpu.replaying.certified.heads import cells_of_rows
from gpu.replaying.certified.measures import Bounds, draft_bounds, rule_bounds
from gpu.replaying.certified.seen import cells_of
from gpu.replaying.measures import LEAST, MOST
from gpu.replaying.plan import Plan
from gpu.trace import TopKBlock, TraceBlock

__all__ = ["bounded_values", "check_readable"]

_Values = Mapping[str, Sequence[float]]


def bounded_values(block: TraceBlock | TopKBlock, plan: Plan) -> tuple[_Values, list[_Values]]:
    """The values of the pair and of each rule on one block, each with its ends under the prefixes.

    Raises
    ------
    ZeroResidualError
        A rule surely rejects in some row and surely has nothing to redraw from.
    """
    cells = cells_of(block, plan.settings, tail=plan.tail)
    draft = draft_bounds(cells)
    impossible = (cells.head_q.low_left.gather(-1, cells.drafted[:, None]) == 0).double().sum()
    of_rules = [_values(rule_bounds(rule, cells, len(block.tokens))) for rule in plan.rules]
    return {**_values(draft), "impossible_drafts": [float(impossible)]}, of_rules


def check_readable(rules: Iterable[Rule]) -> None:
    """Refuse a rule that has to see every token.

    Raises
    ------
    NotReadable
        Naming the rule and what it asks for.
    """
    p = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64)
    cells = cells_of_rows(p, p.flip(-1), torch.tensor([0]), 0.25)
    for rule in rules:
        try:
            rule_bounds(rule, cells, 1)
        except ZeroResidualError:
            continue
        except NotReadable as error:
            msg = f"{rule.spec} cannot be replayed where tokens are unseen: {error}"
            raise NotReadable(msg) from error


def _values(bounds: Mapping[str, Bounds]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for name, (low, high) in bounds.items():
        middle = torch.where(high.isfinite(), (low + high) / 2, low)
        values |= {name: middle.tolist(), f"{LEAST}{name}": low.tolist(), f"{MOST}{name}": high.tolist()}
    return values
