"""Live decoding: the loop against plain decoding and exact laws, its caches, and where texts end."""

import itertools
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import AutoModelForCausalLM, AutoTokenizer, MambaConfig, MambaForCausalLM

import fly_theory as ft
import gpu
from fly_theory.distributions import softmax
from fly_theory.errors import InvalidInput, NotReadable, UnknownName, ZeroResidualError
from fly_theory.testing import TableModel
from gpu.decoding.laws import decoding_temperature, laws_for
from gpu.decoding.reader import Reader
from gpu.decoding.rounds import Round, Speculation, uniforms_in_round
from gpu.models import Model, Pair, load_pair
from gpu.sampling import LIVE, uniforms

PROMPTS = ["the fox and the hare", "def add(a, b):", "one and one are"]
TINY = {"max_new_tokens": 20, "device": "cpu"}

# Rows by the last token; the draft is a blurred target.
TARGET = [["1/2", "1/4", "1/4"], ["1/6", "1/3", "1/2"], ["1/8", "3/8", "1/2"]]
DRAFT = [["1/4", "1/4", "1/2"], ["3/5", "1/5", "1/5"], ["1/3", "1/6", "1/2"]]
TEXTS = 700
FALSE_ALARM = 1e-6  # the budget of each statistical test; seeds are fixed


def live(
    spec: str,
    target: Any,
    draft: Any,
    prompt: Sequence[int],
    *,
    draft_length: int,
    length: int,
    seed: int = 0,
    temperature: float | None = None,
    eos: int | None = None,
) -> list[Round]:
    """The rounds of a text on table models."""
    rule = ft.block_rule(spec)
    vocabulary = target.config.vocab_size
    laws = laws_for(
        rule,
        temperature=decoding_temperature(rule, temperature),
        warpers={},
        known=vocabulary,
        vocabulary=vocabulary,
    )
    generator = torch.Generator().manual_seed(seed)
    count = uniforms_in_round(rule, draft_length)

    def ended(text: Sequence[int]) -> str | None:
        return "end" if text[-1] == eos else "length" if len(text) - len(prompt) == length else None

    speculation = Speculation(Reader(Model(target)), Reader(Model(draft)), rule, laws, draft_length)
    noise = lambda _: torch.rand(count, dtype=torch.float64, generator=generator)  # noqa: E731
    return list(speculation.rounds(prompt, noise, ended))


def text_of(rounds: Sequence[Round]) -> list[int]:
    return [token for done in rounds for token in done.tokens]


def tables(seed: int, *, size: int = 6, eos: int | None = None) -> tuple[TableModel, TableModel]:
    """A random target by the last two tokens and a draft that often agrees with it."""
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.full(size, 0.3), (size, size))
    draft = 0.5 * target + 0.5 * rng.dirichlet(np.full(size, 0.3), (size, size))
    return TableModel(target, eos=eos), TableModel(draft, eos=eos)


def plain_greedy(model: Any, prompt: Sequence[int], length: int, stops: Sequence[int] = ()) -> list[int]:
    """The argmax of the target, one token and one uncached pass at a time."""
    text: list[int] = list(prompt)
    while len(text) < len(prompt) + length and text[len(prompt) :][-1:] not in [[stop] for stop in stops]:
        text.append(int(uncached(model, text, keep=1)[-1].argmax()))
    return text[len(prompt) :]


def uncached(model: Any, text: Sequence[int], keep: int) -> torch.Tensor:
    with torch.inference_mode():
        return model(torch.tensor([list(text)]), use_cache=False).logits[0, -keep:]


# -- greedy decoding reproduces the target -----------------------------------------------------------------------------


@pytest.mark.parametrize("draft_length", range(1, 7))
@pytest.mark.parametrize("spec", ["lossless", "block", "hierarchical", "hierarchical-naive", "fly:theta=2,window=6"])
def test_lossless_greedy_decoding_is_plain_greedy_decoding(spec: str, draft_length: int) -> None:
    lengths: Counter[int] = Counter()
    temperature = None if spec.startswith("fly") else 0
    for seed in range(15):
        target, draft = tables(seed)
        settings = {"draft_length": draft_length, "length": 17, "temperature": temperature}
        rounds = live(spec, target, draft, [0, 1], **settings)
        assert text_of(rounds) == plain_greedy(target, [0, 1], 17)
        lengths.update(done.kept for done in rounds)
    assert {0, 1, draft_length} <= set(lengths)  # rejections early and late, and bonus tokens


@pytest.mark.parametrize("draft_length", range(1, 7))
def test_an_end_of_sequence_inside_a_block_ends_the_text_there(draft_length: int) -> None:
    cut = 0
    for seed in range(30):
        target, draft = tables(seed, eos=5)
        rounds = live("lossless", target, draft, [0, 1], draft_length=draft_length, length=17, temperature=0, eos=5)
        expected = plain_greedy(target, [0, 1], 17, stops=[5])
        assert text_of(rounds) == expected
        assert [done.ending for done in rounds[:-1]] == [None] * (len(rounds) - 1)
        assert rounds[-1].ending == ("end" if expected[-1] == 5 else "length")
        cut += expected[-1] == 5 and len(rounds[-1].tokens) <= rounds[-1].kept
    assert draft_length == 1 or cut > 0  # some texts end at a draft with kept drafts after it


def test_a_draft_that_is_the_target_has_everything_kept() -> None:
    for seed, temperature in itertools.product(range(10), (0, 1)):
        target, _ = tables(seed)
        settings = {"draft_length": 4, "length": 23, "seed": seed, "temperature": temperature}
        rounds = live("lossless", target, target, [0, 1], **settings)
        assert {(done.kept, done.cause) for done in rounds} == {(4, "all kept")}
        assert [len(done.tokens) for done in rounds] == [5, 5, 5, 5, 3]
        assert rounds[-1].accepted == 3


@pytest.mark.parametrize("spec", ["lossless", "block", "hierarchical-naive", "fly:theta=0,window=2"])
def test_a_shorter_text_is_the_beginning_of_a_longer_one(spec: str) -> None:
    for seed in range(5):
        target, draft = tables(seed)
        whole = text_of(live(spec, target, draft, [0, 1], draft_length=3, length=20, seed=seed))
        for length in range(1, 20):
            assert (
                text_of(live(spec, target, draft, [0, 1], draft_length=3, length=length, seed=seed)) == whole[:length]
            )


def test_a_round_is_one_call_of_the_target_and_a_call_of_the_draft_for_each_token() -> None:
    target, draft = tables(0)
    calls: Counter[str] = Counter()
    for name, model in (("target", target), ("draft", draft)):
        model.register_forward_pre_hook(lambda module, inputs, name=name: calls.update([name]))
    rounds = live("lossless", target, draft, [0, 1], draft_length=3, length=30)
    assert calls == {"target": len(rounds), "draft": 3 * len(rounds)}
    assert {done.calls for done in rounds} == {1}
    calls.clear()
    rounds = live("hierarchical-naive", target, draft, [0, 1], draft_length=3, length=30)
    assert [done.calls for done in rounds] == [max(1, 3 - done.kept) for done in rounds]
    assert calls["target"] == sum(done.calls for done in rounds)
    assert all(len(done.tokens) == 3 + (done.kept == 3) for done in rounds[:-1])


# -- the law of the text -----------------------------------------------------------------------------------------------


def engine(spec: str, draft_length: int = 3) -> Callable[..., list[int]]:
    def generate(draft: Any, target: Any, ids: torch.Tensor, seed: int) -> list[int]:
        prompt = ids[0].tolist()
        eos = target.config.eos_token_id
        rounds = live(spec, target, draft, prompt, draft_length=draft_length, length=4, seed=seed, eos=eos)
        return prompt + text_of(rounds)

    return generate


@pytest.mark.parametrize("spec", ["lossless", "block", "hierarchical-naive", "sample-match:n=1"])
def test_lossless_rules_decode_the_targets_law(spec: str) -> None:
    for eos in (None, 2) if spec == "block" else (2,):
        report = ft.conformance_engine(
            engine(spec), (TARGET, DRAFT), eos=eos, resolution=0.25, false_alarm=FALSE_ALARM, seconds=600
        )
        assert report.verdict == "lossless"
        assert report.ok


@pytest.mark.parametrize("spec", ["lenience:l=0.5", "hierarchical-uncapped", "min-p:base=0.5"])
def test_lossy_rules_are_refuted(spec: str) -> None:
    report = ft.conformance_engine(engine(spec), (TARGET, DRAFT), resolution=0.1, false_alarm=FALSE_ALARM, seconds=600)
    assert report.verdict == "lossy"
    assert report["lossless"].outcome == "refuted"


@pytest.mark.parametrize(
    "spec",
    [
        "lenience:l=0.5",
        "hierarchical-mincap",
        "hierarchical-uncapped:l=0.5",
        "hierarchical-naive",
        "fly-released:theta=0.3,window=2,temperature=1",
    ],
)
def test_the_joint_law_of_a_text_is_the_exact_one(spec: str) -> None:
    """A likelihood-ratio test on texts of three tokens; the same test has to notice another rule's law."""
    target, draft = (np.array([[float(ft.exact([x])[0]) for x in row] for row in table]) for table in (TARGET, DRAFT))
    if spec.startswith("fly"):
        draft = np.eye(3)[draft.argmax(-1)]
    pair = ft.MarkovPair(target, draft, [1.0, 0.0, 0.0])
    models = TableModel(TARGET), TableModel(DRAFT)
    seen = np.zeros((3, 3, 3))
    for seed in range(TEXTS):
        seen[tuple(text_of(live(spec, *models, [0], draft_length=3, length=3, seed=seed)))] += 1

    def p_value(law: np.ndarray) -> float:
        counts, expected = seen[law > 0], TEXTS * law[law > 0]
        assert counts.sum() == TEXTS
        return float(stats.power_divergence(counts, expected * TEXTS / expected.sum(), lambda_="log-likelihood").pvalue)

    assert p_value(ft.joint_law(ft.block_rule(spec), pair, draft_length=3, length=3)) > FALSE_ALARM
    other = "lossless" if spec != "hierarchical-naive" else "lenience:l=0.5"
    assert p_value(ft.joint_law(ft.block_rule(other), pair, draft_length=3, length=3)) < FALSE_ALARM


def test_fly_decodes_what_its_exact_law_says() -> None:
    """At temperature 0 the law is a point: the text itself is compared."""
    for seed, spec in itertools.product(range(8), ("fly:theta=0.3,window=1", "fly-released:theta=0.3,window=2")):
        rng = np.random.default_rng(seed)
        target = rng.dirichlet(np.ones(4), 4)
        draft = 0.6 * target + 0.4 * rng.dirichlet(np.ones(4), 4)
        pair = ft.MarkovPair(target, np.eye(4)[draft.argmax(-1)], [1.0, 0.0, 0.0, 0.0])
        law = ft.joint_law(ft.block_rule(spec), pair, draft_length=3, length=5)
        rounds = live(spec, TableModel(target), TableModel(draft), [0], draft_length=3, length=5)
        assert law[tuple(text_of(rounds))] == pytest.approx(1)
        assert {done.cause for done in rounds} <= {"all kept", "gate", "boundary", "window"}


def test_a_rule_without_a_token_to_emit_says_so() -> None:
    class Stuck(type(ft.block_rule("block"))):
        name = "stuck"

        def passes(self, block: ft.Block) -> torch.Tensor:
            return torch.zeros_like(block.draft_at_tokens)

    target, _ = tables(0)
    laws = laws_for(Stuck(), temperature=1.0, warpers={}, known=6, vocabulary=6)
    speculation = Speculation(Reader(Model(target)), Reader(Model(target)), Stuck(), laws, 2)
    with pytest.raises(ZeroResidualError, match="stops after 0 drafts"):
        list(speculation.rounds([0, 1], lambda _: torch.full((5,), 0.5, dtype=torch.float64), lambda text: None))


# -- caches ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "wide_qwen"])
def test_a_reader_that_goes_back_reads_what_an_uncached_model_reads(tiny: SimpleNamespace, name: str) -> None:
    """Through many rejections behind the sliding window of 12 in the last layer of the Qwen2."""
    network = AutoModelForCausalLM.from_pretrained(getattr(tiny, name)).double()
    rng = np.random.default_rng(0)
    reader, text, read = Reader(Model(network)), rng.integers(1, 290, 20).tolist(), 0
    for step in range(60):
        kept = int(rng.integers(max(1, len(text) - 6), len(text) + 1))
        text = text[:kept] + rng.integers(1, 290, int(rng.integers(1, 9))).tolist()
        keep = int(rng.integers(1, len(text) - kept + 1))
        torch.testing.assert_close(reader.logits(text, keep), uncached(network, text, keep), rtol=0, atol=1e-10)
        assert reader.calls == step + 1
        read = max(read, len(text))
    assert read > 40


def test_a_model_that_cannot_go_back_is_refused() -> None:
    config = MambaConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, state_size=4)
    with pytest.raises(InvalidInput, match="decoding takes rejected tokens back"):
        Reader(Model(MambaForCausalLM(config)))


@pytest.mark.parametrize("draft", ["narrow_qwen", "layerskip:1"])
def test_every_round_is_what_the_rule_decides_on_uncached_rows(tiny: SimpleNamespace, draft: str) -> None:
    """Drafts, number kept and tokens recomputed from full passes and the uniforms of the round's address."""
    target_network = AutoModelForCausalLM.from_pretrained(tiny.llama)
    if draft == "narrow_qwen":
        folder, draft_network = tiny.narrow_qwen, AutoModelForCausalLM.from_pretrained(tiny.narrow_qwen)
    else:
        folder = draft
        pair = load_pair(tiny.llama, draft, dtype=torch.float32, device=torch.device("cpu"))
        draft_network = pair.draft.network
    common = 292 if draft == "narrow_qwen" else 296
    for spec in ("lenience:l=0.1", "block"):
        rule = ft.block_rule(spec)
        decoding = gpu.decode(tiny.llama, folder, spec, PROMPTS, draft_length=3, seed=5, temperature=3.0, **TINY)
        for number, text in enumerate(decoding):
            path = list(text.prompt_ids)
            for index, done in enumerate(text.rounds):
                drafting, deciding, (emitting,) = np.split(uniforms(5, LIVE, number, index, 7), [3, 6])
                q = uncached(draft_network, path + list(done.drafts[:-1]), keep=3)[:, :common].double()
                p = uncached(target_network, path + list(done.drafts), keep=4)[:, :common].double()
                q, p = softmax(q, temperature=3), softmax(p, temperature=3)
                for row, token, uniform in zip(q, done.drafts, drafting, strict=True):
                    assert float(row[:token].sum()) - 1e-5 <= uniform <= float(row[: token + 1].sum()) + 1e-5
                block = ft.Block(p, q, torch.tensor(done.drafts))
                assert done.kept == int(rule.decide(block, torch.from_numpy(deciding)))
                row, new = rule.next_token(block)[done.kept], [*done.drafts[: done.kept]]
                if len(done.tokens) > done.kept:
                    new.append(done.tokens[-1])
                    assert float(row[: new[-1]].sum()) - 1e-5 <= emitting <= float(row[: new[-1] + 1].sum()) + 1e-5
                assert done.tokens == tuple(new[: len(done.tokens)])
                path += done.tokens
            assert tuple(path) == text.prompt_ids + text.ids
            assert max(text.ids) < common


# -- the public function -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draft_length", [1, 3, 6])
def test_greedy_texts_of_tiny_models_are_the_targets(tiny: SimpleNamespace, draft_length: int) -> None:
    network = AutoModelForCausalLM.from_pretrained(tiny.llama)
    tokenizer = AutoTokenizer.from_pretrained(tiny.llama)
    options = TINY | {"draft_length": draft_length, "temperature": 0.0}
    decoding = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, **options)
    assert len(decoding) == 3
    for text in decoding:
        expected = plain_greedy(network, text.prompt_ids, 20, stops=[0])
        assert list(text.ids) == expected
        assert text.text == tokenizer.decode(expected, skip_special_tokens=True)
        assert "".join(text.pieces) == text.text
        assert text.calls == len(text.rounds)


def test_the_same_seed_gives_the_same_text_whatever_the_other_prompts_are(tiny: SimpleNamespace) -> None:
    def texts(prompts: list[str], seed: int) -> list[tuple[int, ...]]:
        options = TINY | {"seed": seed, "draft_length": 3}
        return [text.ids for text in gpu.decode(tiny.llama, tiny.wide_qwen, "lossless", prompts, **options)]

    first = texts(PROMPTS, 0)
    assert texts(PROMPTS, 0) == first
    assert texts([PROMPTS[0], "two and two"], 0)[0] == first[0]
    assert all(a != b for a, b in zip(texts(PROMPTS, 1), first, strict=True))
    same = texts([PROMPTS[0]] * 2, 0)
    assert same[0] != same[1]


def test_an_end_of_sequence_is_the_last_id_and_not_in_the_text(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """A target for which half of all ids end a sequence."""
    folder = shutil.copytree(tiny.llama, tmp_path / "model")
    stops = list(range(0, 296, 2))
    (folder / "generation_config.json").write_text(f'{{"eos_token_id": {stops}}}')
    decoding = gpu.decode(folder, "layerskip:1", "lossless", PROMPTS * 3, draft_length=3, temperature=2.0, **TINY)
    for text in decoding:
        assert [token % 2 for token in text.ids] == [1] * (len(text.ids) - 1) + [0]
        assert text.ending == "end of sequence"
    tokens, calls = sum(len(text.ids) for text in decoding), sum(len(text.rounds) for text in decoding)
    assert decoding.tokens_per_call.mean == pytest.approx(tokens / calls)
    assert decoding.kept_per_round.mean >= decoding.accepted_per_call.mean


def test_a_stop_text_ends_a_continuation_with_the_token_that_completes_it(tiny: SimpleNamespace) -> None:
    options = TINY | {"draft_length": 4, "seed": 3}
    whole = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, **options)
    tokenizer = AutoTokenizer.from_pretrained(tiny.llama)
    for text in whole:
        word = re.findall("[a-z]{2}", text.text)[-1]
        stopped = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, stop=["§§", word], **options)
        found = next(other for other in stopped if other.prompt == text.prompt)
        assert found.ending == "stop text"
        assert found.ids == text.ids[: len(found.ids)]
        assert word in found.text
        assert word not in tokenizer.decode(found.ids[:-1])


def test_figures_count_what_the_rounds_did(tiny: SimpleNamespace) -> None:
    decoding = gpu.decode(tiny.llama, "layerskip:1", "lenience:l=0.9", PROMPTS, draft_length=3, **TINY)
    rounds = [done for text in decoding for done in text.rounds]
    calls = len(rounds)
    assert decoding.tokens_per_call.mean == pytest.approx(60 / calls)
    assert decoding.accepted_per_call.mean == pytest.approx(sum(done.accepted for done in rounds) / calls)
    assert decoding.kept_per_round.mean == pytest.approx(sum(done.kept for done in rounds) / calls)
    assert decoding.tokens_per_call.low < decoding.tokens_per_call.mean < decoding.tokens_per_call.high
    document = decoding.to_json()
    assert document["rule"] == "lenience:l=0.9"
    assert document["figures"]["tokens_per_call"]["mean"] == decoding.tokens_per_call.mean
    assert document["provenance"]["models"]["draft"]["skipped_layers"] == [1]
    assert document["provenance"]["seed"] == document["settings"]["seed"] == 0
    assert [len(text["rounds"]) for text in document["continuations"]] == [len(text.rounds) for text in decoding]
    alone = gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS[:1], **TINY)
    assert alone.tokens_per_call.low is None


def test_progress_is_told_from_nothing_to_all(tiny: SimpleNamespace) -> None:
    seen: list[tuple[int, int]] = []
    gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, progress=lambda *numbers: seen.append(numbers), **TINY)
    assert seen[0] == (0, 60)
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"rule": "lossles"}, UnknownName, "Did you mean"),
        ({"rule": "k-seq"}, UnknownName, "is a tree-level rule"),
        ({"rule": 3}, InvalidInput, "allowed are token-level and block rules"),
        ({"rule": "fly:theta=0.3,window=6", "temperature": 0.7}, InvalidInput, "decodes at its own temperature 0"),
        ({"rule": "fly:theta=0.3,window=6", "top_k": 5}, InvalidInput, "top_k=5; fly.* decodes without warpers"),
        ({"draft_length": 0}, InvalidInput, "draft_length=0; allowed: an integer of at least 1"),
        ({"max_new_tokens": 0}, InvalidInput, "max_new_tokens=0"),
        ({"max_new_tokens": 500}, InvalidInput, "the target reads 160"),
        ({"temperature": -1.0}, InvalidInput, "temperature=-1"),
        ({"top_p": 1.5}, InvalidInput, "top_p=1.5"),
        ({"stop": [""]}, InvalidInput, "texts that are not empty"),
        ({"prompts": []}, InvalidInput, "there is no prompt in it"),
        ({"seed": -1}, InvalidInput, "seed=-1"),
    ],
)
def test_what_is_not_allowed(tiny: SimpleNamespace, options: dict[str, Any], error: type, said: str) -> None:
    arguments = {"rule": "lossless", "prompts": PROMPTS, "device": "cpu", "max_new_tokens": 4} | options
    with pytest.raises(error, match=said):
        gpu.decode(tiny.llama, "layerskip:1", **arguments)


def test_a_rule_that_torch_cannot_read_is_refused(tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ft.rule("lossless")
    monkeypatch.setattr(type(rule), "unreadable_by", {ft.Interpreter.TORCH: "it has no torch"})
    with pytest.raises(NotReadable, match="lossless cannot decode: it has no torch"):
        gpu.decode(tiny.llama, "layerskip:1", rule, PROMPTS, **TINY)


# -- real weights and other devices ------------------------------------------------------------------------------------


@pytest.mark.bundled
@pytest.mark.slow
def test_greedy_texts_of_the_bundled_pair_are_the_targets(bundled_pair: Pair) -> None:
    prompts = ["Why is the sky blue?", "Write a function that reverses a list."]
    options = {"draft_length": 4, "max_new_tokens": 40, "temperature": 0.0, "chat": True, "device": "cpu"}
    decoding = gpu.decode("smollm2-135m", "layerskip:10,20", "lossless", prompts, **options)
    for text in decoding:
        ids = torch.tensor([text.prompt_ids])
        plain = bundled_pair.target.network.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=40, pad_token_id=0
        )
        assert list(text.ids) == plain[0, ids.shape[1] :].tolist()
    assert decoding.tokens_per_call.mean > 1.5


@pytest.mark.cuda
def test_on_cuda_greedy_texts_are_the_targets(tiny: SimpleNamespace) -> None:
    network = AutoModelForCausalLM.from_pretrained(tiny.llama)
    options = TINY | {"device": "cuda", "draft_length": 3, "temperature": 0.0}
    for text in gpu.decode(tiny.llama, "layerskip:1", "lossless", PROMPTS, **options):
        assert list(text.ids) == plain_greedy(network, text.prompt_ids, 20, stops=[0])
