"""What a replay evaluates, apart from the blocks it is evaluated on."""

import pickle
from dataclasses import dataclass

from fly_theory.rules.base import Rule
from gpu.replaying.measures import Further
from gpu.replaying.modes import Detectors, Level, Mode
from gpu.replaying.on_blocks.setting import BlockSetting
from gpu.replaying.settings import ReplaySettings

__all__ = ["NOT_PORTABLE", "Plan"]

NOT_PORTABLE = (pickle.PicklingError, AttributeError, TypeError)
"""What pickling a plan raises if one of its rules, of a file for instance, exists in this process alone."""


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs besides blocks; it pickles.

    Attributes
    ----------
    rules
        Token-level rules.
    settings
        The law that logits become.
    further
        What is computed of every rule beside its measures, in the same pass (see `gpu.replaying.measures.Further`).
    detectors
        The failure modes that are looked for, or None for the bare figures.
    block_rules
        Rules that judge a block of drafts as a whole.
    bounded
        Whether figures of token-level rules are intervals, some tokens being unseen.
    tail
        The joint mass (p + q)/2 in each row of the tokens that are left unseen where whole rows are bounded.
    compiled
        Whether the exact evaluation of token-level rules is compiled (see `compilation.worth_compiling`).
    """

    rules: tuple[Rule, ...]
    settings: ReplaySettings
    further: tuple[Further, ...] = ()
    detectors: Detectors | None = None
    block_rules: tuple[BlockSetting, ...] = ()
    bounded: bool = False
    tail: float | None = None
    compiled: bool = False

    def modes(self, level: Level) -> tuple[Mode, ...]:
        """The failure modes of one level that are looked for."""
        return () if self.detectors is None else self.detectors.at(level)

    def ranked(self, level: Level) -> tuple[str, ...]:
        """The values by which tallies of one level rank positions: TV(p, out), and what each mode explains."""
        divergence = () if level is Level.BLOCK else ("tv",)
        return (*divergence, *(mode.explained for mode in self.modes(level)))
