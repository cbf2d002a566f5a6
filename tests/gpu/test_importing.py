"""Log-probabilities of an engine become a top-k trace; a top-k capture is a truncated capture."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import gpu
from fly_theory.errors import CaptureError, InvalidInput
from gpu.capture_cli import capture as capture_command
from gpu.import_cli import import_logprobs as import_command
from tests.gpu import replay_traces as traces
from tests.gpu.test_top_k import certified
from tests.gpu.test_trace import files_of

V, TOP = 30, 6


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("engine") / "trace", 6, v=V))


def engine_row(logits: torch.Tensor, token: int | None, *, ranks: bool) -> dict[str, Any]:
    """What vLLM answers for one position: the top tokens, and the token of the sequence wherever it ranks."""
    law = torch.log_softmax(logits.double(), -1)
    shown = [*law.topk(TOP).indices.tolist()]
    if token is not None and token not in shown:
        shown.append(token)
    return {
        str(i): {
            "logprob": float(law[i]),
            "rank": int((law > law[i]).sum()) + 1 if ranks else None,
            "decoded_token": "",
        }
        for i in shown
    }


def runs(trace: gpu.Trace, *, ranks: bool = True) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    target, draft = [], []
    for block in trace:
        tokens = block.tokens.tolist()
        place = {"context": block.context.tolist(), "prompt": block.prompt, "position": block.position}
        rows = zip(block.target_logits, [*tokens, None], strict=True)
        target.append({"token_ids": tokens, "logprobs": [engine_row(*row, ranks=ranks) for row in rows]})
        rows = zip(block.draft_logits, tokens, strict=True)
        draft.append({"token_ids": tokens, "logprobs": [engine_row(*row, ranks=ranks) for row in rows]} | place)
    return target, draft


def written(folder: Path, target: list[Any], draft: list[Any]) -> tuple[Path, Path]:
    """The target as JSONL, the draft as a JSON array."""
    files = folder / "target.jsonl", folder / "draft.json"
    files[0].write_text("".join(json.dumps(record) + "\n" for record in target))
    files[1].write_text(json.dumps(draft))
    return files


# -- import ------------------------------------------------------------------------------------------------------------


def test_an_imported_trace_is_the_truncated_trace(trace: gpu.Trace, tmp_path: Path) -> None:
    imported = gpu.open_trace(
        gpu.import_logprobs(*written(tmp_path, *runs(trace)), out=tmp_path / "trace", vocabulary=V)
    )
    truncated = gpu.open_trace(gpu.truncate_trace(trace, tmp_path / "top", TOP))
    assert (imported.top_k, imported.vocabulary, len(imported)) == (TOP, V, len(trace))
    for ours, theirs in zip(imported, truncated, strict=True):
        assert (ours.prompt, ours.position, ours.context.tolist()) == (
            theirs.prompt,
            theirs.position,
            theirs.context.tolist(),
        )
        for model in ("target", "draft"):
            found, expected = getattr(ours, model), getattr(theirs, model)
            assert found.ids.tolist() == expected.ids.tolist()
            torch.testing.assert_close(
                found.log_probabilities(1.0), expected.log_probabilities(1.0), rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("ranks", [True, False])
def test_replay_of_an_imported_trace_contains_the_figures_of_whole_rows(
    trace: gpu.Trace, tmp_path: Path, ranks: bool
) -> None:
    imported = gpu.import_logprobs(*written(tmp_path, *runs(trace, ranks=ranks)), out=tmp_path / "trace", vocabulary=V)
    specs = ["lossless", "lenience:l=0.5", "min-p:base=0.2"]
    replayed = gpu.replay(imported, specs)
    certified(replayed, gpu.replay(trace, specs, dtype="float64", modes=False))
    assert replayed["lossless"]["tokens_per_call"].certified[1] - replayed["lossless"]["tokens_per_call"].certified[
        0
    ] == pytest.approx(0, abs=1e-7)


def test_block_efficiency_needs_to_know_how_the_drafts_were_drawn(trace: gpu.Trace, tmp_path: Path) -> None:
    files = written(tmp_path, *runs(trace))
    unknown = gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=V, temperature=None)
    assert gpu.replay(unknown, ["lossless"])["lossless"]["tokens_per_call"] is None


def _without(record: dict[str, Any], position: int, token: str) -> dict[str, Any]:
    rows = [dict(row) for row in record["logprobs"]]
    del rows[position][token]
    return record | {"logprobs": rows}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, d: (t[:-1], d), "target.jsonl has 5 blocks and .*draft.json has 6"),
        (lambda t, d: ([], d), "holds no block of the target"),
        (lambda t, d: ([t[0] | {"token_ids": [1, 2, 3, 4]}, *t[1:]], d), "position 0 does not hold the draft token 1"),
        (lambda t, d: ([{"tokens": []}, *t[1:]], d), "block 0 is no object with token_ids and logprobs"),
        (lambda t, d: ([t[0] | {"logprobs": t[0]["logprobs"][:-1]}, *t[1:]], d), "4 positions for 4 draft tokens"),
        (
            lambda t, d: (t, [_without(d[0], 2, str(d[0]["token_ids"][2])), *d[1:]]),
            "position 2 does not hold the draft",
        ),
        (lambda t, d: (t, [d[0] | {"token_ids": [-1, 0, 0, 0]}, *d[1:]]), "expected a list of token ids"),
        (lambda t, d: (t, [d[0] | {"logprobs": [[], *d[0]["logprobs"][1:]]}, *d[1:]]), "expected an object from token"),
        (lambda t, d: (t, [d[0] | {"logprobs": [{"x": -1.0}] * 4}, *d[1:]]), "'x' is no token id"),
        (lambda t, d: (t, [d[0] | {"logprobs": [{"0": 0.5}] * 4}, *d[1:]]), "the log-probability is 0.5"),
        (lambda t, d: (t, [d[0] | {"logprobs": [{"0": -0.1, "1": -0.1}] * 4}, *d[1:]]), "probabilities sum to 1.8"),
        (lambda t, d: (t, [d[0] | {"logprobs": [{"0": {"logprob": -1, "rank": 0}}] * 4}, *d[1:]]), "the rank is 0"),
    ],
)
def test_what_is_not_in_the_layout_is_named(trace: gpu.Trace, tmp_path: Path, spoil: Any, message: str) -> None:
    files = written(tmp_path, *spoil(*runs(trace)))
    with pytest.raises(InvalidInput, match=message):
        gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=V)


def test_runs_along_different_drafts_and_ids_beyond_the_vocabulary_are_refused(
    trace: gpu.Trace, tmp_path: Path
) -> None:
    target, draft = runs(trace)
    files = written(tmp_path, [target[1], *target[1:]], draft)
    with pytest.raises(InvalidInput, match="block 0: the target ran along"):
        gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=V)
    files = written(tmp_path, target, draft)
    with pytest.raises(InvalidInput, match="0 to 9"):
        gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=10)
    (tmp_path / "target.jsonl").write_text("{")
    with pytest.raises(InvalidInput, match="neither a JSON array nor JSONL"):
        gpu.import_logprobs(*files, out=tmp_path / "other", vocabulary=V)
    with pytest.raises(InvalidInput, match="cannot be read"):
        gpu.import_logprobs(tmp_path / "none", files[1], out=tmp_path / "other", vocabulary=V)


def test_import_does_not_write_over_a_trace(trace: gpu.Trace, tmp_path: Path) -> None:
    files = written(tmp_path, *runs(trace))
    gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=V)
    with pytest.raises(CaptureError, match="holds a trace already"):
        gpu.import_logprobs(*files, out=tmp_path / "trace", vocabulary=V)


def run(command: Any, *arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_import_verb(trace: gpu.Trace, tmp_path: Path) -> None:
    target, draft = map(str, written(tmp_path, *runs(trace)))
    asked = ("--target", target, "--draft", draft, "--vocabulary", str(V), "--out", str(tmp_path / "trace"), "--json")
    document = json.loads(run(import_command, *asked))
    assert (document["blocks"], document["top_k"]) == (6, TOP)
    assert document["sha256"] == gpu.open_trace(tmp_path / "trace").sha256


# -- capture -----------------------------------------------------------------------------------------------------------


def test_capture_of_the_top_is_the_truncated_capture(tiny: SimpleNamespace, tmp_path: Path) -> None:
    options = {"draft_length": 3, "blocks": 5, "continuation": 6, "blocks_per_shard": 2, "device": "cpu"}
    pair, prompts = (tiny.llama, tiny.narrow_qwen), ["the fox and the hare", "the hill"]
    whole = gpu.capture(*pair, prompts, out=tmp_path / "whole", temperature=0.8, **options)
    top = gpu.capture(*pair, prompts, out=tmp_path / "top", temperature=0.8, topk=16, **options)
    assert files_of(top) == files_of(gpu.truncate_trace(whole, tmp_path / "cut", 16))
    certified(
        gpu.replay(top, ["lossless", "lenience:l=0.5"]),
        gpu.replay(whole, ["lossless", "lenience:l=0.5"], dtype="float64", modes=False),
    )


def test_capture_verb_stores_the_top(tiny: SimpleNamespace, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the fox\n")
    asked = ("--target", str(tiny.llama), "--draft", str(tiny.narrow_qwen), "--prompts", str(prompts), "--blocks", "1")
    run(capture_command, *asked, "--draft-length", "2", "--topk", "8", "--out", str(tmp_path / "trace"), "--json")
    assert gpu.open_trace(tmp_path / "trace").top_k == 8


def test_trees_are_stored_whole(tiny: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="topk=8 and a tree"):
        gpu.capture(tiny.llama, tiny.narrow_qwen, ["the fox"], out=tmp_path / "t", topk=8, tree="2,2")
