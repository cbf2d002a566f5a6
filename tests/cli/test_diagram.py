"""`diagram`: files from examples, lists and traces. What a figure shows is tested in tests/figures."""

import re
import sys
import types
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.cli import pair_source
from fly_theory.errors import TraceError
from fly_theory.figures import diagram, encode

SPECS = (
    "lossless",
    "lenience:l=0.5",
    "cos:w=0.5",
    "min-p:base=0.5",
    "typical:eps=0.09,delta=0.3",
    "truncated-min-p:base=0.5",
)
BLOCKS, DRAFTS, V = 3, 2, 40


class Trace:
    """A trace with made-up logits, as an entry point of the group `fly_theory.trace_readers` gives it."""

    sha256 = "0123abcd"

    def __init__(self, tokenizer="a tokenizer"):
        self.manifest = {"tokenizer": tokenizer}
        draws = np.random.default_rng(5)
        self.blocks = [
            types.SimpleNamespace(
                target_logits=draws.normal(size=(DRAFTS + 1, V)) * 3, draft_logits=draws.normal(size=(DRAFTS, V)) * 3
            )
            for _ in range(BLOCKS)
        ]

    def __len__(self):
        return BLOCKS

    def __getitem__(self, index):
        return self.blocks[index]

    def decode(self, ids):
        return {0: " the", 1: "\n", 2: "中", 3: "\ufffd", 4: "a_rather_long_word"}.get(ids[0], f"t{ids[0]}")


@pytest.fixture
def trace(monkeypatch):
    """Make any folder a trace."""
    opened = Trace()

    def reader(folder):
        if folder.name == "absent":
            msg = f"{folder} is no trace"
            raise TraceError(msg)
        return opened

    module = types.ModuleType("made_up_reader")
    module.reader = reader
    monkeypatch.setitem(sys.modules, "made_up_reader", module)
    entry = EntryPoint("made-up", "made_up_reader:reader", pair_source.TRACE_READERS)
    monkeypatch.setattr(pair_source, "entry_points", lambda group: [entry])
    return opened


def panels_of(path):
    """The titles of the panels of an SVG."""
    return [title for title in re.findall(r"<text[^>]*>([^<]+)</text>", path.read_text()) if title in SPECS]


def test_the_figure_of_the_documentation(program, tmp_path):
    path = tmp_path / "fig2.png"
    text = program("diagram", *SPECS, "-o", path).ok()
    assert path.read_bytes().startswith(b"\x89PNG")
    assert text.splitlines()[-1] == f"wrote {path}"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_command_writes_the_same_bytes(cli, program, tmp_path, suffix):
    here, there = tmp_path / f"here.{suffix}", tmp_path / f"there.{suffix}"
    cli("diagram", "lenience:l=0.5", "-o", here).ok()
    program("diagram", "lenience:l=0.5", "-o", there).ok()
    assert here.read_bytes() == there.read_bytes()


def test_one_panel_a_rule_titled_as_asked(cli, tmp_path):
    path = tmp_path / "figure.svg"
    cli("diagram", *SPECS, "-o", path).ok()
    assert panels_of(path) == list(SPECS)


def test_lists(cli, tmp_path):
    path = tmp_path / "figure.svg"
    report = cli("diagram", *SPECS, "--p", "1/2,3/10,3/20,1/20", "--q", "0.2,0.1,0.3,0.4", "-o", path, "--json").json()
    assert report["file"] == str(path)
    assert [panel["spec"] for panel in report["panels"]] == [ft.rule(spec).spec for spec in SPECS]
    assert [panel["acceptance"] for panel in report["panels"]] == pytest.approx([0.5, 0.7, 0.75, 0.3, 0.6, 0.3])
    assert [panel["tv"] for panel in report["panels"]] == pytest.approx([0, 0.2, 0.25, 0.06, 0.21, 0.2])
    assert [panel["max_ratio"] for panel in report["panels"]] == pytest.approx([1, 2, 4.5, 1.1, 2.4, 1.25])
    assert [panel["ceiling"] for panel in report["panels"]] == [None, 2, None, None, None, None]
    assert report["provenance"]["versions"]["fly-theory"] == ft.__version__
    assert "acceptance 0.70" in path.read_text()


def test_examples(cli, tmp_path):
    listed = {pair["name"]: pair for pair in cli("diagram", "--list-pairs", "--json").json()}
    assert {"smooth", "golden"} <= set(listed)
    assert listed["golden"]["p"] == ["1/2", "3/10", "3/20", "1/20"]
    text = cli("diagram", "--list-pairs").ok()
    for name in listed:
        assert re.search(rf"^{name} ", text, re.MULTILINE)
        assert cli("diagram", "lossless", "--pair", name, "-o", tmp_path / f"{name}.png", "--json").json()["pair"] == (
            f"example {name}"
        )
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == len(listed)


def test_width_and_top(cli, tmp_path):
    path = tmp_path / "figure.svg"
    cli("diagram", "lossless", "--width", 5, "--top", 3, "-o", path).ok()
    assert 'width="360pt"' in path.read_text()
    assert ">other</text>" in path.read_text()


def test_the_file_says_what_it_shows(cli, tmp_path):
    path = tmp_path / "figure.svg"
    cli("diagram", "lossless", "cos:w=0.5", "--pair", "golden", "-o", path).ok()
    assert f"fly-theory {ft.__version__} diagram lossless cos:w=0.5: example golden" in path.read_text()


# -- rows of a trace ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("block", "position", "temperature"), [(0, 0, 1.0), (2, 1, 0.7)])
def test_a_row_of_a_trace(cli, tmp_path, trace, block, position, temperature):
    path = tmp_path / "figure.png"
    options = ("--block", block, "--position", position, "--temperature", temperature, "--top", 8)
    report = cli("diagram", "lenience:l=0.5", "--trace", "folder", *options, "-o", path, "--json").json()
    rows = trace[block]
    p = ft.softmax(rows.target_logits[position], temperature=temperature)
    q = ft.softmax(rows.draft_logits[position], temperature=temperature)
    rule = ft.rule("lenience:l=0.5")
    assert report["panels"][0]["acceptance"] == pytest.approx(float(rule.acceptance(p, q)))
    assert report["pair"] == (
        f"block {block}, position {position} of folder (sha256 0123abcd) at temperature {temperature:g}"
    )
    names = pair_source.pair_of_trace(path, block, position, temperature).token_name
    figure = diagram(p, q, [rule], titles=["lenience:l=0.5"], top=8, token_name=names)
    description = f"fly-theory {ft.__version__} diagram lenience:l=0.5: {report['pair']}"
    assert path.read_bytes() == encode(figure, "png", description=description)


def test_fifteen_tokens_and_the_others_of_a_trace(cli, tmp_path, trace):
    path = tmp_path / "figure.svg"
    cli("diagram", "lossless", "--trace", "folder", "-o", path).ok()
    names = re.findall(r">(t\d+|␣the|\\n|#[23]|a_rather_lo…|other)</text>", path.read_text())
    assert len(names) == 16
    assert names[-1] == "other"


def test_names_of_tokens(trace):
    name = pair_source.pair_of_trace(types.SimpleNamespace(name="folder"), 0, 0, 1).token_name
    assert [name(token) for token in range(6)] == ["␣the", "\\n", "中", "#3", "a_rather_lo…", "t5"]


def test_a_trace_without_a_tokenizer_names_tokens_by_id(trace):
    trace.manifest["tokenizer"] = None
    name = pair_source.pair_of_trace(types.SimpleNamespace(name="folder"), 0, 0, 1).token_name
    assert name(17) == "17"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--block", 3), "--block 3: folder has blocks 0..2"),
        (("--block", -1), "--block -1: folder has blocks 0..2"),
        (("--position", 2), "--position 2: the blocks of folder have positions 0..1"),
        (("--temperature", -1), "temperature=-1.0 is outside [0, inf)"),
        (("--pair", "golden"), "--trace cannot be combined with --pair, --p or --q"),
        (("--top", 0), "top=0 is below 1"),
    ],
)
def test_bad_rows(cli, tmp_path, trace, options, message):
    run = cli("diagram", "lossless", "--trace", "folder", *options, "-o", tmp_path / "figure.png")
    assert run.error().startswith(message)
    assert not list(tmp_path.iterdir())


def test_errors_of_the_reader_are_messages(cli, tmp_path, trace):
    run = cli("diagram", "lossless", "--trace", "absent", "-o", tmp_path / "figure.png")
    assert run.error() == "absent is no trace"


def test_no_reader_installed(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(pair_source, "entry_points", lambda group: [])
    run = cli("diagram", "lossless", "--trace", "folder", "-o", tmp_path / "figure.png")
    assert run.error() == "no installed package reads traces (entry-point group fly_theory.trace_readers)"


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "figure.png"), "a RULE is missing: fly-theory diagram RULE... -o FILE.png"),
        (("lossless",), "-o FILE is missing: fly-theory diagram RULE... -o FILE.png"),
        (("losless", "-o", "figure.png"), "unknown token-level rule 'losless'. Did you mean 'lossless'?"),
        (("lossless", "-o", "figure.jpg"), "cannot write a figure to 'figure.jpg': the suffix must be one of .png"),
        (("lossless", "-o", "nowhere/a.png"), "cannot write a figure to 'nowhere/a.png': there is no folder 'nowhere'"),
        (("lossless", "--p", "0.5,0.6", "--q", "1,0", "-o", "figure.png"), "--p sums to 1.1"),
        (("lossless", "--width", "0", "-o", "figure.png"), "width=0.0 is outside [1, inf) inches"),
    ],
)
def test_bad_input_leaves_no_file(cli, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert cli("diagram", *arguments).error().startswith(message)
    assert not list(tmp_path.iterdir())
