"""Lossy rules beside what they are matched to: differences on a second route, verdicts by their rule, planted cases."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

import fly_theory as ft
import gpu
from gpu.replaying.comparison import Verdict, compare
from gpu.replaying.tally import Tally
from tests.gpu import replay_traces as traces


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("compared") / "trace", 30, prompts=10))


def _sampler(rule: object, trace: gpu.Trace) -> tuple[float, float]:
    """Acceptance and accepted length of drawing from the rule's law by maximal coupling, token by token."""
    acceptances, lengths = [], []
    for block in trace:
        reached, length = 1.0, 0.0
        for p, q, x in zip(
            traces.softmax(block.target_logits), traces.softmax(block.draft_logits), block.tokens.tolist(), strict=False
        ):
            out = rule.induced(p, q)
            acceptances.append(1 - np.abs(q - out).sum() / 2)
            reached *= min(1, out[x] / q[x])
            length += reached
        lengths.append(length)
    return float(np.mean(acceptances)), float(np.mean(lengths))


@pytest.mark.parametrize("spec", ["lenience-resample:l=0.5", "sample-match:n=2", "cos:w=0.5", "cactus:delta=0.1"])
def test_the_sampler_of_the_own_law_accepts_one_minus_tv(trace: gpu.Trace, spec: str) -> None:
    result = gpu.replay(trace, [spec], dtype="float64")[spec]
    acceptance, length = _sampler(result.rule, trace)
    assert result.baseline["acceptance"].mean == pytest.approx(acceptance, rel=1e-12)
    assert result.baseline["accepted_per_call"].mean == pytest.approx(length, rel=1e-12)
    assert result.baseline["tv"] == result["tv"]
    compared = result.comparison
    assert compared.against == "own law"
    assert compared.acceptance.mean == pytest.approx(result["acceptance"].mean - acceptance, abs=1e-12)
    assert compared.tokens_per_call.mean == pytest.approx(result["accepted_per_call"].mean - length, abs=1e-12)
    assert compared.tv.mean == 0


def test_rules_that_sample_their_law_exactly_gain_nothing_over_it(trace: gpu.Trace) -> None:
    specs = ["cos:w=0.5", "cos-contrastive", "interpolation:l=0.5", "mentored", "cactus:delta=0.1", "lenience:l=0.5"]
    replayed = gpu.replay(trace, [*specs, "cascade-chow:alpha=0.5", "lenience-resample:l=0.5", "sample-match:n=2"])
    verdicts = {result.rule.name: result.comparison.verdict for result in replayed}
    assert verdicts.pop("lenience-resample") == verdicts.pop("sample-match") == "worse"
    assert set(verdicts.values()) == {"no gain"}


def test_a_truncation_rule_is_compared_with_lossless_verification_of_its_truncated_target(trace: gpu.Trace) -> None:
    specs = ["min-p:base=0.2", "truncated-min-p:base=0.2", "cascade-token-v3:alpha=0.8"]
    replayed = gpu.replay(trace, ["lossless", *specs], dtype="float64")
    fair = replayed["truncated-min-p:base=0.2"]
    for spec in specs:
        compared = replayed[spec].comparison
        assert compared.against == "p_A"
        for name in ("tokens_per_call", "acceptance", "tv"):
            expected = replayed[spec][name].mean - fair[name].mean
            assert getattr(compared, name).mean == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert fair.comparison.verdict == "no gain"
    assert replayed["lossless"].comparison is None
    # The cascade samples q 1_A + (1 - q(A)) p exactly, and accepts no less than the rule that emits the same law.
    cascade, accept_set = replayed["cascade-token-v3:alpha=0.8"], replayed["min-p:base=0.2"]
    assert cascade["tv"].mean == pytest.approx(accept_set["tv"].mean, rel=1e-12)
    assert cascade["acceptance"].mean >= accept_set["acceptance"].mean


def test_without_block_efficiency_acceptance_is_compared(trace: gpu.Trace) -> None:
    compared = gpu.replay(trace, ["lenience-resample:l=0.5"], temperature=0.5).rules[0].comparison
    assert compared.tokens_per_call is None
    assert compared.verdict == "worse"
    assert compared.acceptance.high < 0


def test_one_prompt_has_no_verdict(tmp_path: Path) -> None:
    replayed = gpu.replay(traces.write(tmp_path / "trace", 5, prompts=1), ["min-p:base=0.2"])
    assert replayed.rules[0].comparison.verdict is None


def _tally(tokens: float, tv: float) -> Tally:
    """Ten prompts that all but agree: a rule that makes so many more tokens than p_A verified, at so much more TV."""
    tally = Tally()
    for prompt in range(10):
        noise = 0.01 * (-1) ** prompt
        tally.add(
            prompt,
            prompt,
            {
                "accepted_per_call": [3 + tokens + noise],
                "baseline_accepted_per_call": [3.0],
                "acceptance": [0.5],
                "baseline_acceptance": [0.5],
                "tv": [0.2 + tv + noise / 10],
                "baseline_tv": [0.2],
                "matched_tv": [0.1],
            },
        )
    return tally


@pytest.mark.parametrize(
    ("tokens", "tv", "verdict"),
    [
        (0.5, 0, "real gain"),
        (0.5, -0.1, "real gain"),
        (0, -0.1, "real gain"),
        (0.5, 0.1, "no gain"),
        (-0.5, -0.1, "no gain"),
        (0, 0, "no gain"),
        (-0.5, 0, "worse"),
        (-0.5, 0.1, "worse"),
        (0, 0.1, "worse"),
    ],
)
def test_every_verdict_by_its_rule(tokens: float, tv: float, verdict: str) -> None:
    assert verdict in get_args(Verdict)
    assert compare(_tally(tokens, tv), identified=True).verdict == verdict


def test_planted_truncation_rules_are_told_apart(tmp_path: Path) -> None:
    """A draft equal to the target: accepting on a set is at p, its truncated target is not. One off A: it is far."""

    def same(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        draft[:] = target[: draft.shape[0]]

    alike = gpu.replay(traces.write(tmp_path / "alike", 20, prompts=10, edit=same), ["min-p:base=0.3"]).rules[0]
    assert alike.comparison.verdict == "real gain"
    # Both keep what lies in A, always; the rule redraws the rest from p.
    assert alike.comparison.tokens_per_call.mean == 0
    assert alike.comparison.tv.high < 0

    def skewed(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        # Two tokens share the target; the draft prefers the second, and is truncated nowhere.
        target[:], draft[:] = -40.0, -40.0
        target[:, 0], target[:, 1] = 0.0, -0.5
        draft[:, 0], draft[:, 1] = 0.0, 0.2 + 0.1 * (number % 3)

    trade = gpu.replay(traces.write(tmp_path / "skewed", 20, prompts=10, edit=skewed), ["min-p:base=0.3"]).rules[0]
    assert trade.comparison.verdict == "no gain"
    assert trade.comparison.tv.low > 0
    assert trade.comparison.acceptance.low > 0


def test_the_verdicts_are_in_the_files(trace: gpu.Trace, tmp_path: Path) -> None:
    from pyarrow import parquet

    replayed = gpu.replay(trace, ["lossless", "min-p:base=0.2", "sample-match:n=2"], out=tmp_path / "out")
    rows = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert [row["matched_to"] for row in rows] == [None, "p_A", "own law"]
    assert rows[1]["minus_baseline_tv_low"] == replayed.rules[1].comparison.tv.low
    document = replayed.to_json()["rules"]
    assert document[0]["comparison"] is None
    assert document[2]["comparison"]["verdict"] == rows[2]["verdict"] == "worse"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Lossy rules against what they are matched to" in page
    assert "worse for sample-match:n=2" in page


def test_the_truncation_set_of_the_cascade_is_that_of_min_p() -> None:
    p = np.array([0.5, 0.3, 0.15, 0.05])
    assert ft.rule("cascade-token-v3:alpha=0.4").allowed_set(p).tolist() == [True, True, False, False]
