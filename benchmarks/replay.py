"""Rows a second of replay, all figures exact, against the softmax of the same logits and other yardsticks.

Everything is measured in one run on random float32 logits; figures are medians of 5 alternating repetitions, compile
time apart. One setting is lenience:l=0.5, twelve are of every kind that needs no sorting; mentored and cactus, which
sort the vocabulary, are two apart.

    python benchmarks/replay.py                      every part on CPU; needs an idle machine
    python benchmarks/replay.py pass --vocabulary 128256 --settings 12    (2: mentored and cactus)
    python benchmarks/replay.py memory
    python benchmarks/replay.py pass --device cuda
    python benchmarks/replay.py tail --trace PATH    a trace that `fly-theory capture` wrote

pass : time of the pass over that of torch.softmax of both logit tensors, which allocates its results, and of the same
    into memory that is there; rows a second; and the logits read, as a share of the bandwidth measured (on CUDA, where
    they come from the host, of the copy bandwidth).
verifier : the pass against one position and setting a call in plain torch, as released implementations verify: softmax
    of both rows, acceptance, residual, output, and the same figures from their definitions.
tail : certified figures of the twelve settings with a tail of 1e-4 in place of exact ones, on 8 blocks of a captured
    trace, since random rows have no such tails: time over that of the softmaxes; heads a row; the widths of some
    figures, relative to 1 + the figure; and how many exact figures lie outside their intervals.
memory : peak memory of a whole replay of 1,024 blocks over that of one of 64, each in a process of its own.
"""

import argparse
import itertools
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

import fly_theory as ft
import gpu
from fly_theory.divergence import js, kl, max_ratio, reverse_kl, total_variation
from fly_theory.rules.base import Rule
from gpu import TraceBlock
from gpu.replaying.bounding import bounded_values
from gpu.replaying.certified.seen import groups_of
from gpu.replaying.evaluation import Evaluator
from gpu.replaying.measures import LEAST, MOST, measure
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings

VOCABULARIES = (49_152, 128_256, 151_936)
ONE = ("lenience:l=0.5",)
TWELVE = (
    "lossless",
    "lenience:l=0.8",
    "lenience:l=0.5",
    "cos:w=0.25",
    "cos:w=0.5",
    "interpolation:l=0.5",
    "gated-ceiling:base=0.5,l=0.5",
    "min-p:base=0.1",
    "truncated-min-p:base=0.1",
    "typical:eps=0.09,delta=0.3",
    "eta:eps=0.09",
    "truncated-eta:eps=0.09",
)
SORTING = ("mentored:budget=0.1", "cactus:delta=0.1")
DRAFT_LENGTH, BLOCKS, REPETITIONS = 15, 8, 5
TAIL, WIDTHS = 1e-4, ("acceptance", "tv", "kl", "reverse_kl", "js", "max_ratio", "matched_kl")
CAPTURE = "fly-theory capture --target smollm2-135m --draft layerskip:10,20 --blocks 16 --draft-length 15 --out PATH"


def blocks(vocabulary: int, count: int, draft_length: int = DRAFT_LENGTH) -> Iterator[TraceBlock]:
    """Random pairs whose entropies are those of language models, draft tokens drawn from q."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        target = 3 * torch.randn(draft_length + 1, vocabulary, generator=generator)
        draft = target[:-1] + torch.randn(draft_length, vocabulary, generator=generator)
        tokens = torch.multinomial(torch.softmax(draft, -1), 1, generator=generator)[:, 0]
        yield TraceBlock(target, draft, tokens)


def medians(*runs: Callable[[], object], device: str) -> list[float]:
    """Seconds of each of the runs, in turn, as medians."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(REPETITIONS):
        for run, found in zip(runs, seconds, strict=True):
            begun = time.perf_counter()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            found.append(time.perf_counter() - begun)
    return [statistics.median(found) for found in seconds]


def bandwidth(device: str) -> float:
    """Bytes a second: read by a sum on CPU, copied from pinned memory on CUDA."""
    numbers = torch.ones(2**26, pin_memory=device == "cuda")
    run = numbers.sum if device == "cpu" else lambda: numbers.to("cuda", non_blocking=True)
    run()
    return numbers.nbytes / medians(run, device=device)[0]


def one_position(rule: Rule, target: torch.Tensor, draft: torch.Tensor) -> list[torch.Tensor]:
    """The figures of a rule at one position from its logits (V,)."""
    p, q = torch.softmax(target, -1), torch.softmax(draft, -1)
    accepted, residual = rule.verdict(p, q)
    out = accepted + (1 - accepted.sum()) * residual / residual.sum().clamp(min=1e-30)
    distances = [divergence(p, out) for divergence in (total_variation, kl, reverse_kl, js, max_ratio)]
    return [*distances, out.argmax() == p.argmax(), accepted.sum()]


def measure_pass(vocabulary: int, specs: Sequence[str], device: str, reading: float) -> None:
    """Print one row of the table."""
    data = [_on(block, device) for block in blocks(vocabulary, BLOCKS)]
    evaluate = Evaluator(_plan(specs, device, compiled=True))
    begun = time.perf_counter()
    evaluate(data[0])
    compiling = time.perf_counter() - begun

    def the_pass() -> None:
        for block in data:
            evaluate(block)

    fresh, placed, ours = medians(*_softmaxes(data), the_pass, device=device)
    logits, rows = 2 * sum(block.draft_logits.nbytes for block in data), BLOCKS * DRAFT_LENGTH
    read = logits / ours / reading
    print(
        f"{vocabulary:>10,}  {len(specs):>8}  {rows / ours:>9,.0f}  {ours / fresh:>10.2f}x  "
        f"{ours / placed:>11.2f}x  {read:>9.1%}  {compiling:>8.0f} s",
        flush=True,
    )
    for note in sorted(evaluate.notes):
        print(f"            {note}")


def measure_verifier(vocabulary: int, specs: Sequence[str], device: str) -> None:
    """Print one row of the table."""
    block = _on(next(blocks(vocabulary, 1)), device)
    evaluate = Evaluator(_plan(specs, device, compiled=True))
    evaluate(block)
    rules = [ft.rule(spec) for spec in specs]

    def one_by_one() -> None:
        for rule in rules:
            one_position(rule, block.target_logits[0], block.draft_logits[0])

    slow, ours = medians(one_by_one, lambda: evaluate(block), device=device)
    print(f"{vocabulary:>10,}  {len(specs):>8}  {slow * DRAFT_LENGTH / ours:>9.1f}x", flush=True)


def measure_tail(path: Path, device: str) -> None:
    """Print the time of certified figures and how far they reach."""
    data = [_on(block, device) for block in itertools.islice(gpu.open_trace(path), BLOCKS)]
    plan = replace(_plan(TWELVE, device, compiled=False), bounded=True, tail=TAIL)
    fresh, placed, ours = medians(*_softmaxes(data), lambda: list(bounded_values(data, plan)), device=device)
    parts = list(groups_of(data, plan.settings, tail=TAIL))
    heads = torch.cat([part.vocabulary - part.unseen for part in parts])
    vocabulary = data[0].draft_logits.shape[-1]
    print(
        f"V={vocabulary:,}, {len(heads)} rows, tail {TAIL:g}: {ours / fresh:.1f}x softmax, {ours / placed:.1f}x in "
        f"place; {ours / len(heads) / vocabulary * 1e9:.0f} ns a token; median heads {int(heads.median()):,}"
    )
    exact = replace(plan.settings, dtype="float64")
    widths: dict[str, list[float]] = {name: [] for name in WIDTHS}
    outside = 0
    for block, (_, of_rules) in zip(data, bounded_values(data, plan), strict=True):
        for rule, found in zip(plan.rules, of_rules, strict=True):
            for name, values in measure(rule, *exact.pair(block), block.tokens).items():
                for value, low, high in zip(values.tolist(), found[LEAST + name], found[MOST + name], strict=True):
                    outside += not low <= value <= high
                    if name in widths and math.isfinite(high):
                        widths[name].append((high - low) / (1 + value))
    print(f"exact figures outside their intervals: {outside}")
    for name, found in widths.items():
        print(f"{name:>12}  width median {statistics.median(found):.1e}, largest {max(found):.1e}")


def measure_memory() -> None:
    """Print the ratio of peaks."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = [_peak(Path(folder), count) for count in (64, 1024)]
    print(f"peak memory: {peaks[0]:,.0f} MB with 64 blocks, {peaks[1]:,.0f} MB with 1,024: {peaks[1] / peaks[0]:.3f}x")


def _peak(folder: Path, count: int) -> float:
    trace = gpu.write_trace(folder / str(count), blocks(16_384, count, draft_length=4), dtype="float16")
    program = (
        f"import gpu, resource; gpu.replay({str(trace)!r}, {list(ONE)!r}); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(run.stdout)


def _softmaxes(data: Sequence[TraceBlock]) -> tuple[Callable[[], object], Callable[[], object]]:
    """The softmax of the logits of both models, allocating its results and into memory that is there."""
    target = torch.cat([block.target_logits[:-1] for block in data]).float()
    draft = torch.cat([block.draft_logits for block in data]).float()
    room = torch.empty_like(target), torch.empty_like(draft)

    def fresh() -> None:
        torch.softmax(target, -1), torch.softmax(draft, -1)

    def placed() -> None:
        torch.softmax(target, -1, out=room[0]), torch.softmax(draft, -1, out=room[1])

    return fresh, placed


def _plan(specs: Sequence[str], device: str, *, compiled: bool) -> Plan:
    settings = ReplaySettings(temperature=1.0, device=device)
    return Plan(tuple(ft.rule(spec) for spec in specs), settings, compiled=compiled)


def _on(block: TraceBlock, device: str) -> TraceBlock:
    return TraceBlock(block.target_logits.to(device), block.draft_logits.to(device), block.tokens.to(device))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], "pass", "verifier", "tail", "memory"])
    parser.add_argument("--vocabulary", type=int, action="append")
    parser.add_argument("--settings", type=int, choices=[1, 2, 12], action="append")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--trace", type=Path, help="a captured trace, for the part `tail`")
    asked = parser.parse_args()
    parts = asked.parts or ["pass", "verifier", "tail", "memory"]
    cases = [
        (vocabulary, {1: ONE, 2: SORTING, 12: TWELVE}[settings])
        for vocabulary in asked.vocabulary or VOCABULARIES
        for settings in asked.settings or (1, 12, 2)
    ]
    print(f"{DRAFT_LENGTH * BLOCKS} rows, {asked.device}, {torch.get_num_threads()} threads; medians of {REPETITIONS}")
    with torch.inference_mode():
        if "pass" in parts:
            reading = bandwidth(asked.device)
            print(f"bandwidth {reading / 1e9:.1f} GB/s")
            print(
                f"{'V':>10}  {'settings':>8}  {'rows/s':>9}  {'/ softmax':>11}  {'/ in place':>12}  {'bandwidth':>9}  "
                f"{'compile':>10}"
            )
            for vocabulary, specs in cases:
                measure_pass(vocabulary, specs, asked.device, reading)
        if "verifier" in parts:
            print(f"\n{'V':>10}  {'settings':>8}  {'verifier / pass':>15}")
            for vocabulary, specs in cases:
                measure_verifier(vocabulary, specs, asked.device)
        if "tail" in parts and asked.trace:
            measure_tail(asked.trace, asked.device)
        elif "tail" in parts:
            print("tail is skipped without --trace PATH, which this makes: " + CAPTURE)
    if "memory" in parts:
        measure_memory()


if __name__ == "__main__":
    main()
