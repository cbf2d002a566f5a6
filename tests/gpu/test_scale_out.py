"""Scale-out: one result, whoever replays which shard, in whatever order, and however often a run was killed."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
import gpu
from fly_theory.errors import InvalidInput, MissingExtra, WorkerLost, ZeroResidualError
from fly_theory.files import json_text
from fly_theory.rules.base import Rule, Verdict
from gpu.replaying.by_shard import tally_by_shard
from gpu.replaying.executors import processes
from gpu.replaying.executors.serial import Serial
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.state import from_state, to_state
from gpu.replaying.tally import Tally
from gpu.replaying.tallying import Tallies, tally_blocks
from tests.gpu import fatal_rule
from tests.gpu import replay_traces as traces
from tests.gpu.test_tally import rows

ROOT = Path(__file__).parents[2]
BLOCKS = 12
SPECS = (*traces.SPECS, "fly:theta=0.3,window=2", "block", "lenience:l=0.5@2")


@pytest.fixture(scope="module")
def one_shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return traces.write(tmp_path_factory.mktemp("scale-out") / "trace", BLOCKS, blocks_per_shard=BLOCKS)


@pytest.fixture(scope="module")
def folders(one_shard: Path) -> dict[int, Path]:
    """One trace in 1, 2, 4 and 12 shards."""
    return {1: one_shard} | {
        n: gpu.reshard(one_shard, one_shard.parent / f"{n}", blocks_per_shard=BLOCKS // n) for n in (2, 4, 12)
    }


def document(replayed: gpu.Replay | dict[str, Any]) -> str:
    """A result without its provenance."""
    found = dict(replayed if isinstance(replayed, dict) else replayed.to_json())
    found.pop("provenance")
    return json_text(found)


def written(out: Path) -> str:
    """The results in a folder, which holds nothing else."""
    assert {path.name for path in out.iterdir()} == {"modes.parquet", "report.html", "results.json", "results.parquet"}
    return document(json.loads((out / "results.json").read_text()))


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from fly_theory.cli import main; main()", "replay", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


# -- the same result ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(one_shard: Path) -> str:
    return document(gpu.replay(one_shard, SPECS, dtype="float64"))


@pytest.mark.parametrize(("shards", "workers"), [(2, 1), (4, 1), (12, 1), (2, 2), (4, 2)])
def test_shards_and_processes_do_not_show(folders: dict[int, Path], expected: str, shards: int, workers: int) -> None:
    replayed = gpu.replay(folders[shards], SPECS, dtype="float64", workers=workers)
    assert document(replayed) == expected
    assert replayed.provenance["executor"] == ("this process" if workers == 1 else "2 processes")


@pytest.mark.parametrize("shards", [2, 4, 12])
def test_shards_show_in_the_last_digit_at_most_where_a_tail_is_summed(folders: dict[int, Path], shards: int) -> None:
    specs = ["lossless", "lenience:l=0.5", "min-p:base=0.2"]
    whole, split = (gpu.replay(folders[n], specs, dtype="float64", tail=0.05) for n in (1, shards))
    assert split["lossless"].tv_histogram == whole["lossless"].tv_histogram
    ours, theirs = (list(_leaves(json.loads(document(replayed)))) for replayed in (split, whole))
    assert len(ours) == len(theirs)
    for found, expected in zip(ours, theirs, strict=True):
        assert found == (pytest.approx(expected, rel=1e-12, abs=1e-15) if isinstance(expected, float) else expected)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


class Shuffled:
    """Finishes the shards in a random order."""

    def run(
        self, trace: gpu.Trace, plan: Plan, shards: Iterable[int], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, Tallies]]:
        order = list(shards)
        random.Random(0).shuffle(order)
        return Serial().run(trace, plan, order, announce)


def test_the_order_in_which_shards_are_finished_does_not_show(folders: dict[int, Path]) -> None:
    trace = gpu.open_trace(folders[12])
    plan = Plan(tuple(ft.rule(spec) for spec in traces.SPECS), ReplaySettings(temperature=1.0))
    found = tally_by_shard(trace, plan, Shuffled())
    expected = tally_blocks(trace, plan)
    assert found == expected
    # Down to the order of prompts, which equality of dicts does not see.
    assert to_state(found) == to_state(expected)


@pytest.mark.slow
def test_ray_gives_the_same_result_and_takes_up_the_shard_of_a_lost_worker(
    folders: dict[int, Path], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    specs = ["lossless", "lenience:l=0.5", fatal_rule.SPEC]
    killing = fatal_rule.environment(tmp_path / "count", at=2, victim="worker")
    run = command(folders[4], *specs, "--dtype", "float64", "--ray", "--json", **killing)
    assert run.returncode == 0, run.stderr
    assert document(json.loads(run.stdout)) == document(gpu.replay(folders[4], specs, dtype="float64"))
    assert len((tmp_path / "count").read_bytes()) > 2


def test_ray_is_named_when_it_is_missing(one_shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"fly-theory\[ray\]"):
        gpu.replay(one_shard, ["lossless"], ray=True)


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_counts_blocks(folders: dict[int, Path]) -> None:
    seen: list[tuple[int, int]] = []
    gpu.replay(folders[4], ["lossless"], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, BLOCKS) for done in range(BLOCKS + 1)]


def test_no_more_shards_are_in_flight_than_there_are_workers(
    folders: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[int] = []

    class Threads(ThreadPoolExecutor):
        def submit(self, task: Any, path: Path, shard: int, plan: Plan) -> Any:
            submitted.append(shard)
            return super().submit(task, path, shard, plan)

    monkeypatch.setattr(processes.ProcessPool, "_pool", lambda pool, shards: Threads(max_workers=pool.workers))
    plan = Plan((ft.rule("lossless"),), ReplaySettings(temperature=1.0))
    found = processes.ProcessPool(3).run(gpu.open_trace(folders[12]), plan, range(BLOCKS), lambda blocks: None)
    for finished, _ in enumerate(found, start=1):
        assert len(submitted) - finished < 3
    assert sorted(submitted) == list(range(BLOCKS))


# -- lost workers ------------------------------------------------------------------------------------------------------


def test_the_shards_of_a_lost_worker_are_replayed_again(
    folders: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fatal_rule.environment(tmp_path / "count", at=2, victim="worker").items():
        monkeypatch.setenv(name, value)
    specs = ["lenience:l=0.5", fatal_rule.SPEC]
    seen: list[int] = []
    found = gpu.replay(folders[4], specs, workers=2, progress=lambda done, _: seen.append(done))
    assert document(found) == document(gpu.replay(folders[4], specs))
    assert len((tmp_path / "count").read_bytes()) > 4
    assert seen == [0, 3, 6, 9, 12]


def test_a_shard_that_loses_every_worker_is_given_up(
    one_shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in fatal_rule.environment(tmp_path / "count", at=1, victim="worker").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processes, "RETRIES", 0)
    with pytest.raises(WorkerLost, match="lost 1 times while shard 0 of"):
        gpu.replay(one_shard, [fatal_rule.SPEC], workers=2)


class Hollow(Rule):
    name = "hollow"

    def verdict(self, p: Any, q: Any) -> Verdict:
        return Verdict(accepted=q / 2, residual=0 * p)


def test_an_error_in_a_worker_is_that_of_this_process(one_shard: Path) -> None:
    with pytest.raises(ZeroResidualError, match="block 0: hollow rejects"):
        gpu.replay(one_shard, [Hollow()], workers=2, modes=False)


def test_a_rule_that_cannot_travel_is_refused(one_shard: Path, tmp_path: Path) -> None:
    source = tmp_path / "local_rule.py"
    source.write_text("from fly_theory.rules.lossless import Lossless\nclass Mine(Lossless):\n    name = 'mine'\n")
    with pytest.raises(InvalidInput, match="has to be importable by name"):
        gpu.replay(one_shard, [f"{source}:Mine"], workers=2)


# -- resuming ----------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def interrupted(folder: Path, specs: Iterable[str], out: Path, *, after: int, **options: Any) -> None:
    """A replay that is broken off after some blocks."""

    def progress(done: int, total: int) -> None:
        if done == after:
            raise Stop

    with pytest.raises(Stop):
        gpu.replay(folder, list(specs), out=out, progress=progress, **options)


def test_a_resumed_replay_skips_what_is_finished(folders: dict[int, Path], tmp_path: Path) -> None:
    out, specs = tmp_path / "out", ["lossless", "min-p:base=0.2", "fly:theta=0.3,window=2"]
    interrupted(folders[4], specs, out, after=7)
    assert {path.name for path in out.iterdir()} == {"partial"}
    assert {path.name for path in (out / "partial").iterdir()} == {"plan.json", "shard-00000.json", "shard-00001.json"}
    seen: list[int] = []
    resumed = gpu.replay(folders[4], specs, out=out, resume=True, progress=lambda done, _: seen.append(done))
    assert seen == [6, 7, 8, 9, 10, 11, 12]
    assert document(resumed) == document(gpu.replay(folders[4], specs)) == written(out)


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_stopped(folders: dict[int, Path], tmp_path: Path) -> None:
    out, specs = tmp_path / "out", ["lossless", "lenience:l=0.5", fatal_rule.SPEC]
    killing = fatal_rule.environment(tmp_path / "count", at=8, victim="parent")
    killed = command(folders[12], *specs, "--dtype", "float64", "--workers", 2, "--out", out, **killing)
    assert killed.returncode == -9
    finished = len(list((out / "partial").glob("shard-*.json")))
    assert 6 <= finished <= 8
    assert not (out / "results.json").exists()
    # Its workers do not outlive it.
    workers = [p for p in psutil.process_iter() if str(out) in _environment(p).get("FATAL_COUNT", "")]
    assert psutil.wait_procs(workers, timeout=20)[1] == []
    resumed = command(folders[12], *specs, "--dtype", "float64", "--resume", "--out", out, **killing)
    assert resumed.returncode == 0, resumed.stderr
    assert written(out) == document(gpu.replay(folders[12], specs, dtype="float64"))


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def test_results_are_written_over_only_on_demand(folders: dict[int, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted(folders[4], ["lossless"], out, after=4)
    with pytest.raises(InvalidInput, match="holds the beginning of a replay; go on with it"):
        gpu.replay(folders[4], ["lossless"], out=out)
    gpu.replay(folders[4], ["cos:w=0.5"], out=out, overwrite=True)
    assert written(out) == document(gpu.replay(folders[4], ["cos:w=0.5"]))
    with pytest.raises(InvalidInput, match="is not empty"):
        gpu.replay(folders[4], ["cos:w=0.5"], out=out, resume=True)
    with pytest.raises(InvalidInput, match="resume needs the folder"):
        gpu.replay(folders[4], ["lossless"], resume=True)


@pytest.mark.parametrize(
    ("specs", "options", "difference"),
    [
        (["lossless", "cos:w=0.25"], {}, r"plan.rules\[1\] is 'cos:w=0.5' there and 'cos:w=0.25' now"),
        (["lossless"], {}, "plan.rules is"),
        (["lossless", "cos:w=0.5"], {"temperature": 0.5}, "plan.settings.temperature is 1.0 there and 0.5 now"),
        (["lossless", "cos:w=0.5"], {"dtype": "float64"}, "plan.settings.dtype is 'float32' there"),
    ],
)
def test_a_partial_result_of_another_plan_is_refused(
    folders: dict[int, Path], tmp_path: Path, specs: list[str], options: dict[str, Any], difference: str
) -> None:
    out = tmp_path / "out"
    interrupted(folders[4], ["lossless", "cos:w=0.5"], out, after=4)
    with pytest.raises(InvalidInput, match="holds the beginning of another replay: " + difference):
        gpu.replay(folders[4], specs, out=out, resume=True, **options)
    assert (out / "partial" / "shard-00000.json").exists()


def test_a_partial_result_of_another_trace_or_a_damaged_one_is_refused(
    folders: dict[int, Path], tmp_path: Path
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    interrupted(folders[4], ["lossless"], out, after=4)
    interrupted(folders[4], ["cos:w=0.5"], other, after=4)
    with pytest.raises(InvalidInput, match="another replay: trace is"):
        gpu.replay(folders[2], ["lossless"], out=out, resume=True)
    shard = out / "partial" / "shard-00000.json"
    shard.write_bytes((other / "partial" / "shard-00000.json").read_bytes())
    with pytest.raises(InvalidInput, match=r"shard-00000\.json belongs to another replay"):
        gpu.replay(folders[4], ["lossless"], out=out, resume=True)
    shard.write_text("{")
    with pytest.raises(InvalidInput, match=r"shard-00000\.json cannot be read"):
        gpu.replay(folders[4], ["lossless"], out=out, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"workers": 0}, "workers=0"), ({"workers": 2.0}, "workers=2.0"), ({"workers": 2, "ray": True}, "with Ray")],
)
def test_bad_arguments(one_shard: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        gpu.replay(one_shard, ["lossless"], **options)


# -- the state of tallies ----------------------------------------------------------------------------------------------


@given(rows)
def test_a_tally_survives_its_state(blocks: list[tuple[int, list[float], float]]) -> None:
    tally = Tally()
    for number, (prompt, tvs, kl) in enumerate(blocks):
        tally.add(prompt, number, {"tv": tvs, "kl": [kl] * len(tvs), "ratio": [float("inf")]})
    state = json.loads(json.dumps(to_state(tally), allow_nan=False))
    assert from_state(Tally, state) == tally
    assert to_state(from_state(Tally, state)) == state


def test_tallies_survive_their_state(one_shard: Path) -> None:
    plan = Plan(tuple(ft.rule(spec) for spec in traces.SPECS), ReplaySettings(temperature=0.7, top_k=5))
    tallies = tally_blocks(gpu.open_trace(one_shard), plan)
    assert any(
        total.infinite for tally in tallies.rules for totals in tally.prompts.values() for total in totals.values()
    )
    assert from_state(Tallies, json.loads(json.dumps(to_state(tallies), allow_nan=False))) == tallies


@given(st.integers(-(2**2100), 2**2100), st.floats(allow_nan=False), st.text(), st.booleans())
def test_values_survive_their_state(number: int, real: float, text: str, flag: bool) -> None:
    kind = dict[tuple[int, str], list[float] | None]
    for value, annotation in (
        (number, int),
        (real, float),
        (text, str),
        (flag, bool),
        ({(number, text): [real]}, kind),
    ):
        found = from_state(annotation, json.loads(json.dumps(to_state(value), allow_nan=False)))
        assert (found, type(found)) == (value, type(value))
    assert from_state(kind, to_state({(number, text): None})) == {(number, text): None}


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_what_has_no_state_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="has no state"):
        to_state(value)
