"""A verification rule inside `generate` of transformers, as its `custom_generate`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.utils import ModelOutput

from fly_theory.blocks import BlockRule
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.distributions import softmax
from fly_theory.errors import InvalidInput
from fly_theory.rules.base import Rule
from gpu.decoding.laws import decoding_temperature, known_to_both
from gpu.decoding.reader import Reader
from gpu.decoding.rounds import Round, Speculation, uniforms_in_round
from gpu.decoding.rules import deciding
from gpu.models import Model

__all__ = ["SpeculativeOutput", "speculative_generate"]

# Settings of a generation that would need another loop, with the values that ask for nothing.
_NOTHING: dict[str, tuple[Any, ...]] = {
    "num_beams": (None, 1),
    "num_return_sequences": (None, 1),
    "penalty_alpha": (None, 0),
    "guidance_scale": (None, 1),
    "dola_layers": (None,),
    "constraints": (None,),
    "force_words_ids": (None,),
    "prompt_lookup_num_tokens": (None,),
    "assistant_early_exit": (None,),
    "use_mtp": (None, False),
    "use_cache": (None, True),
    "output_scores": (None, False),
    "output_logits": (None, False),
    "output_attentions": (None, False),
    "output_hidden_states": (None, False),
}
# What `generate` prepares for its own loops, and ours does for itself.
_PREPARED = {"use_cache", "logits_to_keep", "cache_position"}


@dataclass
class SpeculativeOutput(ModelOutput):
    """What `generate` returns with `return_dict_in_generate=True`.

    Attributes
    ----------
    sequences
        Token ids (1, T) of the prompt and its continuation.
    rounds
        Every `gpu.decoding.rounds.Round`, in order.
    """

    sequences: Tensor | None = None
    rounds: tuple[Round, ...] | None = None


def speculative_generate(
    rule: Rule | BlockRule | str, draft_model: Any, draft_length: int = 8
) -> Callable[..., Tensor | SpeculativeOutput]:
    """A decoding loop for `target_model.generate(input_ids, custom_generate=...)`, one text at a time.

    The target is the model whose `generate` is called. Both models' logits go through the logits processors of the
    generation, at each drafted token with the text before it; with `do_sample` the laws are their softmax, else the
    argmax. Stopping criteria see the text token by token, and end it in the middle of a round if need be. Random
    numbers come from torch's generator on the CPU: `torch.manual_seed` repeats a text. With
    `return_dict_in_generate=True` the result, a `SpeculativeOutput`, has every round.

    `generate` hands no custom loop its `streamer`, `assistant_model` or `tokenizer`: give stop strings as a
    `StopStringCriteria` among the stopping criteria.

    FLy and its variants decode by their own conventions: greedy drafts, `do_sample` and temperature as the rule says,
    and a gate that reads the processed logits. Ids that only one of the models knows get no mass.

    Parameters
    ----------
    rule
        A token-level rule, a block rule, or a SPEC.
    draft_model
        A causal language model of transformers over the target's tokenizer; may be the target itself.
    draft_length
        K, draft tokens in a round.

    Raises
    ------
    InvalidInput, UnknownName, ParameterError, NotReadable
        Now, for what is no such rule, model or length. When generating: a batch of texts, padding, a cache from
        before, beams, and whatever else this loop would have to ignore.
    """
    decides = deciding(rule)
    if not (isinstance(draft_length, int) and draft_length >= 1):
        msg = f"draft_length={draft_length!r}; allowed: an integer of at least 1"
        raise InvalidInput(msg)
    draft = _model("draft_model", draft_model)

    def custom_generate(
        model: Any,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Tensor | SpeculativeOutput:
        target = _model("model", model)
        prompt = _prompt(input_ids, model_kwargs)
        _check_settings(decides, generation_config)
        vocabulary = _vocabulary(target)
        laws = _ProcessedLaws(
            logits_processor,
            known=min(vocabulary, _vocabulary(draft)),
            vocabulary=vocabulary,
            sample=bool(generation_config.do_sample),
            rule=decides,
        )
        _check_room(prompt, laws.known, (target, draft), generation_config, draft_length)

        def ended(text: Sequence[int]) -> str | None:
            ids = torch.tensor([text], device=input_ids.device)
            return "stopping criteria" if bool(stopping_criteria(ids, None).all()) else None

        speculation = Speculation(Reader(target), Reader(draft), decides, laws, draft_length)
        count = uniforms_in_round(decides, draft_length)
        rounds = tuple(speculation.rounds(prompt, lambda _: torch.rand(count, dtype=torch.float64), ended))
        new = torch.tensor([[token for done in rounds for token in done.tokens]], device=input_ids.device)
        sequences = torch.cat([input_ids, new], dim=1)
        if generation_config.return_dict_in_generate:
            return SpeculativeOutput(sequences=sequences, rounds=rounds)
        return sequences

    return custom_generate


@dataclass(frozen=True)
class _ProcessedLaws:
    """Softmax or argmax of processed logits; FLy's drafts are the argmax, and its target rows a softmax, always."""

    processors: LogitsProcessorList
    known: int
    vocabulary: int
    sample: bool
    rule: BlockRule

    def target(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        scores = self._processed(logits, text)
        return softmax(scores, temperature=1 if self.sample or isinstance(self.rule, DeferredWindow) else 0)

    def draft(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        scores = self._processed(logits[None], text)[0]
        return softmax(scores, temperature=1 if self.sample and not isinstance(self.rule, DeferredWindow) else 0)

    def _processed(self, logits: Tensor, text: Sequence[int]) -> Tensor:
        scores = known_to_both(logits, self.known, self.vocabulary).float()
        ids = torch.tensor([text], device=scores.device)
        first = len(text) - len(scores) + 1
        rows = [self.processors(ids[:, : first + i], row[None]) for i, row in enumerate(scores)]
        return torch.cat(rows).double()


def _model(name: str, network: Any) -> Model:
    if not callable(getattr(network, "forward", None)) or not hasattr(network, "config"):
        msg = f"{name} is a {type(network).__name__}; allowed: a causal language model of transformers"
        raise InvalidInput(msg)
    if network.training:
        msg = f"{name} is in training mode, in which its law changes from call to call; use {name}.eval()"
        raise InvalidInput(msg)
    return Model(network)


def _vocabulary(model: Model) -> int:
    return int(model.network.config.get_text_config(decoder=True).vocab_size)


def _prompt(input_ids: Tensor, model_kwargs: dict[str, Any]) -> list[int]:
    """The ids of the one text to continue, which is to be read from its beginning and without anything else."""
    if input_ids.shape[0] != 1 or input_ids.shape[1] == 0:
        msg = f"input_ids have shape {tuple(input_ids.shape)}; this loop continues one text at a time: (1, T), T >= 1"
        raise InvalidInput(msg)
    for name, value in model_kwargs.items():
        if name in _PREPARED or value is None:
            continue
        if name in ("cache", "past_key_values"):
            allowed, fine = "an empty cache", value.get_seq_length() == 0
        elif name == "attention_mask":
            allowed, fine = "no padding", bool((value == 1).all())
        elif name == "position_ids":
            allowed, fine = "0, 1, 2, ...", value[0].tolist() == list(range(input_ids.shape[1]))
        else:
            allowed, fine = "nothing beside the text", False
        if not fine:
            msg = f"{name} is given; this loop reads a text from its beginning, so allowed is {allowed}"
            raise InvalidInput(msg)
    return input_ids[0].tolist()


def _check_settings(rule: BlockRule, config: GenerationConfig) -> None:
    for name, nothing in _NOTHING.items():
        value = getattr(config, name, None)
        if value not in nothing:
            msg = f"{name}={value!r}; this loop allows {' or '.join(map(repr, nothing))}"
            raise InvalidInput(msg)
    if isinstance(rule, DeferredWindow):
        temperature = (1.0 if config.temperature is None else config.temperature) if config.do_sample else 0.0
        decoding_temperature(rule, temperature)


def _check_room(
    prompt: Sequence[int], known: int, models: Sequence[Model], config: GenerationConfig, draft_length: int
) -> None:
    if max(prompt) >= known:
        msg = f"input_ids hold {max(prompt)}; both models know only ids below {known}"
        raise InvalidInput(msg)
    limits = [model.context_limit for model in models if model.context_limit is not None]
    if config.max_length is not None and limits and config.max_length + draft_length > min(limits):
        msg = (
            f"max_length={config.max_length} and a draft of {draft_length} need {config.max_length + draft_length} "
            f"positions; the models read {min(limits)}"
        )
        raise InvalidInput(msg)
