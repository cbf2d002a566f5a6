"""FLy on a captured trace: counted by hand, drawn token by token."""

import numpy as np
import pytest
from matplotlib.text import Text

import gpu
from fly_theory.errors import InvalidInput
from fly_theory.registry import block_rule
from gpu.reproducing import fly_trace


@pytest.fixture(scope="module")
def trace(tiny, tmp_path_factory):
    folder = gpu.capture(
        tiny.llama,
        tiny.narrow_qwen,
        ["def add(a, b):", "return a"],
        out=tmp_path_factory.mktemp("fly") / "trace",
        draft_length=10,
        blocks=6,
        temperature=0,
        context_temperature=0,
        continuation=12,
    )
    return gpu.open_trace(folder)


def test_strict_tokens_a_round_are_the_matching_prefix_and_one(trace):
    lengths = []
    for captured in trace:
        best = captured.target_logits.argmax(-1)[:-1]
        lengths.append(1 + int((captured.tokens == best).int().cumprod(0).sum()))
    blocks = [fly_trace.block_of(captured, trace.draft_length) for captured in trace]
    assert fly_trace.tokens_a_round(blocks, "fly:theta=2,window=6") == pytest.approx(np.mean(lengths))


def test_settings_of_table_4_beside_ours(trace):
    finding = fly_trace.decided(trace)
    assert finding.outcome == "explained"
    assert len(finding.values) == 2 * len(fly_trace.SETTINGS)
    assert [float(value.published) for value in finding.values[::2]] == [13.27, 12.61, 11.96, 12.76, 12.2, 9.89]
    for name in ("fly", "fly-released"):
        ours = {value.what.partition(",")[0]: value.ours for value in finding.values if f", {name}:" in value.what}
        assert ours["W = 4"] >= ours["W = 6"] >= ours["W = 8"] >= 1
        assert ours["theta = 0"] >= ours["W = 6"] >= ours["theta = 0.6"] >= ours["theta = 1"]


def test_a_block_is_drawn_token_by_token():
    target = np.array([[0.5, 0.4, 0.1]] * 4 + [[0.0, 1.0, 0.0]] + [[0.5, 0.4, 0.1]])
    tokens = np.array([1, 0, 0, 0, 0])
    block = fly_trace.Block(target, np.eye(3)[tokens], tokens)
    rule = block_rule("fly:theta=0.3,window=3")
    figure = fly_trace.decision_trace(rule, block, list("bcdef"), ["x", "c", "d", "e", "\n"])
    said = {text.get_text() for text in figure.findobj(Text) if text.get_text()}
    assert said == {"draft", "target", "b", "c", "d", "e", "f", "x", "↵", "forgiven", "gate"}


def test_a_pair_that_is_not_here_is_an_outcome(monkeypatch):
    def refuse():
        msg = "no weights"
        raise InvalidInput(msg)

    monkeypatch.setattr(fly_trace, "cached_trace", refuse)
    finding = fly_trace.find()
    assert finding.outcome == "not reproducible here"
    assert "no weights" in finding.why
