"""Sweeps: the settings they stand for, their curves and files, and what is no sweep."""

from fractions import Fraction
from pathlib import Path

import pytest
from matplotlib.collections import PolyCollection
from pyarrow import parquet
from typer.testing import CliRunner

import gpu
from fly_theory.cli import application
from fly_theory.errors import InvalidInput, ParameterError
from gpu.replaying.sweep import Sweep
from gpu.replaying.sweep_plots import sweep_curves
from tests.gpu import replay_traces as traces


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    return gpu.open_trace(traces.write(tmp_path_factory.mktemp("swept") / "trace", 12, k=6, temperature=0))


@pytest.mark.parametrize(
    ("text", "parameter", "values", "first", "last"),
    [
        ("fly:theta=0:1:0.1", "theta", 11, "fly:theta=0,window=6", "fly:theta=1,window=6"),
        ("fly:theta=0.2,window=0:5:2", "window", 3, "fly:theta=0.2,window=0", "fly:theta=0.2,window=4"),
        ("fly:window=2@1:6:1", "K", 6, "fly:theta=0.3,window=2@1", "fly:theta=0.3,window=2@6"),
        ("lossless@2:4:2", "K", 2, "lossless@2", "lossless@4"),
        ("lenience:l=0.1:1:0.1", "l", 10, "lenience:l=0.1", "lenience:l=1"),
        ("lenience:l=1/3:1:1/3", "l", 3, "lenience:l=1/3", "lenience:l=1"),
        ("fly:theta=0.5:0.5:1@3", "theta", 1, "fly:theta=0.5,window=6@3", "fly:theta=0.5,window=6@3"),
    ],
)
def test_a_sweep_stands_for_settings(text: str, parameter: str, values: int, first: str, last: str) -> None:
    sweep = Sweep.parse(text)
    assert sweep.parameter == parameter
    assert len(sweep.values) == len(sweep.settings) == values
    assert [sweep.settings[0].spec, sweep.settings[-1].spec] == [first, last]


def test_values_are_exact() -> None:
    assert Sweep.parse("fly:theta=0:1:0.1").values == tuple(Fraction(i, 10) for i in range(11))


def test_points_are_the_settings_asked_for_one_by_one(trace: gpu.Trace) -> None:
    swept = gpu.replay(trace, sweeps=["fly:theta=0:1:0.25,window=2", "lenience:l=0.5:1:0.25"])
    apart = gpu.replay(
        trace,
        [f"lenience:l={l}" for l in (0.5, 0.75, 1)] + [f"fly:theta={t},window=2" for t in (0, 0.25, 0.5, 0.75, 1)],
    )
    assert swept.rules == apart.rules
    assert swept.block_rules == apart.block_rules
    assert [point.value for point in swept.sweeps[0].points] == [0, 0.25, 0.5, 0.75, 1]


def test_a_setting_that_is_asked_for_twice_is_evaluated_once(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, ["fly:theta=0.5,window=2"], sweeps=["fly:theta=0:1:0.5,window=2", "fly:window=1:2:1"])
    specs = [result.spec for result in replayed.block_rules]
    assert specs[0] == "fly:theta=0.5,window=2"
    assert len(specs) == len(set(specs)) == 5
    assert replayed.points_only == set(specs[1:])


def test_more_drafts_never_make_fewer_tokens_and_a_looser_gate_neither(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, sweeps=["lossless@1:6:1", "fly:theta=0:1:0.2,window=1"])
    lengths, gates = ([replayed[point.rule]["tokens_per_call"].mean for point in s.points] for s in replayed.sweeps)
    assert lengths == sorted(lengths)
    assert gates == sorted(gates, reverse=True)
    assert gates[0] > gates[-1]


def test_the_files_of_a_sweep(trace: gpu.Trace, tmp_path: Path) -> None:
    replayed = gpu.replay(
        trace,
        ["lossless"],
        sweeps=["fly-released:theta=0:1:0.5,window=2", "cos:w=0:1:0.5", "block@1:3:1"],
        out=tmp_path / "out",
    )
    rows = parquet.read_table(tmp_path / "out" / "sweeps.parquet").to_pylist()
    assert [(row["parameter"], row["value"]) for row in rows] == [
        *(("theta", v) for v in (0, 0.5, 1)),
        *(("w", v) for v in (0, 0.5, 1)),
        *(("K", v) for v in (1, 2, 3)),
    ]
    for row in rows:
        figure = replayed[row["rule"]]["tokens_per_call"]
        assert (row["tokens_per_call"], row["tokens_per_call_low"], row["tokens_per_call_high"]) == (
            figure.mean,
            figure.low,
            figure.high,
        )
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {f"sweep-{n}.{suffix}" for n in (1, 2, 3) for suffix in ("pdf", "png", "svg")} < files
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("Bands are 95 % intervals") == 3
    # Points that nobody asked for by name stay out of the other tables.
    assert replayed.points_only == {row["rule"] for row in rows}
    assert "Block rules: tokens per call" not in page
    assert replayed.to_json()["sweeps"][2]["points"][0] == {"value": 1.0, "rule": "block@1"}


def test_curves_run_through_the_figures(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, sweeps=["fly:theta=0:1:0.25,window=1", "lenience:l=0.5:1:0.5"], temperature=0)
    of_fly, of_lenience = (sweep_curves(replayed, sweep) for sweep in replayed.sweeps)
    left, right = of_fly.axes
    drawn = left.get_lines()[0].get_ydata()
    expected = [replayed[point.rule]["tokens_per_call"].mean for point in replayed.sweeps[0].points]
    assert list(drawn) == pytest.approx(expected)
    assert left.get_xlabel() == right.get_xlabel() == "threshold θ"
    assert len(left.findobj(PolyCollection)) == 1
    strict = left.get_lines()[1].get_ydata()
    assert strict.max() - strict.min() == pytest.approx(0, abs=1e-12)
    assert [ax.get_ylabel() for ax in of_lenience.axes] == ["tokens per target call", "TV(p, out)"]
    assert {ax.get_xlabel() for ax in of_lenience.axes} == {"l of lenience"}


def test_no_two_curves_of_a_legend_look_the_same(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, sweeps=["fly:theta=0:1:0.5,window=1"], temperature=0)
    (legend,) = sweep_curves(replayed, replayed.sweeps[0]).legends
    looks = [(line.get_color(), line.get_linestyle()) for line in legend.get_lines()]
    assert len(looks) == len(set(looks)) == 6


def test_without_block_efficiency_the_curve_is_that_of_acceptance(trace: gpu.Trace) -> None:
    replayed = gpu.replay(trace, sweeps=["lenience:l=0.5:1:0.5", "block@1:2:1"], temperature=1)
    assert sweep_curves(replayed, replayed.sweeps[0]).axes[0].get_ylabel() == "acceptance probability"
    assert "not identified" in sweep_curves(replayed, replayed.sweeps[1]).axes[0].get_title()


def test_the_command_takes_sweeps_alone(trace: gpu.Trace) -> None:
    arguments = ["replay", str(trace.path), "--sweep", "fly:theta=0:1:0.5,window=2", "--sweep", "lossless@1:2:1"]
    result = CliRunner().invoke(application(), arguments)
    assert result.exit_code == 0
    rows = {line.split()[0] for line in result.stdout.splitlines() if line.strip()}
    assert {"fly:theta=0,window=2", "fly:theta=0.5,window=2", "fly:theta=1,window=2", "lossless@2"} <= rows


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("fly:theta=0.3", InvalidInput, "has 0 ranges"),
        ("fly:theta=0:1:0.1,window=0:6:1", InvalidInput, "has 2 ranges"),
        ("fly:theta=0:1:0", InvalidInput, "STEP > 0"),
        ("fly:theta=1:0:0.1", InvalidInput, "LOW <= HIGH"),
        ("fly:theta=0:1:0.0001", InvalidInput, "at most 1000"),
        ("fly:theta=a:1:0.1", InvalidInput, "'a:1:0.1' is no range of numbers"),
        ("lenience:l=0:1:0.5", ParameterError, "outside its domain"),
        ("fly:window=0:1:0.5", ParameterError, "cannot be read"),
        ("fly@1:9:1", InvalidInput, "draft_length=7"),
    ],
)
def test_what_is_no_sweep(trace: gpu.Trace, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        gpu.replay(trace, sweeps=[text])
    assert message in str(raised.value)
