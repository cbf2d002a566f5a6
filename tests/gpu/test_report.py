"""The files of a replay: one self-contained page, and tables that say the same."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer, models

import gpu
from fly_theory.errors import InvalidInput
from gpu.replaying.files import write
from gpu.replaying.modes import MODES
from tests.gpu import replay_traces as traces

SPECS = ["lossless", "lenience:l=0.5", "min-p:base=0.2"]
EVIL = '<script src="http://evil.example/x.js"></script>&"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of two models in which half of the tokens decode to markup, replayed into a folder."""
    root = tmp_path_factory.mktemp("report")
    names = [EVIL + str(i) if i % 2 else f" word{i}" for i in range(traces.V)]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token=names[0]))
    tokenizer.save(str(root / "tokenizer.json"))
    trace = gpu.write_trace(
        root / "trace",
        traces.blocks(9),
        tokenizer=root / "tokenizer.json",
        source={
            "models": {"target": {"name": "<b>big</b>"}, "draft": {"name": "small"}},
            "settings": {"temperature": 1.0, "context_temperature": 0.7},
            "prompts": [{"id": f"prompt-{i}"} for i in range(3)],
        },
    )
    gpu.replay(trace, SPECS, out=root / "out")
    return root / "out"


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


class Structure(HTMLParser):
    """Elements in balance, attributes that refer somewhere, ids, and the running text."""

    VOID = frozenset({"meta", "br", "wbr", "path", "use"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(attributes)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def _attributes(self, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
                self.references.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
            self.references += re.findall(r"url\(([^)]*)\)", value or "")


def test_the_page_is_well_formed_and_refers_to_nothing_outside(page: str) -> None:
    structure = Structure(page)
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))
    for reference in structure.references:
        assert reference.startswith("#"), reference
        assert reference[1:] in structure.ids, reference
    assert not {"link", "iframe", "img", "object", "embed", "base"} & set(structure.tags)
    assert structure.tags.count("script") == 1
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_text_of_the_models_is_escaped(page: str) -> None:
    assert EVIL in "".join(Structure(page).text)
    assert "evil.example/x.js&#34;" in page
    assert "<b>big</b>" in "".join(Structure(page).text)


def test_the_page_has_every_part(page: str, document: dict) -> None:
    text = " ".join("".join(Structure(page).text).split())
    for heading in ("Figures", "Lossy rules against what they are matched to",
                    "Truncation rules against the truncated target", "What acceptance costs",
                    "How the divergence is spread", "The worst positions", "What the figures mean", "Read with care",
                    "Settings and provenance"):  # fmt: skip
        assert heading in text
    for rule in document["rules"]:
        assert rule["rule"] in text
        for case in rule["worst"]:
            assert f"Prompt {case['prompt']}, block {case['block']}, draft token {case['position'] + 1}" in text
    for note in document["notes"]:
        assert note in text
    assert "the target's own text at temperature 0.7" in text
    # Two plots, a diagram a worst position (lossless has none), and one a commonest mode if the same is not shown yet.
    of_modes = 0
    for rule in document["rules"]:
        shown: set[tuple[int, int]] = set()
        for mode in sorted(rule["modes"], key=lambda mode: -mode["rate"]["mean"])[:3]:
            places = [(case["block"], case["position"]) for case in mode["worst"]]
            shown.update([place for place in places if place not in shown][:1])
        of_modes += len(shown)
    assert of_modes >= 4
    assert page.count("<svg") == 2 + 2 * 3 + of_modes
    assert "No position differs from the target by more than rounding." in text


def test_the_head_of_the_page_tells_what_stands_out(page: str, document: dict) -> None:
    lossless, lenient, _ = document["rules"]
    findings = page.split("<h2>")[0]
    assert f"Lossless verification makes {lossless['figures']['tokens_per_call']['mean']:.2f}" in findings
    assert f"lenience:l=0.5 makes the most, {lenient['figures']['tokens_per_call']['mean']:.2f}" in findings


def test_the_report_is_the_same_every_time(folder: Path, page: str, tmp_path: Path) -> None:
    replayed = gpu.replay(folder.parent / "trace", SPECS)
    write(replayed, tmp_path / "again")
    assert (tmp_path / "again" / "report.html").read_text(encoding="utf-8") == page


def test_json_has_the_figures_and_where_they_come_from(folder: Path, document: dict) -> None:
    replayed = gpu.replay(folder.parent / "trace", SPECS)
    for rule, result in zip(document["rules"], replayed, strict=True):
        assert rule["rule"] == result.spec
        assert {name: figure["mean"] for name, figure in rule["figures"].items()} == {
            name: figure.mean for name, figure in result.figures.items()
        }
        assert sum(rule["tv_histogram"]["counts"]) == document["trace"]["positions"] == 36
    provenance = document["provenance"]
    assert provenance["trace"]["sha256"] == replayed.trace.sha256
    assert {"python", "torch", "numpy", "fly-theory"} <= set(provenance["versions"])
    assert provenance["seed"] is None
    assert provenance["device"].startswith("cpu")
    assert document["settings"]["temperature"] == 1


def test_parquet_has_one_row_a_rule_that_says_what_json_says(folder: Path, document: dict) -> None:
    table = pq.read_table(folder / "results.parquet")
    rows = table.to_pylist()
    assert [row["rule"] for row in rows] == [rule["rule"] for rule in document["rules"]]
    for row, rule in zip(rows, document["rules"], strict=True):
        for group, prefix in (("figures", ""), ("matched", "matched_"), ("baseline", "baseline_")):
            for name, figure in (rule[group] or {}).items():
                assert row[f"{prefix}{name}"] == float(figure["mean"])
                low, high = figure["interval"] or (None, None)
                assert (row[f"{prefix}{name}_low"], row[f"{prefix}{name}_high"]) == (low, high)
        assert row["tv_counts"] == rule["tv_histogram"]["counts"]
    assert rows[0]["matched_tv"] is None
    assert "provenance" in json.loads(table.schema.metadata[b"fly-theory"])


def test_failure_modes_are_in_the_page_and_in_a_table_that_says_what_json_says(
    folder: Path, page: str, document: dict
) -> None:
    section = " ".join("".join(Structure(page).text).split()).partition("Failure modes Share of")[2]
    rows = pq.read_table(folder / "modes.parquet").to_pylist()
    expected = [(rule["rule"], mode) for rule in document["rules"] for mode in rule["modes"]]
    expected += [(None, mode) for mode in document["pair_modes"]]
    assert len(rows) == len(expected) == 3 * 8 + 3
    for row, (spec, mode) in zip(rows, expected, strict=True):
        assert (row["rule"], row["mode"]) == (spec, mode["mode"])
        assert row["rate"] == mode["rate"]["mean"]
        assert [row["rate_low"], row["rate_high"]] == mode["rate"]["interval"]
        assert row["explained"] == (mode["explained"] and mode["explained"]["mean"])
        assert MODES[mode["mode"]].label in section
        assert MODES[mode["mode"]].meaning[1:] in section
    common = [mode for mode in document["rules"][1]["modes"] if mode["rate"]["mean"]]
    assert common
    for mode in common:
        assert f"{100 * mode['rate']['mean']:.1f} %{100 * mode['explained']['mean']:.1f} % of TV" in section
    assert f"(z = {document['consistency']['z']:.2f}" in section


def test_a_page_without_modes_has_no_such_section(folder: Path, tmp_path: Path) -> None:
    gpu.replay(folder.parent / "trace", ["cos:w=0.5"], modes=False, out=tmp_path / "out")
    text = "".join(Structure((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text)
    assert "Failure modes" not in text
    assert not (tmp_path / "out" / "modes.parquet").exists()


def test_the_page_shows_what_a_deferring_block_rule_suffers_from(folder: Path, tmp_path: Path) -> None:
    """At theta = 0 the gate is always open: what ends a round is the window, or the boundary."""
    replayed = gpu.replay(folder.parent / "trace", ["fly:theta=0,window=2", "fly:theta=1.1,window=2"])
    found, shut = ({mode.mode.name: mode for mode in result.modes} for result in replayed.block_rules)
    assert found["dead_gate"].rate.mean == 0
    assert found["boundary_loss"].rate.mean + found["window_kill"].rate.mean > 0
    lost = found["boundary_loss"].explained.mean + found["window_kill"].explained.mean
    assert 0 < lost <= 1
    # A gate that is never open ends every round that ends, and all that is lost is lost to it.
    assert shut["dead_gate"].rate.mean == pytest.approx(1 - shut_rounds(replayed), abs=1e-12)
    assert shut["dead_gate"].explained.mean == pytest.approx(1, abs=1e-12)
    write(replayed, tmp_path / "out")
    text = " ".join("".join(Structure((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text).split())
    assert "dead gate" in text
    assert "100.0 % of lost" in text
    assert "Of the drafts that fly:theta=1.1,window=2 loses, 100.0 % [100.0, 100.0] are lost to: dead gate." in text


def shut_rounds(replayed: gpu.Replay) -> float:
    """The share of the blocks in which every draft is the target's argmax."""
    whole = [bool((b.target_logits[:-1].argmax(-1) == b.tokens).all()) for b in replayed.trace]
    return sum(whole) / len(whole)


def test_earlier_results_are_not_written_over_unless_asked(folder: Path, tmp_path: Path) -> None:
    trace, out = folder.parent / "trace", tmp_path / "out"
    out.mkdir()
    gpu.replay(trace, ["lossless"], out=out)
    before = (out / "results.json").read_bytes()
    with pytest.raises(InvalidInput, match="is not empty"):
        gpu.replay(trace, ["cos:w=0.5"], out=out)
    assert (out / "results.json").read_bytes() == before
    (out / "mine.txt").write_text("kept")
    gpu.replay(trace, sweeps=["cos:w=0.25:0.5:0.25"], out=out, overwrite=True)
    assert {"sweep-1.svg", "sweeps.parquet"} < {path.name for path in out.iterdir()}
    gpu.replay(trace, ["cos:w=0.5"], out=out, overwrite=True)
    assert json.loads((out / "results.json").read_text())["rules"][0]["rule"] == "cos:w=0.5"
    written = ["modes.parquet", "report.html", "results.json", "results.parquet"]
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", *written]
    gpu.replay(trace, ["cos:w=0.5"], out=out, overwrite=True, modes=False)
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", *written[1:]]
    with pytest.raises(InvalidInput, match="is a file"):
        gpu.replay(trace, ["lossless"], out=out / "mine.txt")


def _same(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
    draft[:] = target[: draft.shape[0]]


@pytest.mark.parametrize(
    ("made", "specs", "size"),
    [
        ({"count": 1, "k": 1, "v": 2}, ["lossless"], "1 position in 1 block of 1 draft token, 1 prompt,"),
        ({"count": 3, "edit": _same}, ["lossless", "lenience:l=0.5", "min-p:base=1"], "positions in 3 blocks of"),
        ({"count": 4, "temperature": 0}, ["lossless", "cos:w=0.5", "typical"], "3 prompts,"),
        ({"count": 4, "edit": _same}, [f"lenience:l={l / 50}" for l in range(1, 31)], "positions in 4 blocks of"),
    ],
    ids=["one position", "draft equals target", "greedy", "thirty settings"],
)
def test_extreme_traces_have_a_page_too(tmp_path: Path, made: dict, specs: list[str], size: str) -> None:
    gpu.replay(traces.write(tmp_path / "trace", **made), specs, out=tmp_path / "out")
    structure = Structure((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert structure.open == []
    assert all(text in "".join(structure.text) for text in (*specs, size))
    assert not re.search(r"\bnan\b", "".join(structure.text))


def test_a_page_without_block_efficiency_says_so(folder: Path, tmp_path: Path) -> None:
    gpu.replay(folder.parent / "trace", ["lossless", "cos:w=0.5"], temperature=0.5, out=tmp_path / "out")
    text = "".join(Structure((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text)
    assert "Block efficiency is not identified" in text
    assert "cos:w=0.5 accepts the most" in text
    assert "tokens per target call" not in text
