"""A row of a real trace, read by the `gpu` package through its entry point."""

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.cli import pair_source

torch = pytest.importorskip("torch")

BLOCKS, DRAFTS, V = 3, 2, 7


@pytest.fixture
def folder(tmp_path):
    """A trace whose draft has a narrower vocabulary than its target."""
    import gpu
    from gpu.trace import TraceBlock

    draws = torch.Generator().manual_seed(3)
    blocks = [
        TraceBlock(
            target_logits=torch.randn(DRAFTS + 1, V, generator=draws),
            draft_logits=torch.randn(DRAFTS, V - 1, generator=draws),
            tokens=torch.zeros(DRAFTS, dtype=torch.int64),
        )
        for _ in range(BLOCKS)
    ]
    return gpu.write_trace(tmp_path / "trace", blocks, blocks_per_shard=2), blocks


@pytest.mark.parametrize(("block", "position", "temperature"), [(0, 0, 1.0), (2, 1, 0.5), (1, 0, 0.0)])
def test_the_row_is_the_softmax_of_the_stored_logits(folder, block, position, temperature):
    path, blocks = folder
    pair = pair_source.pair_of_trace(path, block, position, temperature)
    target = blocks[block].target_logits[position].numpy()
    draft = np.append(blocks[block].draft_logits[position].numpy(), -np.inf)
    for found, logits in ((pair.p, target), (pair.q, draft)):
        np.testing.assert_allclose(
            found, ft.softmax(logits.astype(np.float64), temperature=temperature), rtol=0, atol=1e-15
        )
    assert pair.q[-1] == 0
    assert pair.token_name(3) == "3"


def test_a_figure_of_it(folder, cli, tmp_path):
    path, _ = folder
    out = tmp_path / "figure.pdf"
    report = cli("diagram", "lossless", "lenience:l=0.5", "--trace", path, "--block", 2, "-o", out, "--json").json()
    assert report["pair"].startswith(f"block 2, position 0 of {path} (sha256 ")
    assert report["panels"][0]["tv"] == pytest.approx(0, abs=1e-15)
    assert out.read_bytes().startswith(b"%PDF")


def test_a_folder_without_a_trace(cli, tmp_path):
    run = cli("diagram", "lossless", "--trace", tmp_path, "-o", tmp_path / "figure.png")
    assert run.error().startswith(f"{tmp_path} is no trace")
