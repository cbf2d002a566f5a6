"""Prompt lookup: copy what followed when the text's last tokens occurred before. Three conventions, as released.

All try n-grams from the longest down to one token, take the earliest occurrence that qualifies, and copy a fixed number
of tokens. They differ in which occurrences qualify, and in how a copy is cut.

| convention | longest | copies | an occurrence of the last n of L tokens qualifies if the copy begins at s with |
| --- | --- | --- | --- |
| original | 3 | 10 | s < L - n, and all ten tokens are there: s <= L - 10 |
| transformers | 2 | 10 | s < L; the copy ends with the text, and before a token that ends a sequence |
| FLy | 4 | 6 | s <= L - n: the occurrence ends before the last n tokens begin; the copy ends with the text |
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fly_theory.errors import InvalidInput
from gpu.draft_sources.base import Branches, DraftSource

__all__ = ["FlyLookup", "OriginalLookup", "PromptLookup", "TransformersLookup"]


@dataclass(frozen=True)
class PromptLookup(DraftSource):
    """A convention of prompt lookup.

    Attributes
    ----------
    longest
        Tokens in the longest n-gram that is looked up.
    length
        Copied tokens.
    """

    longest: int
    length: int

    def __post_init__(self) -> None:
        for name in ("longest", "length"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                msg = f"{name}={value!r}; allowed is an integer of at least 1"
                raise InvalidInput(msg)

    def draft(self, context: np.ndarray, prompt: int = 0) -> Branches:
        """One branch, or none."""
        size = len(context)
        for n in range(min(self.longest, size - 1), 0, -1):
            occurs = (sliding_window_view(context, n) == context[-n:]).all(axis=1)
            begins = np.flatnonzero(occurs) + n
            if begins[0] <= self._latest(size, n):
                copy = self._cut(tuple(context[begins[0] : begins[0] + self.length].tolist()))
                return [copy] if copy else []
        return []

    def _latest(self, size: int, n: int) -> int:
        """Where a copy may begin at the latest, after an n-gram found in a text of `size` tokens."""
        raise NotImplementedError

    def _cut(self, copy: tuple[int, ...]) -> tuple[int, ...]:
        return copy


@dataclass(frozen=True)
class OriginalLookup(PromptLookup):
    """As published first.

    Reference: Saxena 2023, released code of prompt-lookup-decoding.

    Examples
    --------
    >>> import numpy as np
    >>> OriginalLookup(longest=3, length=2).draft(np.array([5, 7, 1, 2, 5, 7]))
    [(1, 2)]
    """

    name: ClassVar[str] = "prompt lookup (original)"
    longest: int = 3
    length: int = 10

    def _latest(self, size: int, n: int) -> int:
        return min(size - self.length, size - n - 1)


@dataclass(frozen=True)
class TransformersLookup(PromptLookup):
    """As transformers has it, with its defaults; `stop` are the tokens that end a sequence.

    Reference: `PromptLookupCandidateGenerator` of transformers, versions 4.46 to 5.
    """

    name: ClassVar[str] = "prompt lookup (transformers)"
    longest: int = 2
    length: int = 10
    stop: frozenset[int] = frozenset()

    def _latest(self, size: int, n: int) -> int:
        return size - 1

    def _cut(self, copy: tuple[int, ...]) -> tuple[int, ...]:
        return copy[: next((i for i, token in enumerate(copy) if token in self.stop), len(copy))]


@dataclass(frozen=True)
class FlyLookup(PromptLookup):
    """As FLy drafts for its drafter. Where nothing is found its engine repeats the copy before, which is not done here.

    Reference: released code of FLy (arXiv 2511.22972, section 2.3), with the settings of its scripts.
    """

    name: ClassVar[str] = "prompt lookup (FLy)"
    longest: int = 4
    length: int = 6

    def _latest(self, size: int, n: int) -> int:
        return size - n
