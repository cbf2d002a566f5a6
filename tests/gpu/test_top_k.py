"""Top-k traces: what they hold, that replay on them contains the figures of whole rows, and what they refuse."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

import fly_theory as ft
import gpu
from fly_theory.errors import CaptureError, InvalidInput, NotReadable, ShapeError
from gpu.replaying.certified.measures import rule_bounds
from gpu.replaying.certified.seen import cells_of
from gpu.replaying.measures import measure
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TopKHeader, TopKWriter, top_k_of
from tests.gpu import replay_traces as traces

V = 60
SPECS = tuple(spec for spec in traces.SPECS if not spec.startswith(("mentored", "cactus")))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("top-k") / "trace", 10, v=V))


@pytest.fixture(scope="module")
def exact(trace: gpu.Trace) -> gpu.Replay:
    return gpu.replay(trace, SPECS, dtype="float64", modes=False)


def certified(replayed: gpu.Replay, exact: gpu.Replay) -> dict[tuple[str, str], float]:
    """Hold every figure of every rule against its certified interval, and return the widths."""
    widths = {}
    for result in replayed:
        whole = exact[result.spec]
        of_each = (("", result.figures, whole.figures), ("matched ", result.matched or {}, whole.matched or {}))
        for prefix, figures, expected in of_each:
            for name, figure in figures.items():
                assert figure is not None
                low, high = figure.certified
                assert low - 1e-12 <= expected[name].mean <= high + 1e-12, (result.spec, prefix + name)
                assert low - 1e-12 <= figure.mean <= high + 1e-12
                widths[result.spec, prefix + name] = high - low if low < math.inf else 0.0
    return widths


# -- what is stored ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_truncated_trace_holds_the_largest_logits_and_what_normalises_them(tmp_path: Path, dtype: str) -> None:
    source = {"settings": {"temperature": 0.7}}
    whole = gpu.open_trace(gpu.write_trace(tmp_path / "whole", traces.blocks(5, v=V), dtype=dtype, source=source))
    top = gpu.open_trace(gpu.truncate_trace(whole, tmp_path / "top", 6))
    assert isinstance(top, gpu.TopKTrace)
    assert (top.top_k, top.temperature, top.vocabulary, len(top)) == (6, 0.7, V, 5)
    for full, short in zip(whole, top, strict=True):
        assert short.index == full.index
        assert short.tokens.tolist() == full.tokens.tolist()
        assert short.context.tolist() == full.context.tolist()
        for rows, logits in ((short.target, full.target_logits), (short.draft, full.draft_logits)):
            law = torch.log_softmax(logits.double() / 0.7, -1)
            found = rows.log_probabilities(0.7)
            torch.testing.assert_close(found, law.gather(-1, rows.ids.long()), rtol=0, atol=1e-12)
            torch.testing.assert_close(found, law.topk(6).values, rtol=0, atol=1e-12)
        drafted = full.draft_logits.gather(-1, full.tokens[:, None])[:, 0]
        assert short.drafted_logits[:, 1].tolist() == drafted.tolist()


def test_a_top_k_trace_is_resumed_to_the_same_bytes(trace: gpu.Trace, tmp_path: Path) -> None:
    once = gpu.truncate_trace(trace, tmp_path / "once", 5)
    header = TopKHeader(
        **{name: trace.manifest[name] for name in ("draft_length", "dtype", "blocks_per_shard", "source")},
        target_vocabulary=V,
        draft_vocabulary=V,
        tokenizer=None,
        top_k=5,
        temperature=1.0,
    )
    blocks = [top_k_of(block, 5, temperature=1.0) for block in trace]
    with TopKWriter(tmp_path / "twice", header) as writer:
        for block in blocks[:6]:
            writer.append(block)
    with TopKWriter(tmp_path / "twice", header) as writer:
        assert writer.blocks_done == 4
        for block in blocks[writer.blocks_done :]:
            writer.append(block)
        writer.finish()
    for file in sorted(once.rglob("*.*")):
        assert file.read_bytes() == (tmp_path / "twice" / file.relative_to(once)).read_bytes()


def test_tokens_without_mass_leave_room(tmp_path: Path) -> None:
    def narrow(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        target[:, 3:] = -torch.inf
        draft[:, 4:] = -torch.inf

    whole = traces.write(tmp_path / "whole", 4, v=V, edit=narrow)
    top = gpu.truncate_trace(whole, tmp_path / "top", 6)
    block = gpu.open_trace(top)[0]
    assert block.target.ids[0].tolist()[3:] == [-1, -1, -1]
    # Everything with mass was seen, so that every figure is known.
    exact = gpu.replay(whole, ["lossless", "lenience:l=0.5"], dtype="float64", modes=False)
    widths = certified(gpu.replay(top, ["lossless", "lenience:l=0.5"]), exact)
    assert max(widths.values()) < 1e-7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": torch.tensor([0, 1, 2, V])}, "tokens"),
        ({"drafted_logits": torch.full((4, 2), -torch.inf)}, "draft token 0 is"),
        ({"drafted_logits": torch.zeros(3, 2)}, r"drafted_logits has shape \(3, 2\)"),
        ({"temperature": 0.5}, "block 0 is at temperature 0.5, the trace at 1"),
    ],
)
def test_wrong_blocks_are_refused(trace: gpu.Trace, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    block = top_k_of(trace[0], 5, temperature=1.0)
    header = TopKHeader(4, V, V, "float32", 4, None, {}, top_k=5, temperature=1.0)
    with TopKWriter(tmp_path / "t", header) as writer, pytest.raises((InvalidInput, ShapeError), match=message):
        writer.append(replace(block, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": torch.zeros(5, 5, dtype=torch.int32)}, "a row holds a token id twice"),
        ({"ids": torch.arange(V - 2, V + 3).int().expand(5, 5)}, f"ids are not all of 0 to {V - 1}"),
        ({"logits": torch.full((5, 5), torch.nan)}, "NaN"),
        ({"log_sum_exp": torch.full((5,), torch.inf)}, "not all finite"),
    ],
)
def test_wrong_rows_are_refused(trace: gpu.Trace, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    block = top_k_of(trace[0], 5, temperature=1.0)
    header = TopKHeader(4, V, V, "float32", 4, None, {}, top_k=5, temperature=1.0)
    with TopKWriter(tmp_path / "t", header) as writer, pytest.raises(InvalidInput, match=message):
        writer.append(replace(block, target=replace(block.target, **change)))


def test_what_has_no_whole_rows_is_neither_truncated_nor_cut_anew(trace: gpu.Trace, tmp_path: Path) -> None:
    top = gpu.truncate_trace(trace, tmp_path / "top", 5)
    with pytest.raises(InvalidInput, match="no whole rows"):
        gpu.truncate_trace(top, tmp_path / "again", 3)
    with pytest.raises(InvalidInput, match="no blocks of whole rows"):
        gpu.reshard(top, tmp_path / "again", blocks_per_shard=1)
    with pytest.raises(CaptureError, match="holds a trace already"):
        gpu.truncate_trace(trace, top, 5)
    with pytest.raises(InvalidInput, match="top_k=0"):
        gpu.truncate_trace(trace, tmp_path / "none", 0)


# -- replay on it ------------------------------------------------------------------------------------------------------


def test_intervals_contain_the_figures_of_whole_rows_and_shrink_with_k(
    trace: gpu.Trace, exact: gpu.Replay, tmp_path: Path
) -> None:
    widths = [certified(gpu.replay(gpu.truncate_trace(trace, tmp_path / str(k), k), SPECS), exact) for k in (4, 16, V)]
    for wide, narrow in itertools.pairwise(widths):
        assert all(narrow[name] <= wide[name] + 1e-8 for name in wide)
        assert sum(math.isinf(width) for width in narrow.values()) <= sum(math.isinf(width) for width in wide.values())
    assert max(widths[-1].values()) < 1e-7


def test_a_tail_of_whole_rows_is_only_summed(trace: gpu.Trace, exact: gpu.Replay) -> None:
    wide, narrow = (certified(gpu.replay(trace, SPECS, tail=tail), exact) for tail in (0.1, 0.0))
    assert wide["lenience:l=0.5", "kl"] > 1e-6
    assert max(narrow.values()) < 1e-7


def test_tokens_per_call_of_lossless_verification_are_known_from_the_draft_tokens_alone(
    trace: gpu.Trace, exact: gpu.Replay, tmp_path: Path
) -> None:
    found = gpu.replay(gpu.truncate_trace(trace, tmp_path / "top", 3), ["lossless"])["lossless"]
    expected = exact["lossless"]["tokens_per_call"]
    assert found["tokens_per_call"].certified == pytest.approx((expected.mean, expected.mean), abs=1e-7)
    assert found["tokens_per_call"].low == pytest.approx(expected.low, abs=1e-7)
    assert found["tokens_per_call"].high == pytest.approx(expected.high, abs=1e-7)


def test_greedy_rows_are_known_from_one_token(tmp_path: Path) -> None:
    whole = traces.write(tmp_path / "whole", 6, v=V, temperature=0)
    exact = gpu.replay(whole, ["lossless", "lenience:l=0.5"], dtype="float64", modes=False)
    assert exact.settings.temperature == 0
    top = gpu.truncate_trace(whole, tmp_path / "top", 2)
    assert max(certified(gpu.replay(top, ["lossless", "lenience:l=0.5"]), exact).values()) < 1e-7


def test_intervals_over_prompts_allow_for_what_is_unseen(trace: gpu.Trace, exact: gpu.Replay, tmp_path: Path) -> None:
    found = gpu.replay(gpu.truncate_trace(trace, tmp_path / "top", 8), ["lossless", "lenience:l=0.5"])
    for name in ("tv", "acceptance", "gain_over_lossless"):
        ours, whole = found["lenience:l=0.5"][name], exact["lenience:l=0.5"][name]
        assert ours.low <= ours.certified[0]
        assert ours.high >= ours.certified[1]
        assert ours.low <= whole.mean <= ours.high


def test_files_say_what_figures_lie_between_and_why_some_are_unbounded(trace: gpu.Trace, tmp_path: Path) -> None:
    top = gpu.truncate_trace(trace, tmp_path / "top", 8)
    replayed = gpu.replay(top, ["lossless", "cos:w=0.5"], out=tmp_path / "out")
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    figure = document["rules"][1]["figures"]["tv"]
    assert figure["certified"] == list(replayed["cos:w=0.5"]["tv"].certified)
    assert document["rules"][1]["figures"]["max_ratio"]["certified"][1] == "inf"
    row = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()[1]
    assert [row["tv_certified_low"], row["tv_certified_high"]] == figure["certified"]
    assert any("max out/p is certified from below only" in note for note in replayed["cos:w=0.5"].notes)
    assert any("holds the 8 most probable tokens" in note for note in replayed.notes)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<small>certified 0" in report


def test_exact_replay_says_nothing_of_certified_intervals(exact: gpu.Replay) -> None:
    assert exact["lossless"]["tv"].certified is None
    assert not any("ertified" in note for note in exact.notes)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"temperature": 0.7}, InvalidInput, "temperature=0.7; the probabilities of this top-k trace are at"),
        ({"top_p": 0.9}, InvalidInput, "top_p: a top-k trace cannot be warped"),
        ({"tail": 0.1}, InvalidInput, "is a top-k trace"),
        ({"modes": ["argmax_flip"]}, InvalidInput, "failure modes are looked for only where every token"),
        ({"rules": ["fly:theta=0.3,window=2"]}, NotReadable, "a block rule needs every token"),
        ({"rules": ["mentored"]}, NotReadable, "mentored.* cannot be replayed where tokens are unseen: it asks for"),
    ],
)
def test_what_a_top_k_trace_does_not_determine_is_refused(
    trace: gpu.Trace, tmp_path: Path, asked: dict[str, Any], error: type[Exception], message: str
) -> None:
    top = gpu.truncate_trace(trace, tmp_path / "top", 8)
    with pytest.raises(error, match=message):
        gpu.replay(top, **{"rules": ["lossless"]} | asked)


def test_a_tail_is_a_share(trace: gpu.Trace) -> None:
    with pytest.raises(InvalidInput, match=r"tail=-0.1 is outside \[0, 1\]"):
        gpu.replay(trace, ["lossless"], tail=-0.1)


# -- a real pair -------------------------------------------------------------------------------------------------------


@pytest.mark.bundled
@pytest.mark.slow
def test_every_row_of_a_real_pair_lies_between_and_intervals_shrink_with_k(tmp_path: Path) -> None:
    options = {"chat": True, "draft_length": 4, "blocks": 3, "continuation": 12, "device": "cpu"}
    trace = gpu.open_trace(gpu.capture("smollm2-135m", "layerskip:10,20", None, out=tmp_path / "trace", **options))
    settings = ReplaySettings(temperature=1.0, dtype="float64")
    for spec in ("lossless", "lenience:l=0.5", "cos:w=0.3", "min-p:base=0.1", "typical"):
        rule = ft.rule(spec)
        exact = [measure(rule, *settings.pair(block), block.tokens) for block in trace]
        widths = []
        for k in (8, 64, 256):
            cells = cells_of([top_k_of(block, k, temperature=1.0) for block in trace], settings)
            found = rule_bounds(rule, cells, trace.draft_length)
            for name, (low, high) in found.items():
                value = torch.cat([of_block[name] for of_block in exact])
                rounding = 1e-12 * (1 + value.abs().nan_to_num(posinf=0.0))
                assert bool(((low <= value + rounding) & (value <= high + rounding)).all()), (spec, k, name)
            widths.append({name: float((high - low).nan_to_num(0.0).mean()) for name, (low, high) in found.items()})
        for wide, narrow in itertools.pairwise(widths):
            assert all(narrow[name] <= wide[name] + 1e-8 for name in wide), (spec, wide, narrow)
