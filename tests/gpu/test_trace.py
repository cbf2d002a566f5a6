"""The trace format: what is written is what is read, however it is cut into shards, and damage is named."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import fly_theory.files
import gpu
from fly_theory.errors import CaptureError, FlyTheoryError, InvalidInput, ShapeError, TraceError
from gpu.trace import TraceBlock, TraceHeader, TraceWriter

K, V_TARGET, V_DRAFT = 3, 11, 9


def make_blocks(count: int = 10) -> list[TraceBlock]:
    generator = torch.Generator().manual_seed(5)
    return [
        TraceBlock(
            target_logits=torch.randn(K + 1, V_TARGET, generator=generator),
            draft_logits=torch.randn(K, V_DRAFT, generator=generator),
            tokens=torch.randint(V_DRAFT, (K,), generator=generator),
            context=torch.randint(V_DRAFT, (number % 4,), generator=generator),
            prompt=number // 4,
            position=number % 4,
            index=number,
        )
        for number in range(count)
    ]


def assert_same(one: TraceBlock, other: TraceBlock) -> None:
    for field in ("target_logits", "draft_logits", "tokens", "context"):
        assert torch.equal(getattr(one, field), getattr(other, field)), field
    assert (one.prompt, one.position, one.index) == (other.prompt, other.position, other.index)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_reads_back_what_was_written_padded_to_the_common_width(tmp_path: Path, dtype: str) -> None:
    blocks = make_blocks()
    trace = gpu.open_trace(gpu.write_trace(tmp_path, blocks, dtype=dtype, blocks_per_shard=4))
    assert (len(trace), trace.draft_length, trace.vocabulary) == (10, K, V_TARGET)
    assert [shard["blocks"] for shard in trace.manifest["shards"]] == [4, 4, 2]
    for written, read in zip(blocks, trace, strict=True):
        stored = getattr(torch, dtype)
        absent = torch.full((K, V_TARGET - V_DRAFT), -torch.inf, dtype=stored)
        draft_logits = torch.cat([written.draft_logits.to(stored), absent], dim=1)
        expected = TraceBlock(
            written.target_logits.to(stored),
            draft_logits,
            written.tokens,
            written.context,
            written.prompt,
            written.position,
            written.index,
        )
        assert_same(read, expected)
        assert_same(trace[read.index], expected)
    assert_same(trace[-1], trace[9])
    for outside in (10, -11):
        with pytest.raises(IndexError, match="of a trace of 10 blocks"):
            trace[outside]


def test_how_blocks_are_sharded_does_not_show(tmp_path: Path) -> None:
    trace = gpu.open_trace(gpu.write_trace(tmp_path / "4", make_blocks(), dtype="float16", blocks_per_shard=4))
    for size in (1, 7, 100):
        folder = gpu.reshard(trace.path, tmp_path / f"in {size}", blocks_per_shard=size)
        again = gpu.open_trace(folder)
        assert len(again.manifest["shards"]) == -(-10 // size)
        for one, other in zip(trace, again, strict=True):
            assert_same(one, other)
        back = gpu.reshard(folder, tmp_path / f"back from {size}", blocks_per_shard=4)
        assert files_of(back) == files_of(trace.path)


def test_a_trace_is_a_function_of_its_blocks(tmp_path: Path) -> None:
    for name in ("one", "two"):
        gpu.write_trace(tmp_path / name, make_blocks(), source={"made by": "a test"})
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert gpu.open_trace(tmp_path / "one").sha256 == gpu.open_trace(tmp_path / "two").sha256


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (Path.unlink, "is missing from the trace"),
        (_truncate, r"is truncated: \d+ bytes, the manifest says"),
        (_extend, "is too long"),
        (_flip_a_bit, "was altered: its sha256 is"),
    ],
)
def test_a_damaged_shard_is_named(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    gpu.write_trace(tmp_path, make_blocks(), blocks_per_shard=4)
    damage(tmp_path / "shards/shard-00001.safetensors")
    with pytest.raises(TraceError, match=f"shard-00001.safetensors {message}"):
        list(gpu.open_trace(tmp_path))


def test_a_sound_shard_beside_an_altered_one_is_read(tmp_path: Path) -> None:
    gpu.write_trace(tmp_path, make_blocks(), blocks_per_shard=4)
    _flip_a_bit(tmp_path / "shards/shard-00001.safetensors")
    trace = gpu.open_trace(tmp_path)
    assert trace[3].index == 3
    with pytest.raises(TraceError, match="altered"):
        trace[4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "fly-theory-trace/0"}, "has the schema 'fly-theory-trace/0'; this version reads"),
        ({"complete": False}, "is unfinished: 10 blocks so far"),
        ({"draft_length": 4}, r"target_logits has shape \[4, 4, 11\], the manifest says \[4, 5, 11\]"),
        ({"vocabulary": {"target": 11, "draft": 10}}, r"draft_logits has shape \[4, 3, 9\]"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, change: dict, message: str) -> None:
    gpu.write_trace(tmp_path, make_blocks(), blocks_per_shard=4)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(TraceError, match=message):
        list(gpu.open_trace(tmp_path))


def test_no_manifest_and_no_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"is no trace: .*manifest\.json cannot be read"):
        gpu.open_trace(tmp_path / "nowhere")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(TraceError, match="is not JSON"):
        gpu.open_trace(tmp_path)
    (tmp_path / "manifest.json").write_text('{"schema": "fly-theory-trace/1"}')
    with pytest.raises(TraceError, match="lacks 'draft_length'"):
        gpu.open_trace(tmp_path)


def test_decoding_needs_the_tokenizer_of_the_trace(tmp_path: Path) -> None:
    from tests.gpu.tiny_models import END, TEXT, train_tokenizer

    tokenizer = train_tokenizer()
    tokenizer.backend_tokenizer.save(str(tmp_path / "kept.json"))
    ids = tokenizer(TEXT[0])["input_ids"]
    folder = gpu.write_trace(tmp_path / "trace", make_blocks(), tokenizer=tmp_path / "kept.json")
    assert gpu.open_trace(folder).decode(torch.tensor([*ids, 0])) == TEXT[0] + END

    _flip_a_bit(folder / "tokenizer.json")
    with pytest.raises(TraceError, match=r"tokenizer\.json was altered"):
        gpu.open_trace(folder).decode(ids)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(TraceError, match=r"tokenizer\.json cannot be read"):
        gpu.open_trace(folder).decode(ids)
    (tmp_path / "other.json").write_text("{}")
    other = gpu.write_trace(tmp_path / "other", make_blocks(), tokenizer=tmp_path / "other.json")
    with pytest.raises(TraceError, match=r"tokenizer\.json is no tokenizer"):
        gpu.open_trace(other).decode(ids)
    without = gpu.write_trace(tmp_path / "without", make_blocks())
    with pytest.raises(TraceError, match="holds no tokenizer"):
        gpu.open_trace(without).decode(ids)


def _with(field: str, change: Callable[[torch.Tensor], torch.Tensor]) -> list[TraceBlock]:
    blocks = make_blocks(3)
    values = {name: getattr(blocks[2], name) for name in ("target_logits", "draft_logits", "tokens")}
    blocks[2] = TraceBlock(**(values | {field: change(values[field].clone())}))
    return blocks


def _set(index: tuple[int, ...], value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor.index_put_(tuple(torch.tensor(i) for i in index), torch.tensor(value).to(tensor.dtype))


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (
            _with("target_logits", _set((1, 4), torch.nan)),
            InvalidInput,
            "block 2: target_logits row 1 has nan at index 4",
        ),
        (
            _with("draft_logits", _set((2, 0), torch.inf)),
            InvalidInput,
            "block 2: draft_logits row 2 has inf at index 0",
        ),
        (
            _with("target_logits", _set((0, 1), 7e4)),
            InvalidInput,
            "has 70000.0 at index 1; .* numbers that float16 can hold",
        ),
        (_with("target_logits", lambda t: t[:K]), ShapeError, r"target_logits has shape \(3, 11\); expected \(4, 11\)"),
        (_with("draft_logits", lambda t: t[:, :5]), ShapeError, r"draft_logits has shape \(3, 5\); expected \(3, 9\)"),
        (_with("tokens", lambda t: t[:1]), ShapeError, r"tokens has shape \(1,\); expected \(3,\)"),
        (_with("tokens", _set((0,), V_DRAFT)), InvalidInput, "not all ids of the draft, 0 to 8"),
        (_with("tokens", _set((0,), -1)), InvalidInput, "not all ids of the draft"),
        (_with("target_logits", lambda t: t - torch.inf), InvalidInput, "row 0 is -inf everywhere"),
        (
            _with("draft_logits", lambda t: t.scatter_(1, make_blocks(3)[2].tokens[:, None], -torch.inf)),
            InvalidInput,
            "draft token 0 is .*, to which the draft gives no mass",
        ),
        ([], InvalidInput, "blocks is empty"),
    ],
)
def test_blocks_that_cannot_be_right_are_refused(
    tmp_path: Path, blocks: list[TraceBlock], error: type[FlyTheoryError], message: str
) -> None:
    with pytest.raises(error, match=message):
        gpu.write_trace(tmp_path, blocks, dtype="float16")


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("target_logits", lambda t: t.numpy(), "target_logits is a ndarray; expected a torch tensor"),
        ("tokens", lambda t: t.tolist(), "tokens is a list; expected a torch tensor"),
        ("draft_logits", lambda t: t[0], r"draft_logits has shape \(9,\); expected 2 axes"),
        ("tokens", lambda t: t + 0.7, "tokens has dtype torch.float32; expected integers"),
        ("context", lambda t: t.tolist(), "context is a list; expected a torch tensor"),
        ("context", lambda t: t.double(), "context has dtype torch.float64; expected integers"),
    ],
)
def test_a_block_of_anything_but_tensors_is_refused(
    field: str, change: Callable[[torch.Tensor], object], message: str
) -> None:
    names = ("target_logits", "draft_logits", "tokens", "context")
    values = {name: getattr(make_blocks(1)[0], name) for name in names}
    with pytest.raises(InvalidInput, match=message):
        TraceBlock(**(values | {field: change(values[field])}))


def test_a_masked_logit_is_kept(tmp_path: Path) -> None:
    block = _with("target_logits", _set((1, 4), -torch.inf))[2]
    (read,) = gpu.open_trace(gpu.write_trace(tmp_path, [block]))
    assert read.target_logits[1, 4] == -torch.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [({"dtype": "float8"}, "dtype='float8'; allowed are float16"), ({"blocks_per_shard": 0}, "blocks_per_shard=0")],
)
def test_settings_outside_their_domain_are_refused(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        gpu.write_trace(tmp_path, make_blocks(), **options)


def test_an_occupied_folder_is_left_alone(tmp_path: Path) -> None:
    gpu.write_trace(tmp_path / "trace", make_blocks())
    with pytest.raises(CaptureError, match="holds a trace already"):
        gpu.write_trace(tmp_path / "trace", make_blocks())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").touch()
    with pytest.raises(CaptureError, match=r"holds other files \('thesis.tex'\) and no trace"):
        gpu.write_trace(tmp_path / "mine", make_blocks())
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(CaptureError, match=r"thesis\.tex is a file; choose an empty or a new folder"):
        gpu.write_trace(tmp_path / "mine/thesis.tex", make_blocks())
    with pytest.raises(CaptureError, match=r"cannot write .*: Not a directory$"):
        gpu.write_trace(tmp_path / "mine/thesis.tex/trace", make_blocks())


HEADER = TraceHeader(K, V_TARGET, V_DRAFT, "float32", 4, b'{"a": "tokenizer"}', {"seed": 1, "prompts": ["a", "b"]})


def write(folder: Path, header: TraceHeader = HEADER) -> None:
    with TraceWriter(folder, header) as writer:
        for block in make_blocks()[writer.blocks_done :]:
            writer.append(block)
        writer.finish()


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, HEADER), pytest.raises(CaptureError, match="another process is writing"):
        write(tmp_path)
    write(tmp_path)
    assert len(gpu.open_trace(tmp_path)) == 10


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", range(8))
def test_broken_off_at_any_write_it_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, moment: str
) -> None:
    """The steps are: manifest, tokenizer, then shard and manifest of three shards, the last of which completes it."""
    write(tmp_path / "whole")
    seen, replace = [], os.replace

    def break_off(source: Path, destination: Path) -> None:
        seen.append(destination)
        if len(seen) == step + 1 and moment == "before":
            raise KeyboardInterrupt
        replace(source, destination)
        if len(seen) == step + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fly_theory.files.os, "replace", break_off)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "broken")
    finished = step == 7 and moment == "after"
    if (tmp_path / "broken/manifest.json").exists() and not finished:
        with pytest.raises(TraceError, match="is unfinished"):
            gpu.open_trace(tmp_path / "broken")
    write(tmp_path / "broken")
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")


def test_leftovers_of_a_kill_do_not_stay(tmp_path: Path) -> None:
    write(tmp_path / "whole")
    (tmp_path / "killed/shards").mkdir(parents=True)
    (tmp_path / "killed/manifest.json.partial").write_text("{")
    (tmp_path / "killed/shards/shard-00000.safetensors.partial").write_text("half")
    write(tmp_path / "killed")
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_a_finished_trace_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(fly_theory.files.os, "replace", refuse)
    write(tmp_path)


def test_resuming_checks_finished_shards(tmp_path: Path) -> None:
    write(tmp_path)
    _flip_a_bit(tmp_path / "shards/shard-00001.safetensors")
    with pytest.raises(TraceError, match=r"shard-00001\.safetensors was altered"):
        write(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"draft_length": 4}, "draft_length is 3 there and 4 now"),
        ({"dtype": "float16"}, "dtype is 'float32' there and 'float16' now"),
        ({"source": {"seed": 2, "prompts": ["b"]}}, "source.seed is 1 there and 2 now"),
        ({"source": {"seed": 1, "prompts": ["a", "c"]}}, r"source.prompts\[1\] is 'b' there and 'c' now"),
        ({"source": {"seed": 1, "prompts": ["a"]}}, r"source.prompts is \['a', 'b'\] there and \['a'\] now"),
        ({"source": {"seed": 1}}, "source.prompts is only there"),
        ({"tokenizer": None}, "tokenizer is .* there and None now"),
    ],
)
def test_other_settings_do_not_resume(tmp_path: Path, changed: dict, message: str) -> None:
    write(tmp_path)
    with pytest.raises(CaptureError, match=message):
        write(tmp_path, TraceHeader(**(vars(HEADER) | changed)))


@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    write(tmp_path / "whole")

    def fill_up(number: int | str | Path, *rest: object) -> object:
        path = Path(os.readlink(f"/proc/self/fd/{number}") if isinstance(number, int) else number)
        if path.name.startswith("shard-00001"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return genuine(number, *rest)

    with monkeypatch.context() as patch:
        if call == "open":
            genuine = open
            patch.setattr(fly_theory.files, "open", fill_up, raising=False)
        else:
            genuine = os.fsync
            patch.setattr(fly_theory.files.os, "fsync", fill_up)
        with pytest.raises(CaptureError, match=r"shard-00001.*No space left.* 4 finished blocks are safe"):
            write(tmp_path / "filled")
    assert not list((tmp_path / "filled").rglob("*.partial"))
    write(tmp_path / "filled")
    assert files_of(tmp_path / "filled") == files_of(tmp_path / "whole")
