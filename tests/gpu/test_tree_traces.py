"""The trace of draft trees: what is written is what is read, and what cannot be a tree is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gpu
from fly_theory.cli.pair_source import pair_of_trace
from fly_theory.errors import InvalidInput, ShapeError, TraceError
from gpu.trace import TraceTree

N, V_TARGET, V_DRAFT = 5, 11, 9
TOPOLOGIES = ([0, 0, 1, 1, 2], [0, 1, 2, 3, 0], [0, 0, 0, 0, 0])


def make_trees(count: int = 7) -> list[TraceTree]:
    generator = torch.Generator().manual_seed(6)
    trees = []
    for number in range(count):
        parents = torch.tensor(TOPOLOGIES[(number + 1) % len(TOPOLOGIES)])
        trees.append(
            TraceTree(
                target_logits=torch.randn(N + 1, V_TARGET, generator=generator),
                draft_logits=torch.randn(len(parents.unique()), V_DRAFT, generator=generator),
                tokens=torch.randperm(V_DRAFT, generator=generator)[:N],
                parents=parents,
                context=torch.randint(V_DRAFT, (number % 4,), generator=generator),
                prompt=number // 4,
                position=number % 4,
                index=number,
            )
        )
    return trees


def write(folder: Path, trees: list[TraceTree], drawing: str = "deterministic", **options: object) -> Path:
    return gpu.write_trees(folder, trees, drawing=drawing, **options)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_reads_back_what_was_written_padded_to_the_common_width(tmp_path: Path, dtype: str) -> None:
    trees, stored = make_trees(), getattr(torch, dtype)
    trace = gpu.open_trace(write(tmp_path, trees, dtype=dtype, blocks_per_shard=3))
    assert isinstance(trace, gpu.TreeTrace)
    assert (len(trace), trace.nodes, trace.draft_length, trace.drawing) == (7, N, 4, "deterministic")
    assert [shard["blocks"] for shard in trace.manifest["shards"]] == [3, 3, 1]
    for written, read in zip(trees, trace, strict=True):
        for tree in (read, trace[written.index]):
            assert torch.equal(tree.target_logits, written.target_logits.to(stored))
            assert torch.equal(tree.draft_logits[:, :V_DRAFT], written.draft_logits.to(stored))
            assert (tree.draft_logits[:, V_DRAFT:] == -torch.inf).all()
            for name in ("tokens", "parents", "context"):
                assert torch.equal(getattr(tree, name), getattr(written, name))
            assert (tree.prompt, tree.position, tree.index) == (written.prompt, written.position, written.index)


def test_a_path_is_the_tokens_down_to_a_node() -> None:
    tree = make_trees(1)[0]
    assert tree.inner == [0, 1, 2, 3]
    tokens = tree.tokens.tolist()
    assert [tree.path(node) for node in (0, 1, 4, 5)] == [[], tokens[:1], tokens[:4], tokens[4:]]


def test_an_altered_or_unfinished_trace_is_noticed(tmp_path: Path) -> None:
    trace = gpu.open_trace(write(tmp_path, make_trees()))
    path = tmp_path / trace.manifest["shards"][0]["file"]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(TraceError, match="was altered: its sha256 is"):
        trace[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"parents": torch.tensor([0, 2, 1, 1, 1])}, InvalidInput, r"parents\[1\]=2; the parent of node 2 is one of"),
        ({"parents": torch.tensor([0, 1, 2, 3, 4])}, InvalidInput, "a path has 5 drafts; .* of depth 4 at most"),
        ({"tokens": torch.tensor([1, 2, 3, 4])}, ShapeError, r"tokens has shape \(4,\); expected \(5,\)"),
        ({"tokens": torch.tensor([1, 2, 3, 4, 1])}, InvalidInput, "siblings drawn deterministic differ"),
        ({"tokens": torch.tensor([1, 2, 3, 4, V_DRAFT])}, InvalidInput, "are not all ids of the draft"),
        ({"draft_logits": torch.zeros(5, V_DRAFT)}, ShapeError, r"draft_logits has shape \(5, 9\); expected \(4, 9\)"),
        ({"target_logits": torch.full((N + 1, V_TARGET), torch.inf)}, InvalidInput, "target_logits row 0 has inf"),
    ],
)
def test_what_is_no_tree_is_refused(tmp_path: Path, change: dict, error: type, message: str) -> None:
    first = make_trees(1)[0]
    with pytest.raises(error, match=message):
        write(tmp_path, [first, replace(first, **change)])


def test_a_drafted_token_has_draft_mass(tmp_path: Path) -> None:
    tree = make_trees(1)[0]
    tree.draft_logits[2, tree.tokens[2]] = -torch.inf
    with pytest.raises(InvalidInput, match=r"tree 0: node 3 is token \d+, to which the draft gives no mass"):
        write(tmp_path, [tree])


def test_what_needs_blocks_refuses_trees(tmp_path: Path) -> None:
    folder = write(tmp_path / "trees", make_trees())
    with pytest.raises(InvalidInput, match="no blocks of whole rows"):
        gpu.reshard(folder, tmp_path / "again", blocks_per_shard=2)
    with pytest.raises(InvalidInput, match="holds draft trees; give a trace of blocks"):
        pair_of_trace(folder, 0, 0, 1.0)
    with pytest.raises(InvalidInput, match="trees is empty"):
        write(tmp_path / "none", [])
