"""Replay: every aggregate recomputed by hand, torch against numpy, independence of sharding, what is not identified."""

import math
import random
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import fly_theory as ft
import gpu
from fly_theory import divergence
from fly_theory.errors import InvalidInput, NotReadable, ParameterError, TraceError, UnknownName, ZeroResidualError
from fly_theory.files import json_text
from fly_theory.interpreters import Interpreter
from fly_theory.rules.base import Rule, Verdict
from gpu import TraceBlock
from gpu.replaying.measures import Judged, measure
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tallying import Tallies, tally_blocks
from tests.gpu import replay_traces as traces

DISTANCES = ("tv", "kl", "reverse_kl", "js", "max_ratio", "waste", "argmax_flip", "outside_support")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("replay") / "trace", 15))


def _means(rule: Rule, trace: gpu.Trace, matched: Any = None) -> dict[str, float]:
    found = [traces.figures(rule, block, matched) for block in trace]
    return {name: float(np.mean([value for row in found for value in row[name]])) for name in found[0]}


# -- the figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_every_mean_is_that_of_a_loop_over_tokens(trace: gpu.Trace, dtype: str, tolerance: float) -> None:
    replayed = gpu.replay(trace, traces.SPECS, dtype=dtype)
    for result in replayed:
        expected = _means(result.rule, trace)
        found = {name: result[name].mean for name in expected}
        assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), result.spec
        assert result["tokens_per_call"].mean == pytest.approx(1 + expected["accepted_per_call"], rel=tolerance)


def test_truncation_rules_are_measured_against_the_truncated_target(trace: gpu.Trace) -> None:
    def truncated(p: np.ndarray) -> np.ndarray:
        kept = np.where(p >= 0.2 * p.max(), p, 0)
        return kept / kept.sum()

    replayed = gpu.replay(trace, ["lossless", "min-p:base=0.2", "truncated-min-p:base=0.2"], dtype="float64")
    accept_set, fair = replayed["min-p:base=0.2"], replayed["truncated-min-p:base=0.2"]
    assert accept_set.matched is not None
    expected = _means(accept_set.rule, trace, truncated)
    assert {name: accept_set.matched[name].mean for name in DISTANCES} == pytest.approx(
        {name: expected[name] for name in DISTANCES}, rel=1e-12, abs=1e-12
    )
    # The fair baseline of both is the truncated rule itself, which is lossless for p_A.
    for result in (accept_set, fair):
        assert result.baseline is not None
        for name in ("acceptance", "accepted_per_call", "tokens_per_call", "tv"):
            assert result.baseline[name].mean == pytest.approx(fair[name].mean, rel=1e-12)
    assert fair.matched is not None
    assert fair.matched["tv"].largest == pytest.approx(0, abs=1e-12)
    assert replayed["lossless"].matched is None


def test_the_pair_itself_is_measured_as_accepting_everything(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, ["cos:w=1"], dtype="float64")
    for name in DISTANCES:
        assert replayed.draft[name].mean == pytest.approx(replayed["cos:w=1"][name].mean, rel=1e-12, abs=1e-12)


def test_gain_is_the_difference_from_lossless(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, ["lossless", "lenience:l=0.5"])
    lossless, lenient = replayed["lossless"], replayed["lenience:l=0.5"]
    assert lenient["gain_over_lossless"].mean == pytest.approx(
        lenient["tokens_per_call"].mean - lossless["tokens_per_call"].mean, rel=1e-12
    )
    assert lossless["gain_over_lossless"].mean == 0
    assert gpu.replay(trace, ["lenience:l=0.5"])["lenience:l=0.5"]["gain_over_lossless"] is None


def test_block_efficiency_covers_the_law_it_estimates(tmp_path: Path) -> None:
    """One context repeated: the block length is known in closed form. False alarm of the widened interval 1e-5."""
    logits = 2 * torch.randn(2, 12, generator=torch.Generator().manual_seed(1))
    p, q = traces.softmax(logits)
    survives = float(ft.rule("lenience:l=0.5").acceptance(p, q))
    expected = 1 + sum(survives**i for i in range(1, traces.K + 1))

    def repeat(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        target[:], draft[:] = logits[0], logits[1]

    folder = traces.write(tmp_path / "trace", 600, v=12, prompts=600, blocks_per_shard=600, edit=repeat)
    found = gpu.replay(folder, ["lenience:l=0.5"])["lenience:l=0.5"]["tokens_per_call"]
    half = (found.high - found.low) / 2 / 1.96 * 4.42
    assert found.mean == pytest.approx(expected, abs=half)
    assert half < 0.3


# -- torch and numpy ---------------------------------------------------------------------------------------------------


def _specs_of_every_rule() -> list[str]:
    specs = []
    for name in ft.rules(level="token"):
        cls = ft.registry.rule_class(name)
        values = {p.name: p.typical[0] if p.required else p.default for p in ft.parameters.parameters(cls)}
        specs.append(cls(**values).spec)
    return specs


@pytest.mark.parametrize("spec", sorted({*traces.SPECS, *_specs_of_every_rule()}))
def test_torch_in_float32_agrees_with_the_closed_form_row_by_row(spec: str) -> None:
    rule = ft.rule(spec)
    if Interpreter.TORCH in rule.unreadable:
        pytest.skip(rule.unreadable[Interpreter.TORCH])
    block = next(traces.blocks(1, k=6, v=3000, seed=5))
    settings = ReplaySettings(temperature=1.0)
    with torch.inference_mode():
        found = {name: x.double().numpy() for name, x in measure(rule, *settings.pair(block), block.tokens).items()}
    p, q = np.stack(traces.softmax(block.target_logits[:6])), np.stack(traces.softmax(block.draft_logits))
    out = rule.induced(p, q)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(found["acceptance"], rule.acceptance(p, q), **close)
    np.testing.assert_allclose(found["tv"], divergence.total_variation(p, out), **close)
    np.testing.assert_allclose(found["kl"], divergence.kl(p, out), **close)
    np.testing.assert_allclose(found["reverse_kl"], divergence.reverse_kl(p, out), **close)
    np.testing.assert_allclose(found["js"], divergence.js(p, out), **close)
    np.testing.assert_allclose(found["waste"], ft.waste(p, q, rule), **close)
    keep = rule.keep(p, q, block.tokens.numpy())
    np.testing.assert_allclose(found["accepted_per_call"], [np.cumprod(keep).sum()], **close)


# -- sharding, order, memory -------------------------------------------------------------------------------------------


def test_sharding_does_not_show(tmp_path: Path) -> None:
    documents = []
    for blocks_per_shard in (1, 7, 15):
        trace = gpu.open_trace(traces.write(tmp_path / f"{blocks_per_shard}", 15, blocks_per_shard=blocks_per_shard))
        document = gpu.replay(trace, traces.SPECS).to_json()
        assert document.pop("provenance")["trace"]["sha256"] == trace.sha256
        documents.append(json_text(document))
    assert documents[0] == documents[1] == documents[2]


def test_tallies_of_parts_merge_to_that_of_the_whole_in_any_order(trace: gpu.Trace) -> None:
    plan = Plan(tuple(ft.rule(spec) for spec in traces.SPECS), ReplaySettings(temperature=1.0))
    parts = [tally_blocks([trace[i] for i in part], plan) for part in ([4, 0, 9], range(10, 15))]
    parts += [tally_blocks([trace[i]], plan) for i in (8, 1, 2, 3, 5, 6, 7)]
    random.Random(0).shuffle(parts)
    merged = Tallies.empty(plan)
    for part in parts:
        merged.merge(part)
    assert merged == tally_blocks(trace, plan)


@dataclass(frozen=True)
class MassOn:
    """Output mass on some tokens, and whether the draft token is among them."""

    tokens: tuple[int, ...]

    def __call__(self, judged: Judged) -> dict[str, torch.Tensor]:
        drafted = sum((judged.tokens == token).to(judged.out.dtype) for token in self.tokens)
        return {"mass": judged.out[:, list(self.tokens)].sum(-1), "drafted": drafted}


def test_further_values_are_counted_with_the_measures_of_every_rule(trace: gpu.Trace) -> None:
    rules = (ft.rule("lossless"), ft.rule("cos:w=0.3"))
    settings = ReplaySettings(temperature=1.0, dtype="float64")
    tallies = tally_blocks(trace, Plan(rules, settings, further=(MassOn((2, 5)),)))
    for rule, tally in zip(rules, tallies.rules, strict=True):
        expected = drafted = 0.0
        for block in trace:
            for p, q in zip(traces.softmax(block.target_logits), traces.softmax(block.draft_logits), strict=False):
                expected += rule.induced(p, q)[[2, 5]].sum()
            drafted += sum(token in (2, 5) for token in block.tokens.tolist())
        totals = tally.prompts.values()
        assert float(sum(total["mass"].sum for total in totals)) == pytest.approx(expected, rel=1e-12)
        assert sum(total["drafted"].sum for total in totals) == drafted > 0
        assert "tv" in tally.measures


def test_no_more_than_two_blocks_are_alive() -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    def watched() -> Iterator[TraceBlock]:
        for block in traces.blocks(8):
            alive.append(weakref.ref(block.target_logits))
            assert sum(ref() is not None for ref in alive) <= 2
            yield block
            del block

    tally_blocks(watched(), Plan((ft.rule("lossless"),), ReplaySettings(temperature=1.0)))
    assert len(alive) == 8


# -- the law of the drafts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawn_at", "settings", "reason"),
    [
        (1.0, {"temperature": 0.7}, "drawn at temperature 1, and this replay is at temperature 0.7"),
        (1.0, {"top_p": 0.9}, "drawn at temperature 1 without warpers, and this replay applies top_p=0.9"),
        (0.0, {"temperature": 1.0}, "taken greedily, and this replay is at temperature 1"),
        (1.0, {"temperature": 0.0}, "drawn at temperature 1, and this replay is at temperature 0"),
    ],
)
def test_block_efficiency_is_withheld_when_drafts_were_drawn_from_another_law(
    tmp_path: Path, drawn_at: float, settings: dict[str, float], reason: str
) -> None:
    folder = traces.write(tmp_path / "trace", 6, temperature=drawn_at)
    replayed = gpu.replay(folder, ["lossless", "min-p:base=0.2"], **settings)
    for result in replayed:
        for name in ("tokens_per_call", "accepted_per_call", "gain_over_lossless"):
            assert result[name] is None
        assert result["acceptance"].mean > 0
    baseline = replayed["min-p:base=0.2"].baseline
    assert baseline is not None
    assert baseline["tokens_per_call"] is None
    assert any("not identified" in note and reason in note for note in replayed.notes)


def test_block_efficiency_is_withheld_when_the_trace_does_not_say_how_drafts_were_drawn(tmp_path: Path) -> None:
    folder = gpu.write_trace(tmp_path / "trace", traces.blocks(6))
    replayed = gpu.replay(folder, ["lossless"])
    assert replayed["lossless"]["tokens_per_call"] is None
    assert replayed.settings.temperature == 1
    assert any("does not say at which temperature" in note for note in replayed.notes)


def test_block_efficiency_is_withheld_when_drafts_are_impossible_under_their_law(tmp_path: Path) -> None:
    wrong = [
        TraceBlock(block.target_logits, block.draft_logits, (block.tokens + 1) % traces.V, prompt=block.prompt)
        for block in traces.blocks(4, temperature=0)
    ]
    folder = gpu.write_trace(tmp_path / "trace", wrong, source={"settings": {"temperature": 0.0}})
    replayed = gpu.replay(folder, ["lossless"])
    assert replayed["lossless"]["tokens_per_call"] is None
    assert any("16 of the draft tokens have no mass" in note for note in replayed.notes)


def test_greedy_drafts_are_replayed_greedily(tmp_path: Path) -> None:
    trace = gpu.open_trace(traces.write(tmp_path / "trace", 9, temperature=0))
    replayed = gpu.replay(trace, ["lossless"])
    assert replayed.settings.temperature == 0
    lengths = []
    for block in trace:
        hits = (block.target_logits[: traces.K].argmax(-1) == block.tokens).tolist()
        lengths.append(hits.index(False) if False in hits else traces.K)
    assert replayed["lossless"]["accepted_per_call"].mean == pytest.approx(np.mean(lengths))


def test_warpers_apply_to_both_models_alike(trace: gpu.Trace) -> None:
    settings = {"temperature": 0.8, "top_k": 5, "min_p": 0.02}
    replayed = gpu.replay(trace, ["lenience:l=0.5"], dtype="float64", **settings)
    tvs = []
    for block in trace:
        p, q = (
            np.asarray(ft.warp(logits.double().numpy(), **settings))
            for logits in (block.target_logits[: traces.K], block.draft_logits)
        )
        tvs += divergence.total_variation(p, ft.rule("lenience:l=0.5").induced(p, q)).tolist()
    assert replayed["lenience:l=0.5"]["tv"].mean == pytest.approx(np.mean(tvs), rel=1e-12)
    assert replayed.settings.warpers == {"top_k": 5, "min_p": 0.02}


# -- infinities, worst positions, notes --------------------------------------------------------------------------------


def test_infinite_divergences_are_counted_apart_and_never_nan(tmp_path: Path) -> None:
    def hide(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        if number == 0:
            target[1, :5] = -torch.inf
        draft[:, 20:] = -torch.inf

    trace = gpu.open_trace(traces.write(tmp_path / "trace", 5, edit=hide))
    replayed = gpu.replay(trace, ["lossless", "cos:w=0.5", "truncated-min-p:base=0.3"])
    mixture = replayed["cos:w=0.5"]
    # Draft mass on tokens 0-4 leaves the target's support at one of 20 positions.
    for name in ("reverse_kl", "max_ratio"):
        assert mixture[name].infinite_share == 1 / 20
        assert mixture[name].mean == math.inf
        assert math.isfinite(mixture[name].finite_mean)
        assert mixture[name].low is None
    assert mixture["outside_support"].largest > 0
    assert any("KL(out‖p) is infinite at 5.0%" in note for note in mixture.notes)
    assert replayed["truncated-min-p:base=0.3"]["kl"].infinite_share > 0.9
    assert '"nan"' not in json_text(replayed.to_json())


def test_the_worst_positions_are_the_planted_ones(tmp_path: Path) -> None:
    planted = {(7, 2): 6.0, (3, 0): 5.0, (11, 1): 4.0}

    def plant(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        draft[:] = target[: traces.K]
        for (block, position), strength in planted.items():
            if block == number:
                draft[position, 9] += strength
                target[position, 4] += strength

    trace = gpu.open_trace(traces.write(tmp_path / "trace", 14, edit=plant))
    worst = gpu.replay(trace, ["cos:w=0.5"])["cos:w=0.5"].worst
    assert {(case.block, case.position) for case in worst} == set(planted)
    assert [case.tv for case in worst] == sorted((case.tv for case in worst), reverse=True)
    for case in worst:
        block = trace[case.block]
        p, q = (
            traces.softmax(logits[case.position : case.position + 1])[0]
            for logits in (block.target_logits, block.draft_logits)
        )
        assert case.tv == pytest.approx(np.abs(p - q).sum() / 4, abs=1e-6)
        assert case.drafted.token == int(block.tokens[case.position])
        before = [*block.context.tolist(), *block.tokens[: case.position].tolist()]
        assert case.context.split() == [f"#{i}" for i in before]
        shown = {token.token: token for token in case.tokens}
        assert {4, 9} <= set(shown)
        assert [token.p for token in case.tokens] == sorted((token.p for token in case.tokens), reverse=True)
        assert shown[9].out == pytest.approx((p[9] + q[9]) / 2, rel=1e-9)


def test_results_are_found_by_any_way_to_write_a_spec(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, ["cos:w=1", "lossless"])
    assert replayed["cos:w=1"] is replayed["cos:w=1.0"] is replayed.rules[0]
    with pytest.raises(UnknownName, match=r"cos:w=0\.5"):
        replayed["cos:w=0.5"]


def test_a_lossless_rule_has_no_worst_positions(trace: gpu.Trace) -> None:
    result = gpu.replay(trace, ["lossless"])["lossless"]
    assert result.worst == ()
    assert result.tv_histogram[0] == len(trace) * traces.K


def test_one_prompt_is_said_to_have_no_intervals(tmp_path: Path) -> None:
    replayed = gpu.replay(traces.write(tmp_path / "trace", 5, prompts=1), ["lossless", "cos:w=0.5"])
    assert all(result[name].low is None for result in replayed for name in ("tokens_per_call", "tv"))
    assert "All blocks come from one prompt, so no interval is available." in replayed.notes


def test_different_vocabularies_are_noted(tmp_path: Path) -> None:
    narrow = [
        TraceBlock(block.target_logits, block.draft_logits[:, :-3], block.tokens.clamp(max=traces.V - 4))
        for block in traces.blocks(3)
    ]
    replayed = gpu.replay(gpu.write_trace(tmp_path / "trace", narrow), ["lossless"])
    assert any(f"(target {traces.V}, draft {traces.V - 3})" in note for note in replayed.notes)


# -- bad input ---------------------------------------------------------------------------------------------------------


class Unreadable(Rule):
    name = "unreadable"
    unreadable_by: ClassVar = {Interpreter.TORCH: "it only knows numpy"}


class Hollow(Rule):
    name = "hollow"

    def verdict(self, p: Any, q: Any) -> Verdict:
        return Verdict(accepted=q / 2, residual=0 * p)


@pytest.mark.parametrize(
    ("rules", "arguments", "error", "message"),
    [
        ([], {}, InvalidInput, "rules is empty"),
        (["lenience:l=0.5", "lenience:l=1/2", "lenience:l=0.5"], {}, InvalidInput, "lenience:l=0.5 twice"),
        (["lenienc:l=0.5"], {}, UnknownName, "Did you mean 'lenience'"),
        (["lenience:l=2"], {}, ParameterError, "outside its domain"),
        ([3], {}, InvalidInput, "contains 3; allowed are token-level rules"),
        ([Unreadable()], {}, NotReadable, "it only knows numpy"),
        ([Hollow()], {}, ZeroResidualError, "hollow rejects at every position"),
        ([Hollow()], {"modes": False}, ZeroResidualError, "block 0: hollow rejects with probability"),
        (["lossless"], {"dtype": "float16"}, InvalidInput, "dtype='float16'"),
        (["lossless"], {"device": "tpu"}, InvalidInput, "device='tpu'"),
        (["lossless"], {"temperature": -1}, InvalidInput, "temperature=-1"),
        (["lossless"], {"top_p": 2}, ParameterError, "top_p=2"),
    ],
)
def test_bad_arguments(
    trace: gpu.Trace, rules: list[Any], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        gpu.replay(trace, rules, **arguments)
    assert message in str(raised.value)


def test_an_absent_cuda_device_is_refused(trace: gpu.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="torch sees no CUDA device"):
        gpu.replay(trace, ["lossless"], device="cuda")
    assert gpu.replay(trace, ["lossless"], device="auto").settings.device == "cpu"


def test_a_missing_and_an_altered_trace_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere"):
        gpu.replay(tmp_path / "nowhere", ["lossless"])
    folder = traces.write(tmp_path / "trace", 6, blocks_per_shard=3)
    shard = sorted((folder / "shards").iterdir())[1]
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(TraceError, match=shard.name):
        gpu.replay(folder, ["lossless"])


# -- real logits, and another device -----------------------------------------------------------------------------------


@pytest.mark.bundled
@pytest.mark.slow
def test_the_bundled_pair(tmp_path: Path) -> None:
    trace = gpu.open_trace(
        gpu.capture(
            "smollm2-135m",
            "layerskip:10,20",
            None,
            out=tmp_path / "trace",
            blocks=3,
            draft_length=4,
            continuation=12,
            chat=True,
        )
    )
    specs = ["lossless", "lenience:l=0.5", "mentored:budget=0.1", "min-p:base=0.1"]
    single, double = (gpu.replay(trace, specs, dtype=dtype) for dtype in ("float32", "float64"))
    for ours, theirs in zip(single, double, strict=True):
        for name in ("tokens_per_call", "acceptance", "tv", "kl", "js", "waste"):
            assert ours[name].mean == pytest.approx(theirs[name].mean, rel=1e-5, abs=1e-5), (ours.spec, name)
    assert single["lossless"]["tv"].largest < 1e-6
    assert single["lossless"]["acceptance"].mean == pytest.approx(1 - single.draft["tv"].mean, abs=1e-6)
    assert single["lenience:l=0.5"]["max_ratio"].largest == pytest.approx(2, rel=1e-4)
    assert double["mentored:budget=0.1"]["kl"].largest <= 0.1 + 1e-9
    case = single["min-p:base=0.1"].worst[0]
    assert "<|im_start|>assistant" in case.context
    one_by_one = gpu.replay(gpu.reshard(trace.path, tmp_path / "one", blocks_per_shard=1), specs).to_json()
    document = single.to_json()
    assert json_text(one_by_one | {"provenance": None}) == json_text(document | {"provenance": None})


@pytest.mark.cuda
def test_cuda_agrees_with_the_cpu(trace: gpu.Trace) -> None:
    here, there = (gpu.replay(trace, traces.SPECS, device=device) for device in ("cpu", "cuda"))
    for ours, theirs in zip(here, there, strict=True):
        for name in ("tokens_per_call", "acceptance", *DISTANCES):
            assert theirs[name].mean == pytest.approx(ours[name].mean, rel=1e-5, abs=1e-5), (ours.spec, name)
