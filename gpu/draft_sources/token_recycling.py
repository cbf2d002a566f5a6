"""TokenRecycling: a fixed tree filled from the tokens that the target last found most probable after each token."""

from typing import ClassVar

import numpy as np

from gpu.draft_sources.base import Branches, DraftSource
from gpu.draft_sources.texts import LIKELIEST, Text

__all__ = ["TREE", "TokenRecycling"]

# The released tree "2.2.2": 80 nodes, each by the ranks among siblings on its path, parents first.
_PATHS = """
0 1 2 3 4 5 6 7
00 01 02 03 04 05 06 07 10 11 12 13 20 21 22 30 31 40 50 60 70
000 001 002 003 004 005 006 007 010 011 012 020 021 030 040 050 060 070 100 101 110 200 300 400 500
0000 0001 0002 0003 0004 0010 0011 0020 0030 0040 0100 0200 1000 2000 3000
00000 00001 00002 00010 00020 00100 01000 10000
000000 000001 000100
"""
TREE = tuple(tuple(map(int, path)) for path in _PATHS.split())

_UNKNOWN = (0,) * LIKELIEST


class TokenRecycling(DraftSource):
    """The tree under the last token; what follows a token is what the target found most probable when it was last fed.

    Nothing is known at first, and unknown tokens are those of id 0, as released. What was learnt is kept from one
    prompt to the next, so that prompts are not independent.

    Reference: Luo et al. 2024 (arXiv 2408.08696) and its released code.
    """

    name: ClassVar[str] = "TokenRecycling"
    notes = (
        "approximate: the released engine also learns from rejected branches, and after every token; a trace knows the "
        "target's most probable tokens only along the captured text, where a block was recorded",
        "learns from prompt to prompt, so its interval, which takes prompts as independent, is too narrow",
    )

    def __init__(self) -> None:
        self._after: dict[int, tuple[int, ...]] = {}

    def draft(self, context: np.ndarray, prompt: int) -> Branches:
        """All 80 paths of the tree."""
        paths: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        for ranks in TREE:
            parent = paths[ranks[:-1]]
            last = parent[-1] if parent else int(context[-1])
            paths[ranks] = (*parent, self._after.get(last, _UNKNOWN)[ranks[-1]])
        return list(paths.values())[1:]

    def nodes(self, branches: Branches) -> int:
        """The whole tree, whatever repeats in it."""
        return len(TREE)

    def learn(self, text: Text, begin: int, end: int) -> None:
        """Keep what was most probable after the tokens that were fed: the last one before, and the accepted ones."""
        for position in range(begin, end):
            if position in text.likeliest:
                likeliest = (*text.likeliest[position], *_UNKNOWN)[:LIKELIEST]
                self._after[int(text.tokens[position - 1])] = likeliest
