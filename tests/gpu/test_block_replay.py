"""Block rules on traces: figures on a second route, planted endings, cut blocks, levels mixed on one trace."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pyarrow import parquet

import fly_theory as ft
import gpu
from fly_theory.blocks import Block, BlockRule
from fly_theory.errors import InvalidInput, UnknownName
from fly_theory.files import json_text
from gpu import TraceBlock
from gpu.replaying.findings import findings
from gpu.replaying.on_blocks.findings import block_findings
from gpu.replaying.on_blocks.measures import BLOCK_FIGURES
from gpu.replaying.plan import Plan
from gpu.replaying.resolving import from_spec
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.table import summary
from gpu.replaying.tallying import Tallies, tally_blocks
from tests.gpu import replay_traces as traces

K, V = 8, 24
BLOCK_SPECS = (
    "block",
    "hierarchical",
    "hierarchical-naive",
    "hierarchical-mincap",
    "hierarchical-uncapped:l=0.5",
)
FLY_SPECS = (
    "fly:theta=0.6,window=2",
    "fly:theta=2,window=2",
    "fly:theta=0.4,window=0",
    "fly-ceiling:theta=0.5,window=1,floor=0.05",
    "fly-released:theta=0.6,window=3",
    "fly-released:theta=0.9,window=2,no_window=true",
)
CAUSES = {"gate": "lost_to_gate", "window": "lost_to_window", "boundary": "lost_to_boundary"}


def _flat(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
    """Rows of every entropy: some all but certain, some all but uniform."""
    target *= torch.linspace(0.1, 3, len(target))[torch.randperm(len(target), generator=_seeded(number))][:, None]


def _seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    folder = tmp_path_factory.mktemp("greedy") / "trace"
    return gpu.open_trace(traces.write(folder, 24, k=K, prompts=5, temperature=0, edit=_flat))


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("sampled") / "trace", 24, k=K, prompts=5))


# -- block rules that read p and q -------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", BLOCK_SPECS)
def test_lengths_are_those_of_the_closed_form_in_numpy(sampled: gpu.Trace, spec: str) -> None:
    result = gpu.replay(sampled, [spec], dtype="float64")[spec]
    rule, laws = ft.block_rule(spec), []
    for block in sampled:
        rows = Block(
            np.stack(traces.softmax(block.target_logits)),
            np.stack(traces.softmax(block.draft_logits)),
            block.tokens.numpy(),
        )
        laws.append(rule.length_law(rows))
    law = np.mean(laws, axis=0)
    kept = law @ np.arange(K + 1)
    assert result["accepted_per_call"].mean == pytest.approx(kept, rel=1e-12)
    assert result["whole_blocks"].mean == pytest.approx(law[-1], rel=1e-12)
    if not rule.completes_block:
        assert result["tokens_per_call"].mean == pytest.approx(1 + kept, rel=1e-12)
        return
    # After n < K kept drafts all K tokens are out, the first redrawn one on the call that judged the drafts.
    emitted = sum(law[n] * (K + (n == K)) for n in range(K + 1))
    calls = sum(law[n] * max(1, K - n) for n in range(K + 1))
    assert result["tokens_per_call"].mean == pytest.approx(emitted / calls, rel=1e-12)


def test_the_lifted_lossless_rule_is_the_token_level_one(sampled: gpu.Trace) -> None:
    replayed = gpu.replay(sampled, ["lossless", ft.block_rule("lenience:l=0.5"), "block", f"lossless@{K}"])
    lifted, blockwise = replayed[f"lossless@{K}"], replayed["block"]
    assert lifted["tokens_per_call"].mean == pytest.approx(replayed["lossless"]["tokens_per_call"].mean, rel=1e-6)
    assert lifted["gain_over_lossless"].mean == pytest.approx(0, abs=1e-6)
    assert blockwise["gain_over_lossless"].mean == pytest.approx(
        blockwise["tokens_per_call"].mean - replayed["lossless"]["tokens_per_call"].mean, rel=1e-6
    )
    assert blockwise["gain_over_lossless"].mean >= 0
    assert replayed.block_rules[0]["tokens_per_call"].mean > lifted["tokens_per_call"].mean
    assert blockwise["gate_open"] is None


# -- FLy, from its definition ------------------------------------------------------------------------------------------


def _entropy(spec: str, p: np.ndarray) -> float:
    if spec.startswith("fly-released"):
        return -sum(x * np.log(x) for x in sorted(p)[-3:])
    return -sum(x * np.log(x) for x in p if x > 0) / np.log(len(p))


def _naive(spec: str, block: TraceBlock) -> Counter[str]:
    """One block of greedy drafts, mismatch by mismatch, as the paper and the released code say it."""
    rule = ft.block_rule(spec)
    released = spec.startswith("fly-released")
    following, last = rule.window - released, K - rule.window
    if released and rule.no_window:
        following, last = 0, K
    rows = traces.softmax(block.target_logits)
    hits = [int(np.argmax(p)) == x for p, x in zip(rows, block.tokens.tolist(), strict=False)]
    found = Counter(mismatches=hits.count(False), strict=([*hits, False]).index(False))
    gates = []
    for j in range(K):
        gates.append(_entropy(spec, rows[j]) >= rule.theta)
        if spec.startswith("fly-ceiling"):
            gates[j] &= rows[j][block.tokens[j]] >= rule.floor
    found["open"] = sum(gate and not hit for gate, hit in zip(gates, hits, strict=True))
    for j in range(K):
        if hits[j]:
            found["kept"] += 1
            continue
        found["met"] += 1
        clear = all(hits[j + 1 : j + 1 + following])
        if not gates[j]:
            found["gate"] += 1
            break
        if j + 1 > last:
            found["boundary"] += 1
            found["boundary only"] += clear
            break
        if not clear:
            found["window"] += 1
            break
        found["kept"] += 1
        found["forgiven"] += 1
    return found


@pytest.mark.parametrize("spec", FLY_SPECS)
def test_fly_is_what_its_definition_counts(greedy: gpu.Trace, spec: str) -> None:
    result = gpu.replay(greedy, [spec], dtype="float64")[spec]
    total: Counter[str] = Counter()
    for block in greedy:
        total.update(_naive(spec, block))
    rounds = len(greedy)
    ended = total["gate"] + total["window"] + total["boundary"]
    expected = {
        "tokens_per_call": 1 + total["kept"] / rounds,
        "strict_tokens_per_call": 1 + total["strict"] / rounds,
        "gain_over_strict": (total["kept"] - total["strict"]) / rounds,
        "match_rate": 1 - total["mismatches"] / (K * rounds),
        "gate_open": total["open"] / total["mismatches"],
        "gate_open_met": (total["met"] - total["gate"]) / total["met"],
        "forgiven": total["forgiven"] / rounds,
        "whole_blocks": 1 - ended / rounds,
        "lost_to_boundary_only": total["boundary only"] / ended,
    } | {figure: total[cause] / ended for cause, figure in CAUSES.items()}
    found = {name: result[name].mean for name in expected}
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert 0 < total["strict"] < K * rounds
    assert total["mismatches"] > 30


def test_both_gates_are_read_at_the_theta_of_every_setting(greedy: gpu.Trace) -> None:
    replayed = gpu.replay(greedy, ["fly:theta=0.6,window=2", "fly-released:theta=0.6,window=3"], dtype="float64")
    paper, released = replayed.block_rules
    for name in ("paper_gate_open", "released_gate_open"):
        assert paper[name].mean == released[name].mean
    assert paper["gate_open"].mean == paper["paper_gate_open"].mean
    assert released["gate_open"].mean == paper["released_gate_open"].mean != paper["gate_open"].mean


def test_with_sampled_matches_the_endings_are_what_decided_rounds_average_to(sampled: gpu.Trace) -> None:
    """20,000 decided rounds a block. Means of 24 x 20,000: 5 standard errors, false alarm 6e-7."""
    spec = "fly-released:theta=0.8,window=3,temperature=0.7"
    result, rule, draws = gpu.replay(sampled, [spec])[spec], ft.block_rule(spec), 20_000
    rng = np.random.default_rng(3)
    kept, forgiven, window = [], [], []
    for block in sampled:
        target = np.stack(traces.softmax(block.target_logits / 0.7))
        rows = Block(target, np.eye(V)[block.tokens], block.tokens.numpy())
        decided = rule.trace(rows, uniforms=rng.random((draws, K)))
        kept.append(decided.kept.sum(-1))
        forgiven.append(decided.forgiven.sum(-1))
        window.append((decided.cause == ft.blocks.fly.Cause.WINDOW).sum(-1))
    half = 5 * np.std(kept) / np.sqrt(np.size(kept))
    assert result["accepted_per_call"].mean == pytest.approx(np.mean(kept), abs=half)
    half = 5 * np.std(forgiven) / np.sqrt(np.size(forgiven))
    assert result["forgiven"].mean == pytest.approx(np.mean(forgiven), abs=half)
    half = 5 * np.std(window) / np.sqrt(np.size(window))
    rejections = 1 - result["whole_blocks"].mean
    assert result["lost_to_window"].mean * rejections == pytest.approx(np.mean(window), abs=half)


# -- planted endings ---------------------------------------------------------------------------------------------------


def _planted(misses: set[int], *, certain: bool = False) -> Iterator[TraceBlock]:
    """Greedy blocks of K drafts that miss at these positions, on rows of high entropy or of none."""
    for number in range(3):
        target = torch.zeros(K + 1, V)
        target[:, 0] = 60.0 if certain else 0.1
        tokens = torch.tensor([1 if j in misses else 0 for j in range(K)])
        draft = torch.nn.functional.one_hot(tokens, V).float()
        yield TraceBlock(target, draft, tokens, prompt=number)


@pytest.mark.parametrize(
    ("misses", "certain", "kept", "lost"),
    [
        ({2}, False, K, {}),
        ({2}, True, 2, {"lost_to_gate": 1}),
        ({2, 4}, False, 2, {"lost_to_window": 1}),
        ({0, 6}, False, 6, {"lost_to_boundary": 1, "lost_to_boundary_only": 1}),
        ({6, 7}, False, 6, {"lost_to_boundary": 1, "lost_to_boundary_only": 0}),
    ],
    ids=["forgiven", "dead gate", "window kill", "boundary loss", "boundary and another mismatch"],
)
def test_a_planted_ending_is_named(
    tmp_path: Path, misses: set[int], certain: bool, kept: int, lost: dict[str, float]
) -> None:
    source = {"settings": {"temperature": 0.0}}
    folder = gpu.write_trace(tmp_path / "trace", _planted(misses, certain=certain), source=source)
    result = gpu.replay(folder, ["fly:theta=0.5,window=3"]).block_rules[0]
    assert result["accepted_per_call"].mean == kept
    names = ("lost_to_gate", "lost_to_window", "lost_to_boundary", "lost_to_boundary_only")
    if not lost:
        assert all(result[name] is None for name in names)
    else:
        assert [result[name].mean for name in names] == [lost.get(name, 0) for name in names]


# -- draft length, merging, files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["fly:theta=0.6,window=2", "block", "lenience:l=0.5"])
def test_a_shorter_draft_is_a_trace_of_shorter_blocks(sampled: gpu.Trace, tmp_path: Path, spec: str) -> None:
    short = 3
    blocks = [
        TraceBlock(b.target_logits[: short + 1], b.draft_logits[:short], b.tokens[:short], b.context, b.prompt)
        for b in sampled
    ]
    folder = gpu.write_trace(tmp_path / "trace", blocks, source=sampled.manifest["source"])
    cut, whole = gpu.replay(sampled, [f"{spec}@{short}"]), gpu.replay(folder, [ft.block_rule(spec)])
    assert cut.block_rules[0].draft_length == short
    assert cut.block_rules[0].spec == f"{whole.block_rules[0].spec}@{short}"
    assert cut.block_rules[0].figures == whole.block_rules[0].figures


def test_tallies_of_parts_merge_to_that_of_the_whole_in_any_order(sampled: gpu.Trace) -> None:
    settings = tuple(from_spec(spec) for spec in (*BLOCK_SPECS, *FLY_SPECS, "lossless@3"))
    plan = Plan((ft.rule("lossless"),), ReplaySettings(temperature=1.0), block_rules=settings)
    parts = [tally_blocks([sampled[i] for i in part], plan) for part in ([4, 0, 9], range(10, 24))]
    parts += [tally_blocks([sampled[i]], plan) for i in (8, 1, 2, 3, 5, 6, 7)]
    random.Random(0).shuffle(parts)
    merged = Tallies.empty(plan)
    for part in parts:
        merged.merge(part)
    assert merged == tally_blocks(sampled, plan)


def test_the_files_hold_both_levels(greedy: gpu.Trace, tmp_path: Path) -> None:
    replayed = gpu.replay(greedy, ["lossless", "fly:window=2", "fly:window=2@5"], out=tmp_path / "out")
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert document == json.loads(json_text(replayed.to_json()))
    assert [rule["rule"] for rule in document["block_rules"]] == ["fly:theta=0.3,window=2", "fly:theta=0.3,window=2@5"]
    assert [rule["draft_length"] for rule in document["block_rules"]] == [K, 5]
    figure = document["block_rules"][0]["figures"]["tokens_per_call"]
    assert figure["interval"][0] <= figure["mean"] <= figure["interval"][1]
    rows = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert [(row["level"], row["draft_length"]) for row in rows] == [("token", K), ("block", K), ("block", 5)]
    assert rows[2]["tokens_per_call"] == replayed.block_rules[1]["tokens_per_call"].mean
    assert rows[1]["lost_to_gate_low"] == replayed.block_rules[0]["lost_to_gate"].low
    assert rows[0]["lost_to_gate"] is None
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "What FLy does at mismatches" in page
    assert "fly:<wbr>theta=0.3,<wbr>window=2@5" in page


def test_the_report_answers_in_sentences(greedy: gpu.Trace, tmp_path: Path) -> None:
    specs = ["lossless", "fly:theta=0.6,window=2", "fly:theta=2,window=2", "fly:theta=0.4,window=2@5", "block"]
    replayed = gpu.replay(greedy, specs, sweeps=["fly@1:8:1"])
    said = list(findings(replayed))
    loose, strict = replayed.block_rules[:2]

    def told(start: str) -> str:
        return next(sentence for sentence in said if sentence.startswith(start))

    assert f"makes {strict['tokens_per_call'].mean:.2f} [" in told("Strict verification")
    assert f"{loose.label} {loose['gain_over_strict'].mean:.2f} [" in told("More than strict")
    assert strict.label not in told("More than strict")
    gates = told("Share of the mismatches")
    assert f"{loose.label} {100 * loose['gate_open'].mean:.1f} % [" in gates
    assert f"{strict.label} 0 % [0.0, 0.0]" in gates
    assert "@5" not in " ".join(block_findings(replayed))
    assert f"{loose.label} {100 * loose['lost_to_window'].mean:.1f} % [" in told("Of all rejections, ended by another")
    assert told("Tokens per call more than token by token").startswith(
        "Tokens per call more than token by token: block 0"
    )
    assert "at 1 to" in told("Over fly@1:8:1")
    assert not any(sentence.startswith("No setting makes more") for sentence in said)


def test_the_table_has_the_columns_that_some_rule_fills(greedy: gpu.Trace) -> None:
    def headings(*specs: str) -> set[str]:
        replayed = gpu.replay(greedy, specs, modes=False)
        return {column.header.plain.strip().replace("\n", " ") for column in summary(replayed)[-2].columns}

    assert headings("block") == {"block rule", "tokens per call", "95 %"}
    assert headings("lossless", "block") == {"block rule", "tokens per call", "95 %", "more than lossless"}
    assert {"more than strict", "gate open", "rejected: gate", "window", "boundary"} < headings("fly:window=2")


def test_block_rules_may_come_alone(greedy: gpu.Trace, tmp_path: Path) -> None:
    replayed = gpu.replay(greedy, ["fly"], out=tmp_path / "out")
    assert replayed.rules == ()
    assert "tokens per call" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


# -- what the trace identifies -----------------------------------------------------------------------------------------


def test_fly_is_the_same_at_every_temperature_of_the_replay(greedy: gpu.Trace) -> None:
    specs = ["lossless", "fly:theta=0.6,window=2", "fly-released:theta=0.6,window=3", "block"]
    cold, warm = gpu.replay(greedy, specs), gpu.replay(greedy, specs, temperature=0.8, top_p=0.9)
    for spec in specs[1:3]:
        gains = {"gain_over_lossless"}
        assert {n: f for n, f in cold[spec].figures.items() if n not in gains} == {
            n: f for n, f in warm[spec].figures.items() if n not in gains
        }
        # Lossless verification at temperature 0.8 samples another target than FLy's argmax.
        assert warm[spec]["gain_over_lossless"] is None
        assert cold[spec]["gain_over_lossless"].mean == pytest.approx(cold[spec]["gain_over_strict"].mean, abs=1e-6)
    for name in ("tokens_per_call", "accepted_per_call", "gain_over_lossless"):
        assert warm["block"][name] is None
        assert cold["block"][name].mean == pytest.approx(cold["lossless"][name].mean, abs=1e-6)


def test_notes_say_on_which_drafts_fly_was_judged(greedy: gpu.Trace, sampled: gpu.Trace) -> None:
    assert any("drafts of this trace are greedy" in note for note in gpu.replay(greedy, ["fly"]).notes)
    assert any("drawn at temperature 1" in note for note in gpu.replay(sampled, ["fly"]).notes)
    assert not any("FLy" in note for note in gpu.replay(sampled, ["block"]).notes)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ([f"fly@{K + 1}"], InvalidInput, rf"draft_length={K + 1}; blocks of this trace have 1\.\.{K} drafts"),
        (["fly@0"], InvalidInput, "draft_length=0"),
        (["fly", "fly:theta=0.3,window=6"], InvalidInput, "fly:theta=0.3,window=6 twice"),
        (["flyy"], UnknownName, "Did you mean 'fly'"),
        (["k-seq"], UnknownName, "tree-level rule"),
    ],
)
def test_bad_block_rules(greedy: gpu.Trace, rules: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gpu.replay(greedy, rules)


def test_a_block_rule_from_a_file_is_found(greedy: gpu.Trace, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from fly_theory.blocks.fly import Fly\nmine = Fly(theta=2, window=1)\n", encoding="utf-8")
    replayed = gpu.replay(greedy, [f"{file}:mine", "lossless"])
    assert isinstance(replayed.block_rules[0].setting.rule, BlockRule)
    assert replayed.block_rules[0]["gain_over_strict"].mean == 0


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("fly", "fly:theta=0.3,window=6"),
        ("fly-released:no_window=true@4", "fly-released:theta=0.3,window=6,no_window=true@4"),
        ("fly-released:temperature=0.5", "fly-released:theta=0.3,window=6,temperature=0.5"),
        ("block@3", "block@3"),
        ("lossless@2", "lossless@2"),
        ("lenience:l=0.5@2", "lenience:l=0.5@2"),
    ],
)
def test_labels_leave_out_what_goes_without_saying(spec: str, label: str) -> None:
    assert from_spec(spec).label == label


def test_the_document_of_a_block_rule(sampled: gpu.Trace) -> None:
    document = gpu.replay(sampled, ["fly", "block"], modes=False).to_json()
    assert document["schema"] == "fly-theory-replay/1"
    assert document["rules"] == document["sweeps"] == []
    for found in document["block_rules"]:
        assert set(found) >= {"rule", "draft_length", "figures"}
        assert set(found["figures"]) == {*BLOCK_FIGURES, "gain_over_lossless"}
        for figure in filter(None, found["figures"].values()):
            assert set(figure) >= {"mean", "interval"}
            assert figure["interval"][0] <= figure["mean"] <= figure["interval"][1]
    fly, block = (found["figures"] for found in document["block_rules"])
    assert fly["gate_open"] is not None
    assert {name for name, figure in block.items() if figure is not None} == {
        "tokens_per_call",
        "accepted_per_call",
        "whole_blocks",
    }


@pytest.mark.cuda
def test_cuda_agrees_with_the_cpu(sampled: gpu.Trace) -> None:
    specs = [*BLOCK_SPECS, *FLY_SPECS, "lossless@3"]
    here, there = (gpu.replay(sampled, specs, device=device) for device in ("cpu", "cuda"))
    for ours, theirs in zip(here.block_rules, there.block_rules, strict=True):
        for name, figure in ours.figures.items():
            if figure is not None:
                assert theirs[name].mean == pytest.approx(figure.mean, rel=1e-5, abs=1e-5), (ours.spec, name)
