"""What a trace holds of the target's own texts, and of the drafts that were recorded along them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from fly_theory.closed_form import block_efficiency
from fly_theory.errors import InvalidInput
from fly_theory.rules.lossless import Lossless
from gpu.replaying.settings import ReplaySettings, drawn_temperature
from gpu.trace import Trace, TraceBlock

__all__ = ["LIKELIEST", "RecordedDraft", "Text", "read_texts"]

# How many of the target's most probable tokens are kept after each position, as TokenRecycling keeps them.
LIKELIEST = 8


@dataclass(frozen=True, eq=False)
class Text:
    """The longest context of a prompt: the prompt, and the target's continuation of it as far as the trace holds it.

    Attributes
    ----------
    prompt, name
        Number of the prompt, and its id where the trace names it.
    tokens
        (T,) prompt and continuation.
    start
        How many of the tokens are the prompt's.
    likeliest
        The target's `LIKELIEST` most probable tokens after the first n tokens, most probable first, by n; only where
        the trace has logits of this text.
    """

    prompt: int
    name: str
    tokens: np.ndarray
    start: int
    likeliest: Mapping[int, tuple[int, ...]]


class RecordedDraft(NamedTuple):
    """A block of the trace without its logits.

    prompt : int
        Number of the prompt.
    context : (n,) array
        The text before the block.
    tokens : (K,) array
        The draft tokens.
    accepted : float
        How many of them lossless verification accepts in expectation.
    """

    prompt: int
    context: np.ndarray
    tokens: np.ndarray
    accepted: float


@torch.inference_mode()
def read_texts(
    trace: Trace, progress: Callable[[int, int], None] | None = None
) -> tuple[list[Text], list[RecordedDraft]]:
    """The texts of a trace by number of the prompt, and its recorded drafts in order, read block by block.

    Raises
    ------
    InvalidInput
        Contexts of one prompt that do not continue each other, or no continuation at all.
    """
    drawn = drawn_temperature(trace)
    settings = ReplaySettings(temperature=1.0 if drawn is None else drawn)
    recorded: list[RecordedDraft] = []
    starts: dict[int, int] = {}
    likeliest: list[np.ndarray] = []
    for done, block in enumerate(trace):
        if progress:
            progress(done, len(trace))
        recorded.append(_recorded(block, settings))
        likeliest.append(block.target_logits.float().topk(min(LIKELIEST, trace.vocabulary)).indices.numpy())
        starts[block.prompt] = len(block.context) - block.position
    if progress:
        progress(len(trace), len(trace))
    prompts = trace.manifest["source"].get("prompts", [])
    texts = []
    for prompt, start in sorted(starts.items()):
        blocks = [(draft, rows) for draft, rows in zip(recorded, likeliest, strict=True) if draft.prompt == prompt]
        tokens = max((draft.context for draft, _ in blocks), key=len)
        if any((draft.context != tokens[: len(draft.context)]).any() for draft, _ in blocks):
            msg = f"contexts of prompt {prompt} in {trace.path} do not continue each other, so they are no one text"
            raise InvalidInput(msg)
        if start < len(tokens):
            name = prompts[prompt]["id"] if prompts else str(prompt)
            texts.append(Text(prompt, name, tokens, start, _along(tokens, blocks)))
    if not texts:
        msg = f"{trace.path} holds no continuation of any prompt; draft sources are compared on those"
        raise InvalidInput(msg)
    return texts, recorded


def _recorded(block: TraceBlock, settings: ReplaySettings) -> RecordedDraft:
    p, q = settings.pair(block)
    accepted = block_efficiency(Lossless().keep(p, q, block.tokens)).accepted_per_call
    return RecordedDraft(block.prompt, block.context.numpy(), block.tokens.numpy(), float(accepted))


def _along(tokens: np.ndarray, blocks: list[tuple[RecordedDraft, np.ndarray]]) -> dict[int, tuple[int, ...]]:
    """The rows of the blocks that follow a beginning of the text, by its length: those before a draft leaves it."""
    found: dict[int, tuple[int, ...]] = {}
    for draft, rows in blocks:
        begin = len(draft.context)
        ahead = tokens[begin : begin + len(draft.tokens)]
        agreeing = int(np.cumprod(draft.tokens[: len(ahead)] == ahead).sum())
        found |= {begin + row: tuple(rows[row].tolist()) for row in range(agreeing + 1)}
    return found
