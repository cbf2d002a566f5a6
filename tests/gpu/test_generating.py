"""The rule inside `generate` of transformers: its law, what it honours, and what it refuses."""

import functools
import inspect
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, LogitsProcessorList, StoppingCriteriaList
from transformers.generation import StopStringCriteria

import fly_theory as ft
import gpu
from fly_theory.errors import InvalidInput
from fly_theory.testing import pretrained_table_model

TARGET = [["1/2", "1/4", "1/4"], ["1/6", "1/3", "1/2"], ["1/8", "3/8", "1/2"]]
DRAFT = [["1/4", "1/4", "1/2"], ["3/5", "1/5", "1/5"], ["1/3", "1/6", "1/2"]]
FALSE_ALARM = 1e-6  # the budget of each statistical test; seeds are fixed


@pytest.fixture(scope="module")
def models(tiny: SimpleNamespace) -> SimpleNamespace:
    """A Llama of 296 rows, a Qwen2 of 292, and ids that both read."""
    target, draft = (AutoModelForCausalLM.from_pretrained(folder).eval() for folder in (tiny.llama, tiny.narrow_qwen))
    tokenizer = AutoTokenizer.from_pretrained(tiny.llama)
    ids = tokenizer("the fox and the hare", return_tensors="pt")["input_ids"]
    return SimpleNamespace(target=target, draft=draft, tokenizer=tokenizer, ids=ids)


def generated(
    models: SimpleNamespace, rule: Any = "lossless", *, draft: Any = None, draft_length: int = 3, **options: Any
) -> Any:
    custom = gpu.speculative_generate(rule, models.draft if draft is None else draft, draft_length)
    settings = {"attention_mask": torch.ones_like(models.ids), "max_new_tokens": 20, "pad_token_id": 0} | options
    return models.target.generate(models.ids, custom_generate=custom, **settings)


def plain(models: SimpleNamespace, **options: Any) -> torch.Tensor:
    settings = {"attention_mask": torch.ones_like(models.ids), "max_new_tokens": 20, "pad_token_id": 0} | options
    return models.target.generate(models.ids, **settings)


# -- the law of the text -----------------------------------------------------------------------------------------------


def engine(rule: str, **options: Any) -> Any:
    def generate(draft: Any, target: Any, ids: torch.Tensor, seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        custom = gpu.speculative_generate(rule, draft, draft_length=3)
        return target.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, custom_generate=custom, **options
        )

    return generate


@pytest.mark.parametrize(
    ("rule", "options", "goal", "settings"),
    [
        ("lossless", {"do_sample": True}, None, {"eos": 2}),
        (
            "block",
            {"do_sample": True, "temperature": 0.7, "top_k": 2},
            lambda row: ft.warp(np.log(row), temperature=0.7, top_k=2),
            {},
        ),
        ("lossless", {"do_sample": False}, lambda row: np.eye(len(row))[row.argmax()], {"padding": 2}),
    ],
    ids=["with an end", "temperature 0.7 and top-k", "greedy"],
)
def test_lossless_rules_generate_the_targets_law(rule: str, options: Any, goal: Any, settings: Any) -> None:
    report = ft.conformance_engine(
        engine(rule, **options),
        (TARGET, DRAFT),
        goal=goal,
        model=pretrained_table_model,
        resolution=0.3,
        false_alarm=FALSE_ALARM,
        seconds=600,
        **settings,
    )
    assert report.verdict == "lossless"
    assert report.ok


def test_a_lenient_rule_is_refuted() -> None:
    report = ft.conformance_engine(
        engine("lenience:l=0.5", do_sample=True),
        (TARGET, DRAFT),
        model=pretrained_table_model,
        resolution=0.15,
        false_alarm=FALSE_ALARM,
        seconds=600,
    )
    assert report.verdict == "lossy"


# -- what is honoured --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repetition_penalty": 1.3},
        {"no_repeat_ngram_size": 2},
        {"min_new_tokens": 15, "eos_token_id": list(range(0, 290, 3))},
        {"bad_words_ids": [[7], [20, 30]], "suppress_tokens": [4, 5]},
        {"eos_token_id": list(range(0, 290, 7))},
        {"max_length": 14, "max_new_tokens": None},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
@pytest.mark.parametrize("draft", ["draft", "target"])
def test_greedy_texts_are_those_of_plain_generate(models: SimpleNamespace, options: Any, draft: str) -> None:
    for draft_length in (1, 4):
        custom = {"draft": getattr(models, draft), "draft_length": draft_length}
        same = generated(models, do_sample=False, **custom, **options)
        assert torch.equal(same, plain(models, do_sample=False, suppress_tokens=unknown(options), **_without(options)))


def unknown(options: Any) -> list[int]:
    """Ids that only the target knows get no mass: plain generation is told so."""
    return [*options.get("suppress_tokens", ()), *range(292, 296)]


def _without(options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "suppress_tokens"}


def test_stop_strings_end_the_text_inside_a_block(models: SimpleNamespace) -> None:
    whole = generated(models, draft=models.target, draft_length=5, do_sample=False)
    text = models.tokenizer.decode(whole[0, models.ids.shape[1] :])
    word = re.findall("[a-z]{2}", text)[0]
    criteria = StoppingCriteriaList([StopStringCriteria(models.tokenizer, [word])])
    stopped = generated(
        models,
        draft=models.target,
        draft_length=5,
        do_sample=False,
        stopping_criteria=criteria,
        return_dict_in_generate=True,
    )
    length = stopped.sequences.shape[1]
    assert torch.equal(stopped.sequences, whole[:, :length])
    assert word in models.tokenizer.decode(whole[0, models.ids.shape[1] : length])
    assert word not in models.tokenizer.decode(whole[0, models.ids.shape[1] : length - 1])
    assert stopped.rounds[-1].ending == "stopping criteria"


def test_processors_see_each_position_with_the_text_before_it(models: SimpleNamespace) -> None:
    seen: list[list[int]] = []

    def processor(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        assert scores.shape == (1, 296)
        seen.append(ids[0].tolist())
        return scores

    out = generated(
        models,
        do_sample=False,
        logits_processor=LogitsProcessorList([processor]),
        return_dict_in_generate=True,
    )
    text, expected = models.ids[0].tolist(), []
    for done in out.rounds:
        path = text + list(done.drafts)
        expected += [path[: len(text) + i] for i in range(3)]  # the draft's, as it drafts
        expected += [path[: len(text) + i] for i in range(4)]  # the target's
        text += done.tokens
    assert seen == expected
    assert text == out.sequences[0].tolist()


def test_torchs_seed_repeats_a_text_and_rounds_are_single_calls(models: SimpleNamespace) -> None:
    calls: Counter[str] = Counter()
    hooks = [
        model.register_forward_pre_hook(functools.partial(lambda name, *_: calls.update([name]), name))
        for name, model in (("target", models.target), ("draft", models.draft))
    ]
    texts = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        calls.clear()
        out = generated(models, "lenience:l=0.2", do_sample=True, temperature=2.0, return_dict_in_generate=True)
        assert calls == {"target": len(out.rounds), "draft": 3 * len(out.rounds)}
        texts.append(out.sequences[0].tolist())
    for hook in hooks:
        hook.remove()
    assert texts[0] == texts[1] != texts[2]


def test_fly_keeps_its_own_conventions(models: SimpleNamespace) -> None:
    """Greedy drafts of the target itself: all match. With a gate always open and no window every mismatch is kept."""
    out = generated(models, "fly:theta=2,window=3", draft=models.target, do_sample=False, return_dict_in_generate=True)
    assert {done.cause for done in out.rounds} == {"all kept"}
    assert torch.equal(out.sequences, plain(models, do_sample=False, suppress_tokens=None))
    out = generated(models, "fly:theta=0,window=0", do_sample=False, return_dict_in_generate=True)
    assert {done.kept for done in out.rounds} == {3}
    torch.manual_seed(0)
    released = "fly-released:theta=0.3,window=2,temperature=0.7"
    assert generated(models, released, do_sample=True, temperature=0.7).shape[1] > models.ids.shape[1]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_beams": 2}, "num_beams=2|input_ids have shape"),
        ({"num_return_sequences": 2, "do_sample": True}, "input_ids have shape"),
        (
            {"output_scores": True, "return_dict_in_generate": True},
            "output_scores=True; this loop allows None or False",
        ),
        ({"use_cache": False}, "use_cache=False"),
        ({"max_new_tokens": 150}, "positions; the models read 160"),
        ({"rule": "fly:theta=0.3,window=2", "do_sample": True}, "decodes at its own temperature 0"),
        (
            {"rule": "fly-released:theta=0.3,window=2,temperature=1", "do_sample": True, "temperature": 0.7},
            "decodes at its own temperature 1",
        ),
    ],
)
def test_what_this_loop_would_have_to_ignore_is_refused(models: SimpleNamespace, options: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        generated(models, options.pop("rule", "lossless"), **options)


def test_padding_batches_used_caches_and_training_are_refused(models: SimpleNamespace) -> None:
    custom = gpu.speculative_generate("lossless", models.draft)
    generate = functools.partial(models.target.generate, max_new_tokens=4, pad_token_id=0, custom_generate=custom)
    ids, ones = models.ids, torch.ones_like(models.ids)
    with pytest.raises(InvalidInput, match="input_ids have shape"):
        generate(ids.repeat(2, 1), attention_mask=ones.repeat(2, 1))
    padded = ones.clone()
    padded[0, 0] = 0
    with pytest.raises(InvalidInput, match="attention_mask is given"):
        generate(ids, attention_mask=padded)
    cache = DynamicCache()
    name = "cache" if "cache" in inspect.signature(models.target.forward).parameters else "past_key_values"
    models.target(ids[:, :-1], use_cache=True, **{name: cache})
    with pytest.raises(InvalidInput, match="an empty cache"):
        generate(ids, attention_mask=ones, **{name: cache})
    with pytest.raises(InvalidInput, match="position_ids is given"):
        generate(ids, attention_mask=ones, position_ids=torch.arange(1, ids.shape[1] + 1)[None])
    with pytest.raises(InvalidInput, match="input_ids hold 293; both models know only ids below 292"):
        generate(torch.tensor([[5, 293]]), attention_mask=torch.ones(1, 2, dtype=torch.int64))
    models.draft.train()
    with pytest.raises(InvalidInput, match="draft_model is in training mode"):
        gpu.speculative_generate("lossless", models.draft)
    models.draft.eval()
    with pytest.raises(InvalidInput, match="draft_model is a str"):
        gpu.speculative_generate("lossless", "a name")
    with pytest.raises(InvalidInput, match="draft_length=0"):
        gpu.speculative_generate("lossless", models.draft, 0)
