"""Decoded texts for people: which tokens were drafted, replaced or a bonus, and what that makes a target call worth."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from fly_theory.cli.output import number, table
from gpu.decoding.result import Continuation, Decoding
from gpu.decoding.rounds import ALL_KEPT
from gpu.replaying.estimates import CONFIDENCE

__all__ = ["parts"]


class _Kind(NamedTuple):
    """What a token is, its colour, and what stands around it where there are no colours."""

    name: str
    style: str
    before: str = ""
    after: str = ""


_KEPT, _REPLACED, _BONUS = (
    _Kind("kept draft", "green"),
    _Kind("replaced", "red", "⟨", "⟩"),
    _Kind("bonus", "blue", "⟦", "⟧"),
)

_FIGURES = (
    ("tokens per call", "tokens_per_call"),
    ("draft tokens per call", "accepted_per_call"),
    ("drafts kept per round", "kept_per_round"),
)


def parts(decoding: Decoding, *, coloured: bool) -> Iterator[str | Text | Table]:
    """A legend, the texts, and the figures; without colours, tokens that are no drafts stand in brackets."""
    names = [_shown(kind.name, kind, coloured=coloured) for kind in (_KEPT, _REPLACED, _BONUS)]
    yield Text(f"{decoding.rule.spec}, K={decoding.settings.draft_length}: ") + Text("  ").join(names)
    for continuation in decoding:
        yield ""
        if len(decoding) > 1:
            yield Text(continuation.prompt.id, style="bold")
        yield _text(continuation, coloured=coloured)
    yield ""
    yield _figures(decoding)
    if len(decoding) > 1:
        yield f"Intervals: {CONFIDENCE:.0%}, cluster-robust over the {len(decoding)} prompts."


def _text(continuation: Continuation, *, coloured: bool) -> Text:
    kinds = (
        _KEPT if position < done.kept else _BONUS if done.cause == ALL_KEPT else _REPLACED
        for done in continuation.rounds
        for position in range(len(done.tokens))
    )
    pieces = zip(continuation.pieces, kinds, strict=True)
    return Text().join(_shown(piece, kind, coloured=coloured) for piece, kind in pieces if piece)


def _shown(text: str, kind: _Kind, *, coloured: bool) -> Text:
    if coloured:
        return Text(text, style=kind.style)
    word = text.strip()
    return Text(text.replace(word, f"{kind.before}{word}{kind.after}") if word else text)


def _figures(decoding: Decoding) -> Table:
    rows = []
    for label, name in _FIGURES:
        estimate = getattr(decoding, name)
        interval = "" if estimate.low is None else f"[{estimate.low:.2f}, {estimate.high:.2f}]"
        rows.append((label, f"{estimate.mean:.2f}", interval))
    tokens, calls = sum(len(text.ids) for text in decoding), sum(text.calls for text in decoding)
    rows += [("tokens", number(tokens), ""), ("calls of the target", number(calls), "")]
    return table(("figure", "value", "interval"), rows, numeric=("value",))
