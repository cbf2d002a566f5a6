"""The commonest failure modes of each rule, for the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import table as new_table
from gpu.replaying.modes import ModeResult, commonest
from gpu.replaying.result import Replay
from gpu.replaying.wording import consistency, percent

__all__ = ["mode_table"]

_SHOWN = 3


def mode_table(replay: Replay) -> list[str | Table]:
    """A row a rule that has any, and what stands out about the pair; nothing where modes were not looked for."""
    parts: list[str | Table] = []
    for heading, results in (
        ("share of the positions, and of TV(p, out) that it explains", [(r.spec, r.modes) for r in replay]),
        (
            "how often in a round, and the share of the drafts lost or mismatches forgiven that it explains",
            [(r.label, r.modes) for r in replay.block_rules],
        ),
    ):
        rows = [[Text(name, style="bold"), *cells] for name, modes in results if any(cells := _cells(modes))]
        if rows:
            parts += [f"\nCommonest failure modes: {heading}\n", new_table(["rule", *[""] * _SHOWN], rows)]
    if replay.consistency is not None:
        found = [f"{mode.mode.label} at {percent(mode.rate)}" for mode in replay.pair_modes if mode.rate.mean]
        parts.append(f"\nThe pair: {'; '.join([*found, consistency(replay.consistency)])}.")
    return parts


def _cells(modes: Sequence[ModeResult]) -> list[str]:
    cells = [_cell(found) for found in commonest(modes, _SHOWN)]
    return cells + [""] * (_SHOWN - len(cells))


def _cell(found: ModeResult) -> str:
    share = f", {percent(found.explained)}" if found.explained is not None else ""
    return f"{found.mode.label} {percent(found.rate)}{share}"
