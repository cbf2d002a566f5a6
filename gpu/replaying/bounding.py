"""The measures of rules as intervals, for rows that are not known in full, or of which a tail is only summed."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from fly_theory.errors import InvalidInput, NotReadable, ZeroResidualError
from fly_theory.rules.base import Rule
from gpu.replaying.certified.heads import cells_of_rows
from gpu.replaying.certified.measures import Bounds, draft_row_bounds, of_blocks, row_bounds, rule_bounds
from gpu.replaying.certified.seen import check_law, groups_of
from gpu.replaying.measures import LEAST, MOST
from gpu.replaying.on_blocks.setting import BlockSetting
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TopKBlock, TopKTrace, Trace, TraceBlock

__all__ = ["bounded_values", "check_bounding"]

_Values = dict[str, list[float]]


def bounded_values(
    blocks: Sequence[TraceBlock] | Sequence[TopKBlock], plan: Plan
) -> Iterator[tuple[_Values, list[_Values]]]:
    """The values of the pair and of each rule on each of some blocks, with their ends under the prefixes.

    Raises
    ------
    ZeroResidualError
        A rule surely rejects in some row and surely has nothing to redraw from.
    """
    count, length = len(blocks), len(blocks[0].tokens)
    parts = list(groups_of(blocks, plan.settings, tail=plan.tail or 0.0))
    order = torch.cat([part.places for part in parts]).argsort()

    def in_order(found: dict[str, Bounds]) -> list[dict[str, list[float]]]:
        rows = {name: Bounds(low[order], high[order]) for name, (low, high) in found.items()}
        return _values(of_blocks(rows, length), count)

    of_pair, of_rules = in_order(draft_row_bounds(parts)), [in_order(row_bounds(rule, parts)) for rule in plan.rules]
    chances = torch.cat([part.head_q.low_left.gather(-1, part.drafted[:, None]) for part in parts])[order]
    impossible = (chances == 0).double().reshape(count, length).sum(-1, keepdim=True)
    for number in range(count):
        yield (
            of_pair[number] | {"impossible_drafts": impossible[number].tolist()},
            [values[number] for values in of_rules],
        )


def check_bounding(
    trace: Trace,
    settings: ReplaySettings,
    rules: tuple[Sequence[Rule], Sequence[BlockSetting]],
    *,
    tail: float | None,
    modes: bool | Sequence[str],
) -> None:
    """Refuse what cannot be asked for where tokens are unseen.

    Raises
    ------
    InvalidInput
        A tail outside [0, 1], or of a top-k trace; failure modes; a law that a top-k trace does not determine.
    NotReadable
        A rule that has to see every token; a block rule on a top-k trace.
    """
    if tail is not None and not 0 <= tail <= 1:
        msg = f"tail={tail!r} is outside [0, 1]"
        raise InvalidInput(msg)
    if modes not in (True, False):
        msg = f"modes={modes!r}; failure modes are looked for only where every token is evaluated"
        raise InvalidInput(msg)
    if isinstance(trace, TopKTrace):
        if tail is not None:
            msg = f"tail={tail!r}: {trace.path} is a top-k trace, whose unseen tokens are those it does not hold"
            raise InvalidInput(msg)
        check_law(trace, settings)
        for setting in rules[1]:
            msg = f"{setting.spec} cannot be replayed on a top-k trace: a block rule needs every token of its rows"
            raise NotReadable(msg)
    for rule in rules[0]:
        _check_readable(rule)


def _check_readable(rule: Rule) -> None:
    p = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64)
    try:
        rule_bounds(rule, cells_of_rows(p, p.flip(-1), torch.tensor([0]), 0.25), 1)
    except NotReadable as error:
        msg = f"{rule.spec} cannot be replayed where tokens are unseen: {error}"
        raise NotReadable(msg) from error
    except ZeroResidualError:
        return


def _values(bounds: Mapping[str, Bounds], blocks: int) -> list[dict[str, list[float]]]:
    values: list[dict[str, list[float]]] = [{} for _ in range(blocks)]
    for name, (low, high) in bounds.items():
        middle = torch.where(high.isfinite(), (low + high) / 2, low)
        for prefix, found in (("", middle), (LEAST, low), (MOST, high)):
            for of_block, row in zip(values, found.reshape(blocks, -1).tolist(), strict=True):
                of_block[f"{prefix}{name}"] = row
    return values
