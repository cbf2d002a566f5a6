"""A source of drafts at work on a text of the target: call by call, verified by the lossless rule.

A draft that is certain is accepted losslessly exactly where the target writes it. On a captured text this is no
estimate: the calls are those an engine would have made to write that text, greedily or by sampling.
"""

from typing import NamedTuple

from gpu.draft_sources.base import DraftSource, accepted_tokens
from gpu.draft_sources.texts import Text

__all__ = ["Call", "walk"]


class Call(NamedTuple):
    """One target call.

    drafted : int
        Nodes of the draft tree.
    accepted : int
        Draft tokens accepted.
    written : int
        Tokens written: one more than accepted, except where the text ends with the accepted ones.
    """

    drafted: int
    accepted: int
    written: int


def walk(source: DraftSource, text: Text) -> list[Call]:
    """The target calls that write a text from the end of its prompt to its own end."""
    calls: list[Call] = []
    position, size = text.start, len(text.tokens)
    while position < size:
        branches = source.draft(text.tokens[:position], text.prompt)
        accepted = accepted_tokens(branches, text.tokens[position:].tolist())
        written = min(accepted + 1, size - position)
        source.learn(text, position, position + written)
        calls.append(Call(source.nodes(branches), accepted, written))
        position += written
    return calls
