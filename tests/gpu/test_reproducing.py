"""Items read off captured traces: counted by hand, drawn and marked token by token."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from matplotlib.text import Text

import gpu
from fly_theory.errors import InvalidInput
from fly_theory.figures import TWO_COLUMNS, encode
from fly_theory.registry import block_rule
from gpu.models import load_pair
from gpu.reproducing import fly_figure_2, fly_figure_4, fly_table_4, lossy_tradeoffs, real_traces
from gpu.reproducing.marked_text import Mark, as_figure, as_html, marks

STRICT, LOOSE = "fly:theta=2,window=6", "fly-released:theta=0.3,window=2"


def captured(tiny, folder, *, temperature):
    return gpu.open_trace(
        gpu.capture(
            tiny.llama,
            tiny.narrow_qwen,
            ["def add(a, b):", "return a"],
            out=folder,
            draft_length=10,
            blocks=6,
            temperature=temperature,
            context_temperature=temperature,
            continuation=12,
        )
    )


@pytest.fixture(scope="module")
def greedy(tiny, tmp_path_factory):
    return captured(tiny, tmp_path_factory.mktemp("fly") / "greedy", temperature=0)


@pytest.fixture(scope="module")
def sampled(tiny, tmp_path_factory):
    return captured(tiny, tmp_path_factory.mktemp("fly") / "sampled", temperature=1)


@pytest.fixture(scope="module")
def pair(tiny):
    return load_pair(tiny.llama, "layerskip:1", dtype=torch.float32, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def text(pair, tmp_path_factory):
    """A text of a few rounds as a trace, and the ids after its prompt as the loop wrote them."""
    prompt = pair.tokenizer("the fox and")["input_ids"]
    rule = block_rule(LOOSE)
    blocks = list(real_traces.rounds(pair, rule, prompt, draft_length=6, tokens=30))
    path = tmp_path_factory.mktemp("text") / "trace"
    tokenizer = path.parent / "tokenizer.json"
    tokenizer.write_text(pair.tokenizer.backend_tokenizer.to_str())
    return gpu.open_trace(gpu.write_trace(path, blocks, dtype="float16", tokenizer=tokenizer)), prompt


# -- traces ------------------------------------------------------------------------------------------------------------


def test_a_trace_is_captured_once_and_anew_when_its_settings_change(greedy, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def write(folder):
        made.append(folder)
        gpu.write_trace(folder, greedy)

    first = real_traces._cached("name", {"blocks": 6}, write)
    again = real_traces._cached("name", {"blocks": 6}, write)
    assert first.path == again.path
    assert len(first) == len(greedy)
    real_traces._cached("name", {"blocks": 7}, write)
    assert len(made) == 2
    assert len(list((tmp_path / "fly-theory").iterdir())) == 2


def test_a_capture_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def write(folder):
        folder.mkdir()
        msg = "no weights"
        raise InvalidInput(msg)

    with pytest.raises(InvalidInput):
        real_traces._cached("name", {}, write)
    assert list((tmp_path / "fly-theory").iterdir()) == []


def test_a_pair_that_is_not_here_is_an_outcome():
    def refuse():
        msg = "no weights"
        raise InvalidInput(msg)

    finding = real_traces.read_off(refuse, fly_table_4.decided)
    assert finding.outcome == "not reproducible here"
    assert "no weights" in finding.why


@pytest.mark.parametrize("length", [None, 4])
def test_a_captured_block_in_float64(greedy, length):
    block = real_traces.block_of(greedy[1], length)
    assert block.target.shape == ((length or 10) + 1, greedy.vocabulary)
    assert block.target.sum(-1) == pytest.approx(1)
    assert (block.draft.argmax(-1) == block.tokens).all()


# -- Table 4 -----------------------------------------------------------------------------------------------------------


def test_strict_tokens_a_round_are_the_matching_prefix_and_one(greedy):
    for each in greedy:
        best = each.target_logits.argmax(-1)[:-1]
        by_hand = 1 + int((each.tokens == best).int().cumprod(0).sum())
        assert fly_table_4.tokens_a_round(real_traces.block_of(each), STRICT) == by_hand


def test_settings_of_table_4_beside_ours(greedy):
    finding = fly_table_4.decided(greedy)
    assert finding.outcome == "explained"
    printed = [float(v.published) for v in finding.values if v.what.endswith("tokens a round")]
    assert printed[::2] == [15.59, 13.27, 12.61, 11.96, 12.76, 12.61, 12.2, 9.89, 9.04, 12.61, 15.6, 18.56]
    for gate in fly_table_4.GATES.values():
        ours = [v.ours for v in finding.values if v.what.endswith(f"{gate}: tokens a round")]
        windows, thresholds, lengths = ours[:4], ours[4:8], ours[8:]
        assert windows == sorted(windows, reverse=True)
        assert thresholds == sorted(thresholds, reverse=True)
        assert lengths == sorted(lengths)
        assert windows[2] == thresholds[1] == lengths[1] >= 1
    assert set(finding.figures) == {"trends", "gates"}


def test_the_gates_read_what_the_rules_read(greedy):
    open_at = {"paper": 0, "released": 0}
    mismatches = 0
    for each in greedy:
        block = real_traces.block_of(each)
        missed = ~block_rule(STRICT).trace(block).match
        mismatches += missed.sum()
        for gate in open_at:
            rule = block_rule(fly_table_4.spec(fly_table_4.Setting("W"), gate))
            open_at[gate] += (rule.trace(block).gate & missed).sum()
    shares = [v.ours for v in fly_table_4.decided(greedy).values if "open at a mismatch" in v.what]
    assert shares == pytest.approx([count / mismatches for count in open_at.values()])


# -- Figure 2 ----------------------------------------------------------------------------------------------------------


def test_a_block_is_drawn_step_by_step():
    target = np.array([[0.5, 0.4, 0.1]] * 4 + [[0.0, 1.0, 0.0]] + [[0.5, 0.4, 0.1]])
    tokens = np.array([1, 0, 0, 0, 0])
    block = fly_figure_2.Block(target, np.eye(3)[tokens], tokens)
    rule = block_rule("fly:theta=0.3,window=3")
    figure = fly_figure_2.decision_trace(rule, block, list("bcdef"), ["x", "c", "d", "e", "\n", "last"])
    said = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
    assert {"1 draft", "1 target", "2 gate", "3 window", "4 written", "clear", "0.86 ≥ θ", "0.00 < θ"} <= set(said)
    # b is kept, so written twice; f is rejected by the gate, and the line end of the target written in its place.
    assert said.count("b") == 2
    assert said.count("f") == 1
    assert said.count("↵") == 2
    assert "last" not in said


def test_the_pipeline_of_a_trace(greedy):
    finding = fly_figure_2.drawn(greedy)
    mismatches, opened, clear, written = (value.ours for value in finding.values)
    assert mismatches >= opened >= clear
    assert 1 <= written <= 11
    assert len(encode(finding.figures["pipeline"], "png")) > 5000


# -- Figure 4 ----------------------------------------------------------------------------------------------------------


def test_rounds_follow_each_other_as_the_rule_decides(text):
    trace, prompt = text
    written = []
    for each in trace:
        assert each.context.tolist() == [*prompt, *written]
        kept = int(block_rule(LOOSE).trace(real_traces.block_of(each)).kept.sum())
        written += [*each.tokens[:kept].tolist(), int(each.target_logits[kept].argmax())]
    assert len(written) >= 30 or 0 in written


def test_the_marked_text_is_the_text_that_was_written(text):
    trace, prompt = text
    marked = list(marks(trace, block_rule(LOOSE)))
    written = "".join(mark.draft if mark.kept and mark.draft is not None else mark.target for mark in marked)
    assert (
        trace.decode(trace[-1].context[len(prompt) :]) == written[: len(trace.decode(trace[-1].context[len(prompt) :]))]
    )
    assert [mark.round for mark in marked] == sorted(mark.round for mark in marked)
    assert {mark.round for mark in marked} == set(range(len(trace)))
    assert any(not mark.match for mark in marked)


MARKED = [
    Mark(0, " So", " So", True, True, "both say so", 0.9),
    Mark(0, " <b>", " it", True, False, "kept: why", 0.2),
    Mark(0, "no", "\n", False, False, "gate shut: why", 0.1),
    Mark(1, None, " end", True, True, "bonus token", 0.8),
]


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.said = [], []

    def handle_starttag(self, tag, attributes):
        self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else (None, {})
        if "title" in attributes:
            self.said.append((tag, attributes.get("class"), data, attributes["title"]))


def test_html_says_who_said_what_and_why():
    html = as_html(MARKED)
    elements = Elements()
    elements.feed(html)
    assert elements.open == []
    assert elements.said == [
        ("span", None, " So", "round 1, both say so"),
        ("span", "draft", "<b>", "round 1, kept: why"),
        ("span", "target", "(it)", "round 1, kept: why"),
        ("s", "draft", "no", "round 1, gate shut: why"),
        ("span", "target", "(↵)", "round 1, gate shut: why"),
        ("i", None, "|", "round 2"),
        ("span", None, " end", "round 2, bonus token"),
    ]
    assert not re.search(r"(src|href)=|url\(|@import", html)
    assert "<b>" in unescape(html)
    assert "<b>" not in html


def test_the_figure_shows_the_same_text():
    figure = as_figure(MARKED)
    assert figure.get_figwidth() == TWO_COLUMNS
    said = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
    assert "".join(said).startswith("So<b>(it)no(↵)|end")
    struck = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert len(struck) == 2  # the one rejected token and that of the key
    assert len(encode(figure, "png")) > 5000


def test_a_text_as_an_item(text):
    finding = fly_figure_4.told(text[0])
    ours = {value.what: value.ours for value in finding.values}
    rejected = sum(count for what, count in ours.items() if what.startswith("of them rejected"))
    kept = ours["of them kept; standard verification keeps none"]
    assert ours["mismatches met"] == kept + rejected
    assert set(finding.figures) == set(finding.fragments) == {"text"}


# -- trade-offs --------------------------------------------------------------------------------------------------------


def test_printed_settings_are_means_over_the_benchmarks():
    printed = lossy_tradeoffs.printed_settings()
    assert len(printed) == 4 * 5 + 2 * 4
    gain, points = printed["CoS", 0.8]
    assert gain == pytest.approx(1.6244, abs=1e-4)
    assert points < -30


def test_the_short_way_measures_what_replay_measures(sampled):
    rules = ["lossless", "lenience:l=0.4", "cos:w=0.5", "min-p:base=0.3", "truncated-eta:eps=0.1"]
    found = gpu.replay(sampled, rules, dtype="float64")
    names = ("tokens_per_call", "tv", "reverse_kl")
    by_replay = np.array([[result[name].mean for result in found] for name in names])
    assert np.array(lossy_tradeoffs.measured(sampled, rules)) == pytest.approx(by_replay, abs=1e-4)


def test_settings_of_the_lossy_paper_beside_ours(sampled):
    finding = lossy_tradeoffs.replayed(sampled)
    assert finding.outcome == "explained"
    assert len(finding.values) == 1 + 3 * 28
    ours = {value.what: value.ours for value in finding.values}
    for measure in ("TV(p, out)", "KL(out‖p), nats"):
        falling = [ours[f"lenience {l:g}: {measure}"] for l in (0.2, 0.4, 0.6, 0.8)]
        assert falling == sorted(falling, reverse=True)
    for figure in finding.figures.values():
        assert len(encode(figure, "png")) > 5000
