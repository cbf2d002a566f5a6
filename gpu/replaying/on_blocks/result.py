"""What a replay found about a block rule, as data."""

from dataclasses import dataclass
from typing import Any

from gpu.replaying.estimates import Estimate, Figures, plain
from gpu.replaying.modes import ModeResult
from gpu.replaying.on_blocks.setting import BlockSetting

__all__ = ["BlockRuleResult"]


@dataclass(frozen=True)
class BlockRuleResult:
    """What a replay found about one block rule; `result["tokens_per_call"]` is a figure.

    Attributes
    ----------
    setting
        The rule, and the draft length it was given.
    draft_length
        How many drafts it judged at a time.
    figures
        By the names of `gpu.replaying.on_blocks.measures.BLOCK_FIGURES`; None where a figure is not identified by the
        trace, or has nothing to count.
    modes
        The failure modes of a rule that defers, those first that explain most; none where they were not looked for.
    """

    setting: BlockSetting
    draft_length: int
    figures: Figures
    modes: tuple[ModeResult, ...] = ()

    def __getitem__(self, name: str) -> Estimate | None:
        return self.figures[name]

    @property
    def spec(self) -> str:
        """The SPEC string of the rule, with `@K` where blocks were cut."""
        return self.setting.spec

    @property
    def label(self) -> str:
        """The SPEC string without what goes without saying."""
        return self.setting.label

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rule": self.spec,
            "draft_length": self.draft_length,
            "figures": plain(self.figures),
            "modes": [found.to_json() for found in self.modes],
        }
