"""The compiled pass against plain evaluation, chunks cut to the memory there is, errors compiled code cannot raise."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.utils
import torch._inductor

import fly_theory as ft
from fly_theory.errors import ZeroResidualError
from fly_theory.rules.base import Rule, Verdict
from gpu import TraceBlock
from gpu.replaying import evaluation
from gpu.replaying.compilation import worth_compiling
from gpu.replaying.compilation.sweeps import order_by_sweeps
from gpu.replaying.elementary import largest, log, log_of_one_and_share
from gpu.replaying.evaluation import Evaluator
from gpu.replaying.measures import Pair
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tallying import tally_blocks
from tests.gpu import replay_traces as traces

# Longer than one tile of a row.
V = 4608


def plan(*rules: Rule | str, **more: Any) -> Plan:
    resolved = tuple(ft.rule(rule) if isinstance(rule, str) else rule for rule in rules)
    return Plan(resolved, ReplaySettings(temperature=1.0, dtype=more.pop("dtype", "float32")), **more)


def block(seed: int = 0, v: int = V) -> TraceBlock:
    def hide(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        draft[1, : v // 3] = -torch.inf
        target[2, v // 2 :] = -torch.inf

    return next(traces.blocks(1, v=v, seed=seed, edit=hide))


def assert_close(found: list[dict[str, torch.Tensor]], expected: list[dict[str, torch.Tensor]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert ours[name].tolist() == pytest.approx(theirs[name].tolist(), rel=2e-6, abs=2e-6), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_the_compiled_pass_agrees_with_plain_evaluation() -> None:
    """Rows with and without common support, longer than a tile, and a rule that has every kind of measure."""
    spec = "typical:eps=0.001,delta=0.3"
    fast, plain = Evaluator(plan(spec, compiled=True)), Evaluator(plan(spec))
    for seed in range(3):
        assert_close(fast(block(seed)), plain(block(seed)))
    assert fast.notes == set()
    # Whatever is compiled is found on disk by the next process.
    assert torch._dynamo.utils.counters["inductor"]["fxgraph_cache_bypass"] == 0


class Branching(Rule):
    """Decides on a value, which cannot be traced."""

    name = "branching"

    def verdict(self, p: torch.Tensor, q: torch.Tensor) -> Verdict:
        half = 2 if bool(q[0, 0] < 2) else 3
        return Verdict(accepted=torch.minimum(p, q) / half, residual=p)


class Hollow(Rule):
    """Rejects and has nothing to redraw from."""

    name = "hollow"

    def verdict(self, p: torch.Tensor, q: torch.Tensor) -> Verdict:
        return Verdict(accepted=q / 2, residual=0 * p)


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced is run as it is traced."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, *_, **__: graph)


@pytest.mark.usefixtures("uncompiled")
def test_every_rule_is_traced_in_one_graph_that_says_what_the_rule_says() -> None:
    fast, plain = (Evaluator(plan(*traces.SPECS, compiled=compiled)) for compiled in (True, False))
    assert_close(fast(block()), plain(block()))
    assert fast.notes == set()


@pytest.mark.usefixtures("uncompiled")
def test_what_cannot_be_traced_is_evaluated_as_it_is() -> None:
    fast, plain = (Evaluator(plan("lossless", Branching(), compiled=compiled)) for compiled in (True, False))
    assert_close(fast(block()), plain(block()))
    (note,) = fast.notes
    assert note.startswith("Not compiled, and so slower: branching (")


def test_a_machine_without_a_compiler_evaluates_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def broken(*_: Any, **__: Any) -> None:
        tries.append(None)
        msg = "no C++ compiler found\nmore about it"
        raise RuntimeError(msg)

    monkeypatch.setattr(torch._inductor, "compile", broken)
    fast, plain = (Evaluator(plan("lossless", "cos:w=0.5", compiled=compiled)) for compiled in (True, False))
    assert_close(fast(block()), plain(block()))
    assert fast.notes == {"Not compiled, and so slower: all rules (no C++ compiler found)."}
    assert len(tries) == 1


@pytest.mark.usefixtures("uncompiled")
def test_a_residual_without_mass_is_an_error_in_the_compiled_pass_too() -> None:
    with pytest.raises(ZeroResidualError, match=r"hollow rejects with probability .* in row 0"):
        Evaluator(plan(Hollow(), compiled=True))(block())


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_rows_that_do_not_fit_are_halved_and_the_notes_say_so(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    seen: list[int] = []
    whole = evaluation.measure_rows

    def tight(rule: Rule, pair: Pair, *rest: Any, **more: Any) -> Any:
        seen.append(len(pair.p))
        if len(pair.p) > 1:
            raise error
        return whole(rule, pair, *rest, **more)

    plans = plan("lenience:l=0.5", "min-p:base=0.2", dtype="float64")
    blocks = list(traces.blocks(2, k=3))
    expected = tally_blocks(blocks, plans)
    monkeypatch.setattr(evaluation, "measure_rows", tight)
    tallies = tally_blocks(blocks, plans)
    assert max(seen) == 3
    assert seen.count(3) == 1  # the second block is cut up at once
    assert tallies.notes == tuple(
        f"Rows of a block did not fit in memory together and were evaluated {rows} at a time." for rows in (1, 2)
    )
    assert tallies.rules == expected.rules
    assert tallies.draft == expected.draft


def test_another_runtime_error_is_not_taken_for_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "something else"
        raise RuntimeError(msg)

    monkeypatch.setattr(evaluation, "measure_rows", broken)
    with pytest.raises(RuntimeError, match="something else"):
        tally_blocks(traces.blocks(1), plan("lossless"))


_REPLAY = """
import resource, sys, gpu
gpu.replay(sys.argv[1], ["lenience:l=0.5"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    """The longer trace holds 150 MB of logits; benchmarks/replay.py measures the same at a larger scale."""
    peaks = []
    for count in (16, 256):
        folder = traces.write(tmp_path / str(count), count, v=16384, blocks_per_shard=8)
        run = [sys.executable, "-c", _REPLAY, str(folder)]
        peaks.append(int(subprocess.run(run, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] < 1.1 * peaks[0]


# -- how a stage is computed -------------------------------------------------------------------------------------------


def _graph(function: Any, *inputs: torch.Tensor) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode="fake")(*inputs)


def test_sweeps_wait_for_all_numbers_found_before_and_nothing_is_computed_twice() -> None:
    def stage(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        spread = ((x - x.mean(-1, keepdim=True)) ** 2).sum(-1)
        beyond = torch.where(x > x.amax(-1, keepdim=True) / 2, x, 0).sum(-1, keepdim=True)
        return spread, (x.mean(-1, keepdim=True) + beyond * x).amax(-1)

    x = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    ordered = _graph(stage, x)
    order_by_sweeps(ordered.graph)
    ordered.recompile()
    for ours, plain in zip(ordered(x), stage(x), strict=True):
        assert torch.equal(ours, plain)
    made = [str(node.target) for node in ordered.graph.nodes]
    assert made.count("aten.mean.dim") == 1
    # Mean and threshold of the first sweep are held together, the sum of the second one alone.
    assert [len(node.args[0]) for node in ordered.graph.nodes if "cat" in str(node.target)] == [2, 1]
    first_wide = next(at for at, node in enumerate(ordered.graph.nodes) if "sub.Tensor" in str(node.target))
    assert first_wide > made.index("aten.as_strided.default")


# -- logarithms and maxima ---------------------------------------------------------------------------------------------


def _traced(function: Any, *inputs: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = _graph(function, *inputs)(*inputs)
    return result


def test_logarithms_of_the_compiled_pass_agree_with_the_library() -> None:
    generator = torch.Generator().manual_seed(0)
    tiny = torch.finfo(torch.float32).smallest_normal
    x = torch.cat([torch.logspace(-37.9, 38, 20001), torch.tensor([tiny, 1.0]), 1 + 0.01 * torch.randn(9999)])
    exact = x.double().log()
    found = _traced(log, x).double()
    assert float(((found - exact).abs() / exact.abs().clamp(min=1)).max()) < 2e-7
    whole = torch.rand(20000, generator=generator)
    part = whole * torch.rand(20000, generator=generator)
    part[:3], whole[:2] = torch.tensor([0.0, 0.0, 0.0]), torch.tensor([0.0, 1.0])
    shares = torch.where(whole > 0, part.double() / whole.double(), 0)
    assert float((_traced(log_of_one_and_share, part, whole).double() - shares.log1p()).abs().max()) < 2e-7


def test_a_logarithm_is_finite_where_there_is_none() -> None:
    nothing = torch.tensor([0.0, 1e-45, 1e-39])
    for found in (log(nothing), _traced(log, nothing)):
        assert bool(found.isfinite().all())
        assert bool((found < -87).all())


def test_the_largest_of_numbers_that_are_not_negative() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.rand(40, 60, generator=generator) ** 40, torch.zeros(1, 60), torch.full((1, 60), torch.inf)])
    for found in (largest(x), _traced(largest, x), largest(x.double()).float()):
        assert torch.equal(found, x.amax(-1))


@pytest.mark.usefixtures("uncompiled")
def test_a_block_is_evaluated_alike_whatever_came_before_it() -> None:
    plans = plan("lenience:l=0.5", compiled=True)
    later = Evaluator(plans)
    later(block(3))
    for ours, alone in zip(later(block(4)), Evaluator(plans)(block(4)), strict=True):
        assert all(torch.equal(ours[name], alone[name]) for name in alone)


@pytest.mark.usefixtures("uncompiled")
def test_an_evaluator_that_compiles_is_kept_for_the_next_shard(tmp_path: Path) -> None:
    """Also with a rule of a file, which no other process can be sent."""
    (tmp_path / "own.py").write_text(
        "from fly_theory.arrays import array_namespace\n"
        "from fly_theory.rules.base import Rule, Verdict\n\n\n"
        "class Own(Rule):\n"
        "    name = 'own'\n\n"
        "    def verdict(self, p, q):\n"
        "        accepted = array_namespace(p, q).minimum(p, q)\n"
        "        return Verdict(accepted=accepted, residual=p - accepted)\n"
    )
    for spec in ("lossless", f"{tmp_path / 'own.py'}:Own"):
        of_shard = plan(spec, compiled=True)
        assert evaluation.evaluator(of_shard) is evaluation.evaluator(of_shard)
        assert_close(evaluation.evaluator(of_shard)(block()), Evaluator(plan("lossless"))(block()))


def test_long_traces_are_worth_compiling() -> None:
    assert not worth_compiling(48 * 8, 49_152)
    assert worth_compiling(10**6, 49_152)
