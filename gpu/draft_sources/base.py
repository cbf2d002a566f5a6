"""What a source of drafts is: it sees the text so far, and says how the text may go on."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpu.draft_sources.texts import Text

__all__ = ["Branches", "DraftSource", "accepted_tokens"]

# Alternative drafts for one target call; those with a common beginning share its nodes in the draft tree.
Branches = Sequence[tuple[int, ...]]


class DraftSource:
    """A source of drafts that needs no draft model.

    Attributes
    ----------
    name
        As results carry it.
    notes
        What a reader has to know about its figures.
    """

    name: ClassVar[str]
    notes: tuple[str, ...] = ()

    def draft(self, context: np.ndarray, prompt: int) -> Branches:
        """Drafts after the tokens `context` (n,) of a text that began with that prompt; none where it knows none."""
        raise NotImplementedError

    def nodes(self, branches: Branches) -> int:
        """How many draft tokens the target judges: those of the tree of the branches."""
        return len({branch[:length] for branch in branches for length in range(1, len(branch) + 1)})

    def learn(self, text: Text, begin: int, end: int) -> None:
        """Take note that a target call has written the tokens begin..end-1 of a text."""


def accepted_tokens(branches: Branches, continuation: Sequence[int]) -> int:
    """How many tokens of the continuation the best of the branches foretells."""
    return max((_agreement(branch, continuation) for branch in branches), default=0)


def _agreement(branch: Sequence[int], continuation: Sequence[int]) -> int:
    for length, (drafted, written) in enumerate(zip(branch, continuation, strict=False)):
        if drafted != written:
            return length
    return min(len(branch), len(continuation))
