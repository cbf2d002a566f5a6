"""Capture on tiny models: what the numbers are, that a run can be broken off, and what bad input gets."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import typer
from scipy import stats
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

import gpu
from fly_theory.distributions import softmax
from fly_theory.errors import CaptureError, InvalidInput
from gpu.capture_cli import capture as capture_command
from gpu.capturing import _positions, _share
from gpu.models import load_pair, without_layers
from gpu.prompts import read_prompts
from gpu.sampling import DRAFT, draw, uniforms
from tests.gpu import tiny_models
from tests.gpu.test_trace import files_of

PROMPTS = ["the fox and the hare", "def add(a, b):", "one and one are", "the hill", "two and two are four, and"]
SMALL = {"draft_length": 4, "blocks": 12, "continuation": 10, "blocks_per_shard": 2, "batch_size": 3, "device": "cpu"}
FALSE_ALARM = 1e-6  # the budget of each of the three statistical tests below; their seeds are fixed


@pytest.fixture(scope="module")
def trace(tiny: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    """Sampled drafts of a narrower draft (292 rows) for a Llama of 296, in float32."""
    folder = tmp_path_factory.mktemp("trace")
    options = SMALL | {"dtype": "float32", "blocks": 60}
    return gpu.open_trace(gpu.capture(tiny.llama, tiny.narrow_qwen, PROMPTS, out=folder, **options))


def uncached(network: torch.nn.Module, ids: list[int], keep: int) -> torch.Tensor:
    with torch.inference_mode():
        return network(torch.tensor([ids]), use_cache=False).logits[0, -keep:]


# -- what the numbers are ----------------------------------------------------------------------------------------------


def test_logits_are_those_of_an_uncached_forward_pass(tiny: SimpleNamespace, trace: gpu.Trace) -> None:
    """Without padding, batching or cache. 2e-5: float32 rounding of logits of size 10 through three layers."""
    target = AutoModelForCausalLM.from_pretrained(tiny.llama)
    draft = AutoModelForCausalLM.from_pretrained(tiny.narrow_qwen)
    for block in trace:
        path = block.context.tolist() + block.tokens.tolist()
        expected_target = uncached(target, path, keep=trace.draft_length + 1)
        expected_draft = uncached(draft, path[:-1], keep=trace.draft_length)
        torch.testing.assert_close(block.target_logits, expected_target, rtol=0, atol=2e-5)
        torch.testing.assert_close(block.draft_logits[:, :292], expected_draft, rtol=0, atol=2e-5)
        assert (block.draft_logits[:, 292:] == -torch.inf).all()


def test_contexts_are_prompts_with_evenly_spaced_cuts_of_one_continuation(
    tiny: SimpleNamespace, trace: gpu.Trace
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny.llama)
    blocks = list(trace)
    for number, prompt in enumerate(PROMPTS):
        ids = tokenizer(prompt)["input_ids"]
        assert trace.manifest["source"]["prompts"][number] == {
            "id": str(number),
            "text": prompt,
            "tags": [],
            "ids": ids,
        }
        mine = [block for block in blocks if block.prompt == number]
        longest = max((block.context.tolist() for block in mine), key=len)
        assert len(mine) == 12
        for block in mine:
            assert block.context.tolist() == longest[: len(ids) + block.position]
            assert block.context.tolist()[: len(ids)] == ids
            assert trace.decode(block.context).startswith(prompt)


def test_blocks_are_shared_out_and_placed_evenly() -> None:
    assert _share(12, 5) == [3, 3, 2, 2, 2]
    assert _share(2, 2) == [1, 1]
    assert _positions(64, 3) == [10, 32, 53]
    assert _positions(64, 1) == [32]
    assert _positions(0, 2) == [0, 0]
    assert _positions(2, 4) == [0, 0, 1, 1]


def test_a_greedy_context_is_the_targets_argmax_up_to_the_end_of_sequence(
    tiny: SimpleNamespace, tmp_path: Path
) -> None:
    options = SMALL | {"context_temperature": 0, "temperature": 0, "continuation": 40, "blocks": 5}
    trace = gpu.open_trace(gpu.capture(tiny.llama, "layerskip:1", PROMPTS, out=tmp_path, **options))
    network = AutoModelForCausalLM.from_pretrained(tiny.llama)
    for block in trace:
        context = block.context.tolist()
        for n in range(len(context) - block.position, len(context)):
            assert context[n] == int(uncached(network, context[:n], keep=1).argmax())
            assert context[n] != 0


def test_the_continuation_ends_before_an_end_of_sequence(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """A target that ends every sequence at once: blocks follow the bare prompt."""
    folder = shutil.copytree(tiny.llama, tmp_path / "model")
    trace = gpu.open_trace(gpu.capture(tiny.llama, "layerskip:1", PROMPTS, out=tmp_path / "a", **SMALL))
    tokens = sorted({int(token) for block in trace for token in block.context[len(block.context) - block.position :]})
    everything = list(range(296))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": everything}))
    ended = gpu.open_trace(gpu.capture(folder, "layerskip:1", PROMPTS, out=tmp_path / "b", **SMALL))
    assert len(tokens) > 10
    assert ended.manifest["source"]["stop_ids"] == everything
    assert {block.position for block in ended} == {0}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_greedy_drafts_are_the_argmax_of_the_logits_as_stored(
    tiny: SimpleNamespace, tmp_path: Path, dtype: str
) -> None:
    options = SMALL | {"temperature": 0.0, "dtype": dtype}
    trace = gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **options))
    assert trace.manifest["dtype"] == dtype
    for block in trace:
        assert block.draft_logits.dtype == getattr(torch, dtype)
        assert torch.equal(block.tokens, softmax(block.draft_logits, temperature=0).argmax(-1))


def test_sampled_drafts_follow_q_as_stored(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """Drafts of bfloat16 logits at temperature 0.7 against the q that a reader recomputes.

    For a set A of tokens, the number of draws in A minus the sum of q(A) over the rows, divided by its standard
    deviation, is asymptotically normal. The same test has to notice a q of another temperature.
    """
    options = SMALL | {"blocks": 400, "batch_size": 50, "blocks_per_shard": 50, "draft_length": 8, "temperature": 0.7}
    folder = gpu.capture(tiny.llama, tiny.narrow_qwen, PROMPTS, out=tmp_path, dtype="bfloat16", **options)
    blocks = list(gpu.open_trace(folder))
    tokens = torch.stack([block.tokens for block in blocks]).flatten()
    logits = torch.stack([block.draft_logits for block in blocks]).flatten(0, 1)

    def deviation(members: torch.Tensor, temperature: float) -> float:
        inside = members.gather(1, tokens[:, None]).sum()
        mass = (softmax(logits, temperature=temperature).double() * members).sum(-1)
        return float((inside - mass.sum()) / (mass * (1 - mass)).sum().sqrt())

    ids = torch.arange(logits.shape[1]).expand_as(logits)
    argmax = ids == logits.argmax(-1, keepdim=True)
    sets = [argmax, ids % 2 == 0, ids < 100]
    limit = stats.norm.isf(FALSE_ALARM / 2 / len(sets))
    for members in sets:
        assert abs(deviation(members, 0.7)) < limit
    assert abs(deviation(argmax, 1.0)) > limit


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_drafts_can_be_drawn_again_from_the_trace_alone(tiny: SimpleNamespace, tmp_path: Path, dtype: str) -> None:
    options = SMALL | {"blocks": 60, "temperature": 0.7, "seed": 9, "dtype": dtype}
    trace = gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **options))
    settings, seen = trace.manifest["source"]["settings"], Counter()
    for block in trace:
        noise = torch.from_numpy(uniforms(settings["seed"], DRAFT, block.prompt, seen[block.prompt], 4))
        seen[block.prompt] += 1
        assert torch.equal(block.tokens, draw(block.draft_logits, noise, temperature=settings["temperature"]))


def test_draw_follows_the_law_and_never_takes_a_token_without_mass() -> None:
    logits = torch.tensor([-torch.inf, 0.3, 1.2, -torch.inf, -0.5, -torch.inf]).expand(40_000, -1)
    noise = torch.from_numpy(uniforms(3, 1, 0, 0, len(logits)))
    for temperature in (1.0, 0.5):
        counts = torch.bincount(draw(logits, noise, temperature=temperature), minlength=6).numpy()
        law = softmax(logits[0], temperature=temperature).double().numpy()
        assert counts[law == 0].sum() == 0
        assert stats.chisquare(counts[law > 0], len(logits) * law[law > 0] / law.sum()).pvalue > FALSE_ALARM
    edges = torch.tensor([0.0, float(np.nextafter(1.0, 0.0))], dtype=torch.float64)
    assert draw(logits[:2], edges, temperature=1.0).tolist() == [1, 4]
    assert draw(torch.tensor([[1.0, 2.0, 2.0]] * 2), edges, temperature=0).tolist() == [1, 1]


def test_uniforms_depend_on_their_address_alone() -> None:
    addresses = [
        (seed, stream, prompt, block) for seed in (0, 7) for stream in (0, 1) for prompt in (0, 1) for block in (0, 1)
    ]
    rows = {address: tuple(uniforms(*address, 50)) for address in addresses}
    assert len({number for row in rows.values() for number in row}) == 50 * len(addresses)
    for address, row in rows.items():
        assert tuple(uniforms(*address, 10)) == row[:10]
    assert stats.kstest(np.concatenate([*rows.values()]), "uniform").pvalue > FALSE_ALARM


def test_drafts_of_a_block_depend_on_no_other_block(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """The uniforms belong to (seed, prompt, block): with greedy contexts the first block of a prompt stays the same."""
    options = SMALL | {"context_temperature": 0, "continuation": 1, "dtype": "float32"}
    one = gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path / "1", **options))
    two = gpu.open_trace(
        gpu.capture(
            tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path / "2", **(options | {"blocks": 5, "batch_size": 1})
        )
    )
    first = {block.prompt: block for block in reversed(list(one))}
    for block in two:
        assert torch.equal(block.tokens, first[block.prompt].tokens)
        torch.testing.assert_close(block.target_logits, first[block.prompt].target_logits, rtol=0, atol=2e-5)


def test_seeds_change_drafts_and_contexts(tiny: SimpleNamespace, tmp_path: Path) -> None:
    traces = [
        gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path / str(seed), seed=seed, **SMALL))
        for seed in (0, 1)
    ]
    pairs = list(zip(*traces, strict=True))
    assert sum(a.tokens.tolist() != b.tokens.tolist() for a, b in pairs) > len(pairs) // 2
    assert sum(a.context.tolist() != b.context.tolist() for a, b in pairs) > len(pairs) // 2


def test_a_model_drafting_for_itself_agrees_with_itself(tiny: SimpleNamespace, tmp_path: Path) -> None:
    trace = gpu.open_trace(gpu.capture(tiny.wide_qwen, tiny.wide_qwen, PROMPTS, out=tmp_path, **SMALL))
    for block in trace:
        torch.testing.assert_close(block.target_logits[:-1].float(), block.draft_logits.float(), rtol=0, atol=2e-2)


# -- vocabularies ------------------------------------------------------------------------------------------------------


def test_a_wider_draft_gives_no_mass_to_ids_the_target_lacks(tiny: SimpleNamespace, tmp_path: Path) -> None:
    options = SMALL | {"blocks": 40, "temperature": 3.0, "context_temperature": 3.0}
    trace = gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **options))
    assert trace.manifest["vocabulary"] == {"target": 296, "draft": 304, "missing_logits": "-inf"}
    assert trace.manifest["source"]["masked_draft_ids"] == [296, 304]
    assert trace.vocabulary == 304
    for block in trace:
        assert block.target_logits.shape == (5, 304)
        assert (block.target_logits[:, 296:] == -torch.inf).all()
        assert (block.draft_logits[:, 296:] == -torch.inf).all()
        assert block.draft_logits[:, :296].isfinite().all()
        assert max(block.context.tolist() + block.tokens.tolist()) < 296


def test_a_narrower_draft_leaves_the_target_whole(trace: gpu.Trace) -> None:
    assert trace.manifest["vocabulary"] == {"target": 296, "draft": 292, "missing_logits": "-inf"}
    assert trace.manifest["source"]["masked_draft_ids"] is None
    for block in trace:
        assert block.target_logits.isfinite().all()
        assert max(block.context.tolist() + block.tokens.tolist()) < 292


def test_different_tokenizers_are_refused_with_the_first_difference(tiny: SimpleNamespace, tmp_path: Path) -> None:
    other = tiny_models.train_tokenizer(texts=["a quick zebra quizzes a quick zebra"])
    ours, theirs = (
        {i: token for token, i in tokenizer.get_vocab().items()}
        for tokenizer in (AutoTokenizer.from_pretrained(tiny.llama), other)
    )
    first = next(i for i in range(290) if ours.get(i) != theirs.get(i))
    draft = tiny_models.save_qwen2(tmp_path / "draft", other, vocabulary=296)
    message = f"id {first} is {ours[first]!r} in the target and {theirs[first]!r} in the draft"
    with pytest.raises(InvalidInput, match=message):
        gpu.capture(tiny.llama, draft, PROMPTS, out=tmp_path / "trace", **SMALL)
    shorter = tiny_models.train_tokenizer(vocabulary=280)
    draft = tiny_models.save_qwen2(tmp_path / "shorter", shorter, vocabulary=296)
    with pytest.raises(InvalidInput, match=r"id 280 is .* in the target and nothing in the draft"):
        gpu.capture(tiny.llama, draft, PROMPTS, out=tmp_path / "trace", **SMALL)


# -- layer skipping ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skipped", [[0], [1], [0, 2]])
@pytest.mark.parametrize("save", [tiny_models.save_llama, tiny_models.save_qwen2])
def test_layerskip_is_the_model_without_these_layers(tmp_path: Path, save, skipped: list[int]) -> None:
    """Against a model built with fewer layers that is given the weights of the layers that stay."""
    folder = save(tmp_path / "whole", tiny_models.train_tokenizer(), vocabulary=296, layers=3)
    whole = AutoModelForCausalLM.from_pretrained(folder)
    kept = [i for i in range(3) if i not in skipped]
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = len(kept)
    if config.get("layer_types"):
        config["layer_types"] = [config["layer_types"][i] for i in kept]
    reference = type(whole)(type(whole.config).from_dict(config)).eval()
    state = {name: value for name, value in whole.state_dict().items() if ".layers." not in name}
    for new, old in enumerate(kept):
        for name, value in whole.model.layers[old].state_dict().items():
            state[f"model.layers.{new}.{name}"] = value
    reference.load_state_dict(state)

    draft = "layerskip:" + ",".join(map(str, skipped))
    options = SMALL | {"dtype": "float32"}
    trace = gpu.open_trace(gpu.capture(folder, draft, PROMPTS, out=tmp_path / "trace", **options))
    assert trace.manifest["source"]["models"]["draft"]["skipped_layers"] == skipped
    for block in trace:
        path = block.context.tolist() + block.tokens.tolist()
        torch.testing.assert_close(
            block.draft_logits, uncached(reference, path[:-1], keep=trace.draft_length), rtol=0, atol=2e-5
        )
        torch.testing.assert_close(
            block.target_logits, uncached(whole.eval(), path, keep=trace.draft_length + 1), rtol=0, atol=2e-5
        )


def test_layerskip_shares_every_parameter_and_leaves_the_target_alone(tiny: SimpleNamespace) -> None:
    network = AutoModelForCausalLM.from_pretrained(tiny.llama)
    before = network.config.to_dict()
    thinner = without_layers(network, [1])
    own = {parameter.data_ptr() for parameter in network.parameters()}
    assert {parameter.data_ptr() for parameter in thinner.parameters()} < own
    assert network.config.to_dict() == before
    assert [layer.self_attn.layer_idx for layer in network.model.layers] == [0, 1, 2]
    assert [layer.self_attn.layer_idx for layer in thinner.model.layers] == [0, 1]


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ("layerskip:3", r"cannot skip \[3\] of layers 0 to 2"),
        ("layerskip:0,1,2", "at least one of these must remain"),
        ("layerskip:1,1", "expected different layer numbers"),
        ("layerskip:", "expected different layer numbers"),
        ("layerskip:-1", "as in 'layerskip:10,20'"),
    ],
)
def test_layers_that_cannot_be_skipped_are_refused(
    tiny: SimpleNamespace, tmp_path: Path, draft: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        gpu.capture(tiny.llama, draft, PROMPTS, out=tmp_path / "trace", **SMALL)


# -- breaking off and resuming -----------------------------------------------------------------------------------------

SLOWED_DOWN = """
import json, sys, time
import torch
import gpu
torch.set_num_threads(1)
target, draft, prompts, out, options = json.loads(sys.argv[1])
gpu.capture(target, draft, prompts, out=out, progress=lambda done, total: time.sleep(0.2), **options)
"""


def test_killed_and_started_again_it_ends_with_the_same_bytes(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """SIGKILL once the second shard appears. Batches of 3, shards of 2 and 12 blocks of 5 prompts do not line up."""
    whole = gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path / "whole", **SMALL)
    folder = tmp_path / "killed"
    arguments = json.dumps([str(tiny.llama), str(tiny.wide_qwen), PROMPTS, str(folder), SMALL])
    process = subprocess.Popen([sys.executable, "-c", SLOWED_DOWN, arguments], cwd=Path(gpu.__file__).parents[1])
    try:
        deadline = time.monotonic() + 120
        while not (folder / "shards/shard-00001.safetensors").exists():
            assert process.poll() is None, "capture ended before its second shard"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(list(folder.glob("shards/*.safetensors"))) < 6

    seen = []
    gpu.capture(
        tiny.llama,
        tiny.wide_qwen,
        PROMPTS,
        out=folder,
        progress=lambda done, total: seen.append((done, total)),
        **SMALL,
    )
    assert files_of(folder) == files_of(whole)
    assert 0 < seen[0][0] < 12
    assert seen[-1] == (12, 12)


def test_resuming_from_any_block_changes_nothing(tiny: SimpleNamespace, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop_at(limit: int) -> Callable[[int, int], None]:
        def progress(done: int, total: int) -> None:
            if done >= limit:
                raise Stop

        return progress

    options = SMALL | {"blocks_per_shard": 1, "draft_length": 2, "continuation": 4}
    whole = gpu.capture(tiny.llama, tiny.narrow_qwen, PROMPTS, out=tmp_path / "whole", **options)
    for limit in range(1, 13):
        folder = tmp_path / f"stopped at {limit}"
        with pytest.raises(Stop):
            gpu.capture(tiny.llama, tiny.narrow_qwen, PROMPTS, out=folder, progress=stop_at(limit), **options)
        gpu.capture(tiny.llama, tiny.narrow_qwen, PROMPTS, out=folder, **options)
        assert files_of(folder) == files_of(whole)


def test_other_settings_do_not_resume(tiny: SimpleNamespace, tmp_path: Path) -> None:
    gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **SMALL)
    for changed, message in (
        ({"temperature": 0.5}, "source.settings.temperature is 1.0 there and 0.5 now"),
        ({"blocks": 13}, "source.settings.blocks is 12 there and 13 now"),
        ({"seed": 3}, "source.settings.seed is 0 there and 3 now"),
        ({"dtype": "float32"}, "dtype is 'float16' there and 'float32' now"),
    ):
        with pytest.raises(CaptureError, match=message):
            gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **(SMALL | changed))
    with pytest.raises(CaptureError, match=r"source.prompts\[0\].text is 'the fox and the hare' there"):
        gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS[::-1], out=tmp_path, **SMALL)
    with pytest.raises(CaptureError, match=r"vocabulary\.draft is 304 there and 296 now"):
        gpu.capture(tiny.llama, "layerskip:1", PROMPTS, out=tmp_path, **SMALL)
    with pytest.raises(CaptureError, match=r"source\.models\.target\.name is .*llama' there and .*copy' now"):
        gpu.capture(
            shutil.copytree(tiny.llama, tmp_path.parent / "copy"), tiny.wide_qwen, PROMPTS, out=tmp_path, **SMALL
        )


def test_the_manifest_says_how_the_trace_came_about_and_not_when(tiny: SimpleNamespace, trace: gpu.Trace) -> None:
    source = trace.manifest["source"]
    assert source["settings"] == {
        "blocks": 60,
        "temperature": 1.0,
        "context_temperature": 1.0,
        "continuation": 10,
        "chat": False,
        "model_dtype": "float32",
        "seed": 0,
        "batch_size": 3,
        "device": "cpu",
    }
    assert source["models"]["target"]["class"] == "LlamaForCausalLM"
    assert source["models"]["draft"]["class"] == "Qwen2ForCausalLM"
    assert source["models"]["target"]["sha256"].keys() == {"config.json", "model.safetensors"}
    assert source["versions"]["torch"] == torch.__version__
    assert source["stop_ids"] == [0]


# -- prompts and bad input ---------------------------------------------------------------------------------------------


def test_the_chat_template_is_the_tokenizers(tiny: SimpleNamespace, tmp_path: Path) -> None:
    trace = gpu.open_trace(gpu.capture(tiny.llama, "layerskip:1", PROMPTS, out=tmp_path, chat=True, **SMALL))
    for block in trace:
        assert trace.decode(block.context).startswith(f"<user>{PROMPTS[block.prompt]}<model>")


def test_shipped_prompts_cover_five_kinds_evenly() -> None:
    prompts = read_prompts(None)
    kinds = [prompt.tags[0] for prompt in prompts]
    assert len(prompts) == 20
    assert set(kinds[:5]) == {"arithmetic", "code", "prose", "translation", "lists"}
    assert kinds == kinds[:5] * 4


def test_prompt_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n two \x0c\r\n", encoding="utf-8")
    assert [(prompt.id, prompt.text) for prompt in read_prompts(tmp_path / "a.txt")] == [
        ("0", "one"),
        ("1", " two \x0c"),
    ]
    (tmp_path / "a.jsonl").write_text('{"prompt": "x", "id": "first", "tags": ["t"]}\n\n{"prompt": "y"}\n')
    assert [(prompt.id, prompt.text, prompt.tags) for prompt in read_prompts(tmp_path / "a.jsonl")] == [
        ("first", "x", ("t",)),
        ("1", "y", ()),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", "", r"empty\.txt: there is no prompt in it"),
        ("blank.txt", " \n\n", "there is no prompt in it"),
        ("empty.jsonl", "\n", "there is no prompt in it"),
        ("a.jsonl", '{"prompt": "x"}\nx\n', r"a\.jsonl line 2 is not JSON"),
        ("a.jsonl", '{"text": "x"}', "line 1 has no text under 'prompt'"),
        ("a.jsonl", '["x"]', "line 1 has no text under 'prompt'"),
        ("a.jsonl", '{"prompt": " "}', "line 1: 'prompt' is blank"),
        ("a.jsonl", '{"prompt": "x", "tags": "t"}', "line 1: 'tags' is 't'"),
        ("a.jsonl", '{"prompt": "x", "id": 1}\n{"prompt": "y"}', "the id '1' is used twice"),
        ("a.txt", "\udcff", "cannot be read"),
    ],
)
def test_prompt_files_that_make_no_sense_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidInput, match=message):
        read_prompts(tmp_path / name)


def test_prompts_given_as_texts_are_checked() -> None:
    for prompts, message in (
        ([], "prompts: there is no prompt in it"),
        (["a", " "], r"prompts\[1\] is ' '"),
        ("nowhere.txt", r"prompt file nowhere\.txt cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_prompts(prompts)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"draft_length": 0}, "draft_length=0; allowed: an integer of at least 1"),
        ({"blocks": 1.5}, "blocks=1.5"),
        ({"temperature": -1.0}, r"temperature=-1.0; allowed: a number in \[0, inf\)"),
        ({"context_temperature": float("nan")}, "context_temperature=nan"),
        ({"dtype": "int8"}, "dtype='int8'; allowed: float16 or bfloat16 or float32"),
        ({"seed": -1}, "seed=-1"),
        ({"device": "tpu"}, "device='tpu'; allowed: auto or cpu or cuda"),
        ({"continuation": 160}, "prompt '0' has .* tokens and needs .* the target reads 160"),
    ],
)
def test_settings_outside_their_domain_are_refused(
    tiny: SimpleNamespace, tmp_path: Path, changed: dict, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path / "trace", **(SMALL | changed))
    assert not (tmp_path / "trace").exists()


def test_what_cannot_be_written_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="topk=0; allowed: an integer of at least 1"):
        gpu.capture("not-loaded", "not-loaded", PROMPTS, out=tmp_path / "trace", topk=0)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CaptureError, match=r"holds other files \('thesis.tex'\)"):
        gpu.capture("not-loaded", "not-loaded", PROMPTS, out=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(tiny: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="torch sees no CUDA device"):
        gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, device="cuda")


@pytest.mark.parametrize("missing", ["./no/such/folder", "nobody/no-such-model", "no-such-model"])
def test_a_model_that_is_not_there_is_named(tiny: SimpleNamespace, tmp_path: Path, missing: str) -> None:
    with pytest.raises(InvalidInput, match=f"target model '{missing}' is not on this machine"):
        gpu.capture(missing, tiny.wide_qwen, PROMPTS, out=tmp_path / "trace")
    with pytest.raises(InvalidInput, match=f"draft model '{missing}' is not on this machine"):
        gpu.capture(tiny.llama, missing, PROMPTS, out=tmp_path / "trace")


def test_a_model_that_cannot_be_loaded_whole_is_named(tiny: SimpleNamespace, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny.llama, tmp_path / "partial")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CaptureError, match=r"partial' are incomplete: 'model.layers.1.mlp.up_proj.weight' is missing"):
        gpu.capture(folder, "layerskip:1", PROMPTS, out=tmp_path / "trace")
    (folder / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(CaptureError, match=r"the model '.*partial' could not be loaded"):
        gpu.capture(folder, "layerskip:1", PROMPTS, out=tmp_path / "trace")
    (folder / "config.json").write_text("{")
    with pytest.raises(CaptureError, match=r"the tokenizer of '.*partial' could not be loaded"):
        gpu.capture(folder, "layerskip:1", PROMPTS, out=tmp_path / "trace")


def test_logits_that_are_no_numbers_are_refused(tiny: SimpleNamespace, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny.llama, tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][5] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInput, match="nan at index 5"):
        gpu.capture(folder, tiny.wide_qwen, PROMPTS, out=tmp_path / "trace", **SMALL)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner() -> Iterator[CliRunner]:
    """Runs the command inside a small app; rich wraps to 80 columns, whatever the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    yield CliRunner()
    os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def test_the_command_prints_one_json_document(tiny: SimpleNamespace, tmp_path: Path, runner: CliRunner) -> None:
    app = typer.Typer()
    app.command()(capture_command)
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS))
    arguments = ["--target", str(tiny.llama), "--draft", "layerskip:1", "--out", str(tmp_path / "trace")]
    options = [
        "--prompts",
        str(tmp_path / "prompts.txt"),
        "--blocks",
        "6",
        "--draft-length",
        "2",
        "--dtype",
        "bfloat16",
    ]
    result = runner.invoke(app, [*arguments, *options, "--temperature", "0", "--seed", "4", "--chat", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    trace = gpu.open_trace(document["trace"])
    assert (document["blocks"], document["draft_length"], document["dtype"]) == (6, 2, "bfloat16")
    assert document["sha256"] == trace.sha256
    settings = trace.manifest["source"]["settings"]
    assert (settings["temperature"], settings["seed"], settings["chat"]) == (0.0, 4, True)

    again = runner.invoke(app, [*arguments, *options, "--temperature", "0", "--seed", "4", "--chat"])
    assert "6 blocks, K=2, V=296, bfloat16" in again.stdout
    refused = runner.invoke(app, [*arguments, *options, "--seed", "5"])
    assert isinstance(refused.exception, CaptureError)


# -- the bundled pair --------------------------------------------------------------------------------------------------


@pytest.mark.bundled
@pytest.mark.slow
def test_the_bundled_pair(tmp_path: Path) -> None:
    trace = gpu.open_trace(
        gpu.capture("smollm2-135m", "layerskip:10,20", None, out=tmp_path, blocks=2, continuation=8, chat=True)
    )
    assert (len(trace), trace.draft_length, trace.vocabulary) == (2, 8, 49152)
    assert trace.manifest["source"]["models"]["draft"]["skipped_layers"] == [10, 20]
    p = softmax(torch.stack([block.target_logits[:-1] for block in trace]))
    q = softmax(torch.stack([block.draft_logits for block in trace]))
    assert 0.3 < float(torch.minimum(p, q).sum(-1).mean()) < 0.9
    assert trace.decode(trace[0].context).startswith("<|im_start|>system")


@pytest.mark.cuda
def test_on_cuda_the_logits_are_those_of_the_cpu(tiny: SimpleNamespace, tmp_path: Path) -> None:
    options = SMALL | {"device": "cuda", "dtype": "float32", "temperature": 0.0, "context_temperature": 0.0}
    trace = gpu.open_trace(gpu.capture(tiny.llama, tiny.wide_qwen, PROMPTS, out=tmp_path, **options))
    network = load_pair(tiny.llama, tiny.wide_qwen, dtype=torch.float32, device=torch.device("cpu")).target.network
    for block in trace:
        expected = uncached(network, block.context.tolist() + block.tokens.tolist(), keep=5)
        torch.testing.assert_close(block.target_logits[:, :296], expected, rtol=0, atol=1e-3)
