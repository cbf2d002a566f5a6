"""A failure mode: a named way of going wrong, and the detector that finds it in rows."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from fly_theory.arrays import Array

__all__ = ["EXPLAINED", "FOUND", "ROUNDING", "Finding", "Level", "Mode"]

# Prefixes of the two values that a mode contributes to a tally.
FOUND, EXPLAINED = "mode_", "explained_"

# Mass in float32 rows over 150,000 tokens that may be rounding.
ROUNDING = 1e-5


class Level(StrEnum):
    """What a mode is a mode of, and with that what its rate counts and what it explains.

    RULE
        A token-level rule: its rate is a share of positions.
    BLOCK
        A block rule that defers mismatches: how often in a round.
    PAIR
        Target, draft and trace, whatever the rule: a share of positions.
    """

    RULE = "token rule"
    BLOCK = "block rule"
    PAIR = "pair"


class Finding(NamedTuple):
    """Where a mode is found (K,), true or false or, of a block rule, a probability; and what it explains there."""

    found: Array
    explained: Array


@dataclass(frozen=True)
class Mode:
    """A failure mode.

    Attributes
    ----------
    name, label, meaning
        For files, for headings, and what it means with every bound it uses.
    level
        What it is a mode of.
    find
        The detector: a pure function from the rows of a block to a `Finding`, without a branch on array values.
    of
        The value of the tally whose sum it explains a share of: `tv` is the divergence, TV(p, out) of a rule and
        TV(p, q) of the pair. None where it explains nothing.
    per
        The value of the tally whose sum the rate is a share of; by default the positions.
    token_class
        The class of tokens that it needs to know, if any; see `TokenClasses`.
    """

    name: str
    label: str
    meaning: str
    level: Level
    find: Callable[[Any], Finding]
    of: str | None = "tv"
    per: str | None = None
    token_class: str | None = None

    @property
    def found(self) -> str:
        """Name in a tally of whether the mode is found, 0 or 1."""
        return f"{FOUND}{self.name}"

    @property
    def explained(self) -> str:
        """Name in a tally of what the mode explains."""
        return f"{EXPLAINED}{self.name}"
