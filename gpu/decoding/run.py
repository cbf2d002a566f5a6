"""From a model pair, a rule and prompts to texts."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from fly_theory.blocks import BlockRule
from fly_theory.provenance import provenance
from fly_theory.rules.base import Rule
from gpu.decoding.laws import WarpedLaws, decoding_temperature, laws_for
from gpu.decoding.reader import Reader
from gpu.decoding.result import Continuation, Decoding
from gpu.decoding.rounds import Round, Speculation, uniforms_in_round
from gpu.decoding.rules import deciding
from gpu.devices import resolve_device
from gpu.encoding import encode
from gpu.models import Pair, load_pair
from gpu.prompts import Prompt, read_prompts
from gpu.sampling import LIVE, uniforms
from gpu.settings import DecodeSettings, Device, Dtype
from gpu.trace.header import DTYPES

__all__ = ["decode"]

_DEFAULT = DecodeSettings()

# What a decoder writes for the bytes of a character that is not complete.
_INCOMPLETE = "\ufffd"


@torch.inference_mode()
def decode(
    target: str | Path,
    draft: str | Path,
    rule: Rule | BlockRule | str,
    prompts: str | Path | Sequence[str] | None = None,
    *,
    draft_length: int = _DEFAULT.draft_length,
    max_new_tokens: int = _DEFAULT.max_new_tokens,
    temperature: float | None = _DEFAULT.temperature,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    epsilon: float | None = None,
    eta: float | None = None,
    stop: Sequence[str] = _DEFAULT.stop,
    chat: bool = _DEFAULT.chat,
    model_dtype: Dtype = _DEFAULT.model_dtype,
    seed: int = _DEFAULT.seed,
    device: Device = _DEFAULT.device,
    progress: Callable[[int, int], None] | None = None,
) -> Decoding:
    """Continue prompts by speculative decoding with a verification rule, one text at a time.

    In each round the draft q proposes K tokens and one call of the target p reads them all; the rule decides how many
    are kept and what follows. Both models keep their keys and values, and take those of rejected tokens back. A text
    ends with the first end-of-sequence token, stop text or the last allowed token, wherever in a round that is.

    A token-level rule is lifted by first rejection. FLy and its variants decode by their own conventions: greedy
    drafts, and their own temperature. A rule that completes its block calls both models again for every token it
    replaces after the first. Ids that only one of the models knows get no mass.

    Parameters
    ----------
    target, draft
        As in `gpu.capture`.
    rule
        A token-level rule, a block rule, or a SPEC.
    prompts
        A text file with a prompt a line, a JSONL file (see `gpu.prompts`), a sequence of texts, or None for the
        shipped set.
    draft_length, max_new_tokens, temperature, top_k, top_p, min_p, epsilon, eta, stop, chat, model_dtype, seed, device
        As described in `gpu.settings.DecodeSettings`.
    progress
        Called with (tokens done, tokens at most) at the start and after every round.

    Returns
    -------
    Decoding
        A `Continuation` a prompt, in order, with every round. The same arguments give the same texts again, on the same
        machine, whatever the other prompts are.

    Raises
    ------
    InvalidInput, CaptureError
        As `gpu.capture`; also a rule of another level, a temperature or warpers beside FLy's own, and a model whose
        state cannot be rolled back.
    UnknownName, ParameterError, NotReadable
        A SPEC that names no rule, a parameter outside its domain, or a rule that torch cannot read.
    ZeroResidualError
        A rule that rejects and has nothing to emit instead.
    """
    decides = deciding(rule)
    settings = DecodeSettings(
        draft_length=draft_length,
        max_new_tokens=max_new_tokens,
        temperature=decoding_temperature(decides, temperature),
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        epsilon=epsilon,
        eta=eta,
        stop=tuple(stop),
        chat=chat,
        model_dtype=model_dtype,
        seed=seed,
        device=resolve_device(device),
    )
    used = read_prompts(prompts)
    pair = load_pair(target, draft, dtype=DTYPES[model_dtype], device=torch.device(settings.device))
    encoded = [
        encode(pair, prompt, chat=chat, continuation=max_new_tokens, draft_length=draft_length) for prompt in used
    ]
    laws = laws_for(
        decides,
        temperature=settings.temperature,
        warpers=settings.warpers,
        known=pair.common,
        vocabulary=pair.target.vocabulary,
    )
    continuations = []
    for number, (prompt, ids) in enumerate(zip(used, encoded, strict=True)):
        rounds: list[Round] = []
        before, total, written = number * max_new_tokens, len(used) * max_new_tokens, 0
        if progress:
            progress(before, total)
        for done in _rounds(pair, decides, laws, settings, number, ids):
            rounds.append(done)
            written += len(done.tokens)
            if progress:
                progress(before + (max_new_tokens if done.ending else written), total)
        continuations.append(_continuation(pair, prompt, ids, rounds))
    return Decoding(decides, settings, tuple(continuations), _provenance(pair, settings))


def _rounds(
    pair: Pair, rule: BlockRule, laws: WarpedLaws, settings: DecodeSettings, number: int, prompt_ids: Sequence[int]
) -> Iterator[Round]:
    """The rounds that continue prompt number `number`."""
    count = uniforms_in_round(rule, settings.draft_length)
    speculation = Speculation(Reader(pair.target), Reader(pair.draft), rule, laws, settings.draft_length)
    return speculation.rounds(
        prompt_ids,
        lambda index: torch.from_numpy(uniforms(settings.seed, LIVE, number, index, count)),
        lambda text: _ending(pair, settings, text[len(prompt_ids) :]),
    )


def _ending(pair: Pair, settings: DecodeSettings, ids: Sequence[int]) -> str | None:
    """Why a continuation is complete with the last of these ids, or None."""
    if ids[-1] in pair.target.stop_ids:
        return "end of sequence"
    if settings.stop:
        text = _text(pair, ids)
        if any(stop in text for stop in settings.stop):
            return "stop text"
    return "length" if len(ids) == settings.max_new_tokens else None


def _continuation(pair: Pair, prompt: Prompt, prompt_ids: Sequence[int], rounds: Sequence[Round]) -> Continuation:
    ids = [token for done in rounds for token in done.tokens]
    return Continuation(prompt, tuple(prompt_ids), _text(pair, ids), tuple(ids), _pieces(pair, ids), tuple(rounds))


def _text(pair: Pair, ids: Sequence[int]) -> str:
    text: str = pair.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text


def _pieces(pair: Pair, ids: Sequence[int]) -> tuple[str, ...]:
    """What each token adds to the text; of tokens that make up one character together, the last adds it."""
    pieces, written = [], 0
    for count in range(1, len(ids) + 1):
        text = _text(pair, ids[:count])
        whole = len(text) if count == len(ids) else len(text.rstrip(_INCOMPLETE))
        pieces.append(text[written:whole])
        written = max(written, whole)
    return tuple(pieces)


def _provenance(pair: Pair, settings: DecodeSettings) -> dict[str, Any]:
    device = torch.cuda.get_device_name() if settings.device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    known = provenance(("numpy", "tokenizers", "torch", "transformers"), seed=settings.seed, device=device)
    return known | {"models": pair.identity}
