"""A block rule as replay takes it: the rule, and how many of a captured block's drafts it is given."""

from dataclasses import dataclass

from fly_theory.blocks import Block, BlockRule
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.parameters import parameters

__all__ = ["BlockSetting"]


@dataclass(frozen=True)
class BlockSetting:
    """A block rule on whole captured blocks, or on their first `draft_length` drafts; written `SPEC@K`.

    The first drafts of a captured block are what a shorter block from the same context would have been, so a draft
    length below that of the trace needs no other trace.
    """

    rule: BlockRule
    draft_length: int | None = None

    @property
    def spec(self) -> str:
        """The SPEC of the rule, with `@K` where blocks are cut to K drafts."""
        return self.rule.spec if self.draft_length is None else f"{self.rule.spec}@{self.draft_length}"

    @property
    def label(self) -> str:
        """The SPEC without the parameters that are at their defaults, but for those that are varied typically."""
        said = {
            declared.name
            for declared in parameters(type(self.rule))
            if declared.typical or getattr(self.rule, declared.name) != declared.default
        }
        head, _, rest = self.spec.partition(":")
        settings, at, cut = rest.partition("@")
        shown = [setting for setting in settings.split(",") if not said or setting.partition("=")[0] in said]
        return f"{head}:{','.join(shown)}{at}{cut}" if rest else self.spec

    @property
    def deferred(self) -> DeferredWindow | None:
        """The rule, if it is FLy or one of its variants."""
        return self.rule if isinstance(self.rule, DeferredWindow) else None

    def cut(self, block: Block) -> Block:
        """The part of a block that the rule sees."""
        if self.draft_length is None:
            return block
        k = self.draft_length
        return Block(block.target[..., : k + 1, :], block.draft[..., :k, :], block.tokens[..., :k])
