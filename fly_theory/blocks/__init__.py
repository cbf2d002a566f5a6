"""Block-level verification rules, one file a rule or a tight family of variants."""

from fly_theory.blocks.base import Block, BlockRule
from fly_theory.blocks.tokenwise import tokenwise

__all__ = ["Block", "BlockRule", "tokenwise"]
