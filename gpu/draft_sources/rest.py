"""REST: drafts retrieved from a datastore by the longest suffix of the text that occurs in it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from gpu.draft_sources.base import Branches, DraftSource
from gpu.draft_sources.datastore import Datastore
from gpu.draft_sources.texts import Text

__all__ = ["Rest"]

# As released: suffixes from 16 tokens down to 2, continuations of 10 tokens, 5,000 of them, a tree of 64 nodes.
_LONGEST, _SHORTEST, _LENGTH, _HITS, _NODES = 16, 2, 10, 5000, 64


class Rest(DraftSource):
    """The 64 most frequent beginnings of what followed the longest suffix with a hit.

    The released code leaves open which of equally frequent beginnings are kept; here the shorter, then those with the
    smaller ids. Its datastore does not mark where documents end; here nothing is found across an end.

    Reference: He et al. 2023 (arXiv 2311.08252) and its released code.
    """

    name: ClassVar[str] = "REST"

    def __init__(self, datastore: Callable[[int], Datastore], *notes: str) -> None:
        self._datastore = datastore
        self.notes = notes

    @classmethod
    def leaving_one_out(cls, texts: Sequence[Text]) -> "Rest":
        """With the other texts as the datastore of each, so that no text finds itself."""
        stores = {
            text.prompt: Datastore(other.tokens for other in texts if other.prompt != text.prompt) for text in texts
        }
        note = f"the datastore of a prompt holds the other {len(texts) - 1} prompts and their texts"
        return cls(stores.__getitem__, note)

    def draft(self, context: np.ndarray, prompt: int) -> Branches:
        """Beginnings of continuations, each a branch."""
        datastore = self._datastore(prompt)
        for span in range(min(_LONGEST, len(context)), _SHORTEST - 1, -1):
            found = datastore.continuations(context[-span:], length=_LENGTH, limit=_HITS)
            if found:
                counts = Counter(branch[:n] for branch in found for n in range(1, len(branch) + 1))
                return sorted(counts, key=lambda branch: (-counts[branch], len(branch), branch))[:_NODES]
        return []
