"""Capture of draft trees on tiny models: rows of tree passes, how trees are grown, resuming, and what is refused."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import typer
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

import gpu
from fly_theory.distributions import softmax
from fly_theory.errors import CaptureError, InvalidInput
from fly_theory.trees import branching, expand
from gpu.capture_cli import capture as capture_command
from gpu.models import Model, Pair, without_layers
from gpu.sampling import DRAFT, draw, uniforms
from gpu.trace.tree import TraceTree
from gpu.tree_shapes import FullTree, TopKTree, tree_shape
from tests.gpu.test_capture import PROMPTS
from tests.gpu.test_trace import files_of

SMALL = {"blocks": 6, "continuation": 10, "blocks_per_shard": 2, "batch_size": 3, "device": "cpu", "dtype": "float32"}
TOP_K = "total=12,depth=4,top_k=3"


def capture(tiny: SimpleNamespace, out: Path, *, draft: object = None, **options: object) -> gpu.TreeTrace:
    folder = gpu.capture(tiny.llama, draft or tiny.narrow_qwen, PROMPTS, out=out, **(SMALL | {"tree": TOP_K} | options))
    return gpu.open_trace(folder)


@pytest.fixture(scope="module")
def trace(tiny: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> gpu.TreeTrace:
    """Most probable paths of a draft with a sliding window, for a Llama."""
    return capture(tiny, tmp_path_factory.mktemp("trees"))


def along(network: torch.nn.Module, tree: TraceTree, node: int) -> torch.Tensor:
    """Logits after the path to a node, from a plain pass over that path alone."""
    ids = [*tree.context.tolist(), *tree.path(node)]
    with torch.inference_mode():
        return network(torch.tensor([ids]), use_cache=False).logits[0, -1]


def hold_against_paths(trace: gpu.TreeTrace, target: torch.nn.Module, draft: torch.nn.Module, atol: float) -> None:
    for tree in trace:
        for node in range(trace.nodes + 1):
            torch.testing.assert_close(tree.target_logits[node], along(target, tree, node), rtol=0, atol=atol)
        for row, node in zip(tree.draft_logits, tree.inner, strict=True):
            expected = along(draft, tree, node)
            torch.testing.assert_close(row[: len(expected)], expected, rtol=0, atol=atol)


# -- rows --------------------------------------------------------------------------------------------------------------


def test_every_row_is_that_of_the_path_alone(tiny: SimpleNamespace, trace: gpu.TreeTrace) -> None:
    """Contexts of different lengths share a batch; the draft's window of 12 ids cuts into contexts and trees."""
    target, draft = (AutoModelForCausalLM.from_pretrained(folder) for folder in (tiny.llama, tiny.narrow_qwen))
    assert len({len(tree.context) for tree in trace}) > 3
    assert any(len({*tree.parents.tolist()}) > 3 for tree in trace)
    hold_against_paths(trace, target, draft, 1e-4)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("shape", [TOP_K, "3,2,1"])
def test_rows_of_a_windowed_target(
    tiny: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attention: str, shape: str
) -> None:
    load = AutoModelForCausalLM.from_pretrained
    monkeypatch.setattr(
        AutoModelForCausalLM,
        "from_pretrained",
        lambda *names, **options: load(*names, attn_implementation=attention, **options),
    )
    folder = gpu.capture(tiny.wide_qwen, "layerskip:0", PROMPTS, out=tmp_path, tree=shape, **SMALL | {"blocks": 3})
    pair = load(tiny.wide_qwen)
    hold_against_paths(gpu.open_trace(folder), pair, without_layers(pair, [0]), 1e-4)


@pytest.mark.bundled
@pytest.mark.slow
def test_rows_of_the_bundled_pair(tmp_path: Path, bundled_pair: Pair) -> None:
    folder = gpu.capture(
        "smollm2-135m", "layerskip:10,20", ["Why?"], out=tmp_path, tree="total=12,depth=3,top_k=4", blocks=1,
        continuation=6, dtype="float32",
    )  # fmt: skip
    hold_against_paths(gpu.open_trace(folder), bundled_pair.target.network, bundled_pair.draft.network, 1e-4)


def test_a_model_that_does_not_follow_the_tree_is_refused(
    tiny: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Model.logits_where

    def everything_visible(self, ids, visible, positions, key_positions, **options):
        return honest(self, ids, torch.ones_like(visible).tril(), positions, key_positions, **options)

    monkeypatch.setattr(Model, "logits_where", everything_visible)
    with pytest.raises(CaptureError, match=r"the target \(LlamaForCausalLM\) gives other logits in a tree pass"):
        capture(tiny, tmp_path)


def test_layers_that_carry_a_state_are_refused(tiny: SimpleNamespace) -> None:
    model = Model(AutoModelForCausalLM.from_pretrained(tiny.narrow_qwen))
    model.network.config.layer_types = ["linear_attention", "full_attention"]
    nothing = torch.zeros(1, 1, dtype=torch.int64)
    with pytest.raises(InvalidInput, match="layers of the kind 'linear_attention'"):
        model.logits_where(nothing, torch.ones(1, 1, 1, dtype=torch.bool), nothing, nothing, keep=1)


# -- trees -------------------------------------------------------------------------------------------------------------


def test_top_k_trees_are_the_expansion_of_the_draft(tiny: SimpleNamespace, trace: gpu.TreeTrace) -> None:
    """Against `expand` with a draft that is run on each path alone; ids that the target lacks count as impossible."""
    draft = AutoModelForCausalLM.from_pretrained(tiny.narrow_qwen)
    for tree in trace:

        def law(path: tuple[int, ...], context: torch.Tensor = tree.context) -> np.ndarray:
            with torch.inference_mode():
                logits = draft(torch.tensor([[*context.tolist(), *path]]), use_cache=False).logits[0, -1]
            return softmax(logits.double()).numpy()

        expected = expand(law, top_k=3, depth=4, total=12)
        assert tree.tokens.tolist() == expected.tokens.tolist()
        assert tuple(tree.parents.tolist()) == expected.parents
    assert (trace.nodes, trace.draft_length, trace.drawing) == (12, 4, "deterministic")
    assert len({tuple(tree.parents.tolist()) for tree in trace}) > 1


@pytest.mark.parametrize("drawing", ["with-replacement", "without-replacement", "deterministic"])
def test_full_trees_can_be_drawn_again_from_the_trace_alone(
    tiny: SimpleNamespace, tmp_path: Path, drawing: str
) -> None:
    options = {"temperature": 0.7, "seed": 9, "dtype": "bfloat16", "blocks": 10}
    trace = capture(tiny, tmp_path, draft=tiny.wide_qwen, tree=tree_shape("3,2", drawing), **options)
    seen: Counter[int] = Counter()
    for tree in trace:
        assert tuple(tree.parents.tolist()) == branching([3, 2])
        noise = torch.from_numpy(uniforms(9, DRAFT, tree.prompt, seen[tree.prompt], 9))
        seen[tree.prompt] += 1
        for node, parent in enumerate(tree.parents.tolist(), start=1):
            row = tree.draft_logits[tree.inner.index(parent)].clone()
            assert (row[296:] == -torch.inf).all()
            earlier = [int(tree.tokens[i]) for i in range(node - 1) if tree.parents[i] == parent]
            if drawing != "with-replacement":
                row[earlier] = -torch.inf
            temperature = 0 if drawing == "deterministic" else 0.7
            token = draw(row[None], noise[node - 1 : node], temperature=temperature)
            assert int(token) == int(tree.tokens[node - 1])


def test_shapes() -> None:
    assert tree_shape("total=60,depth=5,top_k=8") == TopKTree(total=60, depth=5, top_k=8)
    assert tree_shape("2, 1", "without-replacement") == FullTree(children=(2, 1), drawing="without-replacement")
    assert TopKTree(total=60, depth=2, top_k=3).nodes == 12
    assert FullTree(children=(3, 2, 2)).nodes == len(branching([3, 2, 2]))


# -- running -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [TOP_K, "2,2"])
def test_broken_off_anywhere_it_ends_with_the_same_bytes(tiny: SimpleNamespace, tmp_path: Path, shape: str) -> None:
    class Stop(Exception):
        pass

    def stop_after(limit: int):
        def progress(done: int, total: int) -> None:
            if done >= limit:
                raise Stop

        return progress

    whole = capture(tiny, tmp_path / "whole", tree=shape, blocks_per_shard=1, dtype="float16")
    for limit in (1, 3, 4):
        folder = tmp_path / str(limit)
        options = {"tree": shape, "blocks_per_shard": 1, "dtype": "float16"}
        with pytest.raises(Stop):
            capture(tiny, folder, progress=stop_after(limit), **options)
        assert files_of(capture(tiny, folder, **options).path) == files_of(whole.path)
    with pytest.raises(CaptureError, match="holds a trace made with other settings"):
        capture(tiny, tmp_path / "whole", tree=shape, blocks_per_shard=1, dtype="float16", seed=3)
    with pytest.raises(CaptureError, match="schema is 'fly-theory-tree-trace/1' there and 'fly-theory-trace/1' now"):
        capture(tiny, tmp_path / "whole", tree=None, blocks_per_shard=1, dtype="float16")


def test_the_command_names_what_it_captured(tiny: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("the fox and the hare\n")
    command = typer.Typer()
    command.command()(capture_command)
    models = ["--target", tiny.llama, "--draft", tiny.narrow_qwen, "--prompts", tmp_path / "prompts.txt"]
    arguments = [*models, "--blocks", 2, "--continuation", 4, "--tree", TOP_K, "--out", tmp_path / "trace"]
    result = CliRunner().invoke(command, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["nodes"], document["drawing"], document["blocks"]) == (12, "deterministic", 2)
    assert "2 trees, N=12" in CliRunner().invoke(command, list(map(str, arguments))).stdout
    settings = gpu.open_trace(tmp_path / "trace").manifest["source"]["settings"]
    assert settings["tree"] == {"total": 12, "depth": 4, "top_k": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tree": "three"}, r"tree='three'; expected total=60,depth=5,top_k=8 or children by depth"),
        ({"tree": "total=60,depth=5"}, "tree='total=60,depth=5'; expected"),
        ({"tree": "2,0"}, "children=0 is not allowed"),
        ({"tree": "total=0,depth=5,top_k=8"}, "tree: total=0 is not allowed"),
        ({"tree": "total=900,depth=2,top_k=400"}, "400 siblings cannot all differ; both models know 292 ids"),
        ({"draft_length": 3}, "draft_length=3 and a tree"),
        ({"temperature": 0.0}, "draws the same token for all siblings"),
        ({"continuation": 150}, "with its continuation and the draft"),
    ],
)
def test_what_is_refused(tiny: SimpleNamespace, tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        capture(tiny, tmp_path, **options)


def test_most_probable_paths_have_no_drawing() -> None:
    with pytest.raises(InvalidInput, match="the most probable paths are deterministic"):
        tree_shape(TOP_K, "with-replacement")
    with pytest.raises(InvalidInput, match="drawing='often' is not one of"):
        tree_shape("2,2", "often")


@pytest.mark.cuda
def test_on_cuda_the_rows_are_those_of_the_cpu(tiny: SimpleNamespace, tmp_path: Path) -> None:
    """Also replayed there: 1e-3 is what float32 leaves of logits on another device."""
    options = {"context_temperature": 0.0, "draft": "layerskip:1"}
    here, there = (capture(tiny, tmp_path / device, device=device, **options) for device in ("cpu", "cuda"))
    for one, other in zip(here, there, strict=True):
        assert torch.equal(one.tokens, other.tokens)
        torch.testing.assert_close(one.target_logits, other.target_logits, rtol=0, atol=1e-3)
        torch.testing.assert_close(one.draft_logits, other.draft_logits, rtol=0, atol=1e-3)
    rules = ["lossless", "min-p:base=0.1", "traversal"]
    found = [gpu.replay(here, rules, device=device) for device in ("cpu", "cuda")]
    for spec in rules:
        means = [replayed[spec]["tokens_per_call"].mean for replayed in found]
        assert means[0] == pytest.approx(means[1], abs=1e-4)
