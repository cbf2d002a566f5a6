"""The verb `replay`: documents, tables and errors."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import gpu
from fly_theory.cli import application
from gpu.replaying.estimates import Estimate
from gpu.replaying.modes import commonest
from gpu.replaying.table import summary
from gpu.replaying.wording import half_width
from tests.gpu import replay_traces as traces


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traces.write(tmp_path_factory.mktemp("cli") / "trace", 9)


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(application(), ["replay", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_json_is_one_document_that_equals_the_library(folder: Path) -> None:
    code, out, _ = run(folder, "lossless", "lenience:l=0.5", "--temperature", 0.7, "--top-k", 5, "--json")
    document = json.loads(out)
    expected = gpu.replay(folder, ["lossless", "lenience:l=0.5"], temperature=0.7, top_k=5)
    assert code == 0
    assert [rule["rule"] for rule in document["rules"]] == ["lossless", "lenience:l=0.5"]
    assert document["rules"][1]["figures"]["tv"]["mean"] == expected["lenience:l=0.5"]["tv"].mean
    assert document["settings"]["top_k"] == 5


def test_the_table_has_a_line_a_rule_and_the_files_are_named(folder: Path, tmp_path: Path) -> None:
    code, out, _ = run(folder, "lossless", "min-p:base=0.2", "--out", tmp_path / "out")
    assert code == 0
    replayed = gpu.replay(folder, ["lossless", "min-p:base=0.2"])
    figures, _, modes = out.partition("Commonest failure modes")
    lines = {line.split("  ")[0]: line for line in figures.splitlines()}
    assert f"{replayed['lossless']['tokens_per_call'].mean:.2f}" in lines["lossless"]
    assert f"{replayed['min-p:base=0.2']['tv'].mean:.4f}" in lines["min-p:base=0.2"]
    assert "lossless for p_A" in out
    first, *_ = commonest(replayed["min-p:base=0.2"].modes)
    assert f"min-p:base=0.2  {first.mode.label} {100 * first.rate.mean:.1f} %" in modes
    assert "Commonest" not in run(folder, "min-p:base=0.2", "--no-modes")[1]
    assert str(tmp_path / "out" / "report.html") in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "modes.parquet",
        "report.html",
        "results.json",
        "results.parquet",
    }
    code, _, err = run(folder, "lossless", "--out", tmp_path / "out")
    assert code == 2
    assert "is not empty" in err
    assert run(folder, "lossless", "--out", tmp_path / "out", "--force")[0] == 0


def test_what_stands_behind_plus_minus_reaches_the_farther_end_of_an_interval() -> None:
    assert half_width(Estimate(1.5, 1.25, 1.75), digits=2) == "0.25"
    assert half_width(Estimate(1.25, 1.0, 1.75), digits=2) == "0.50"


def test_a_narrow_terminal_leaves_columns_out_and_says_so(folder: Path) -> None:
    replayed = gpu.replay(folder, ["lossless", "min-p:base=0.2"])
    for width in (60, 80, 100, 200):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(*summary(replayed, width=width), sep="\n")
        text = console.export_text()
        assert "tokens" in text
        assert "…" not in text
        assert ("too narrow" in text) == (width < 150)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["TRACE", "lenienc:l=0.5"], "Did you mean 'lenience'"),
        (["TRACE", "lenience:l=0"], "outside its domain"),
        (["nowhere", "lossless"], "nowhere is no trace"),
        (["TRACE", "lossless", "lossless"], "lossless twice"),
        (["TRACE", "lossless", "--device", "cuda"], "torch sees no CUDA device"),
        (["TRACE", "lossless", "--top-p", "1.5"], "top_p=1.5"),
    ],
)
def test_errors_are_messages(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = run(*(folder if argument == "TRACE" else argument for argument in arguments))
    assert code == 2
    assert message in err
    assert err.lstrip().startswith("Error: ")  # no bar is left above it
    assert out == ""
