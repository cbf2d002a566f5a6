"""A datastore of texts: everything that followed a run of tokens, found through a suffix array."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from fly_theory.errors import InvalidInput

__all__ = ["Datastore", "suffix_array"]

# Ends a document; no token has this id, so nothing is found across an end.
_END = -1


class Datastore:
    """Documents of token ids.

    Raises
    ------
    InvalidInput
        No document with a token.
    """

    def __init__(self, documents: Iterable[Sequence[int]]) -> None:
        self._tokens = [int(token) for document in documents for token in (*document, _END)]
        if all(token == _END for token in self._tokens):
            msg = "the datastore holds no token"
            raise InvalidInput(msg)
        self._suffixes = suffix_array(np.array(self._tokens)).tolist()

    def continuations(self, query: Sequence[int], *, length: int, limit: int) -> list[tuple[int, ...]]:
        """What follows the occurrences of `query`, `length` tokens or up to the end of the document, ends left out.

        The first `limit` occurrences are looked at, in the order of what follows them.
        """
        query, tokens = [int(token) for token in query], self._tokens
        size = len(query)

        def beginning(suffix: int) -> list[int]:
            return tokens[suffix : suffix + size]

        first = bisect_left(self._suffixes, query, key=beginning)
        last = bisect_right(self._suffixes, query, lo=first, key=beginning)
        found = (tokens[s + size : s + size + length] for s in self._suffixes[first : min(last, first + limit)])
        cut = (tuple(after[: after.index(_END)] if _END in after else after) for after in found)
        return [after for after in cut if after]


def suffix_array(tokens: np.ndarray) -> np.ndarray:
    """Beginnings of the suffixes of tokens (n,) in lexicographic order, a suffix before those it begins.

    By doubling: suffixes sorted by their first k tokens are sorted by 2k through the ranks of what follows after k.
    """
    size, k = len(tokens), 1
    rank = np.unique(tokens, return_inverse=True)[1] + 1
    while True:
        after = np.zeros(size, dtype=rank.dtype)
        after[: max(size - k, 0)] = rank[k:]
        order = np.lexsort((after, rank))
        differs = np.diff(rank[order], prepend=0).astype(bool) | np.diff(after[order], prepend=0).astype(bool)
        rank = np.empty_like(rank)
        rank[order] = np.cumsum(differs)
        if rank[order[-1]] == size:
            return order
        k *= 2
