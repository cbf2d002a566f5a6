"""Multi-level acceleration: the drafter does not write its draft token by token, but verifies copies first.

The draft is the same; only the number of drafter calls that write it falls. See `fly_theory.cost.Lookup`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fly_theory.cost import Lookup
from gpu.draft_sources.base import accepted_tokens
from gpu.draft_sources.prompt_lookup import PromptLookup

__all__ = ["DrafterCalls", "drafter_calls", "fitted"]


class DrafterCalls(NamedTuple):
    """The drafter calls of one draft.

    calls : int
        All of them.
    copies : int
        Those that verified a copy.
    kept, refused : int
        Copied tokens that the drafter wrote itself, and those it would have written otherwise; what comes after a
        refused one is not judged, nor what lies beyond the draft.
    """

    calls: int
    copies: int
    kept: int
    refused: int


def drafter_calls(lookup: PromptLookup, context: np.ndarray, draft: np.ndarray) -> DrafterCalls:
    """How the drafter writes `draft` (K,) after `context` (n,): each call writes the copied tokens it agrees with and
    one more; what the last call writes beyond K is cut."""
    calls = copies = kept = refused = position = 0
    while position < len(draft):
        branches = lookup.draft(np.concatenate([context, draft[:position]]))
        ahead = draft[position:].tolist()
        accepted = accepted_tokens(branches, ahead)
        calls += 1
        copies += len(branches)
        kept += accepted
        refused += any(accepted < min(len(branch), len(ahead)) for branch in branches)
        position += accepted + 1
    return DrafterCalls(calls, copies, kept, refused)


def fitted(found: Iterable[DrafterCalls], length: int) -> Lookup:
    """The cost model of these drafts: each copied token kept with the same probability, each call copying likewise."""
    totals: Sequence[int] = [sum(column) for column in zip(*found, strict=True)]
    calls, copies, kept, refused = totals
    return Lookup(acceptance=kept / (kept + refused) if kept + refused else 0.0, length=length, hit=copies / calls)
