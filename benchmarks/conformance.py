"""Time of the conformance check: an exact joint law over two positions, and the refutation of a small fault on samples.

    python benchmarks/conformance.py

Each figure is the median of five runs in one process. Exits with status 1 when the exact law takes more than five
seconds, or the refutation of a deviation of TV 0.03 more than twenty.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table

import fly_theory as ft
from fly_theory.report import show

RUNS = 5
TARGET = [["1/2", "1/4", "1/4"], ["1/6", "1/3", "1/2"], ["1/5", "2/5", "2/5"]]
DRAFT = [["1/4", "1/4", "1/2"], ["1/3", "1/3", "1/3"], ["1/3", "1/6", "1/2"]]


def ratio_rule(target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[int]:
    for i, x in enumerate(draft_tokens):
        p, q = target_probs[i], draft_probs[i]
        if rng.random() * q[x] >= p[x]:
            return [*draft_tokens[:i], rng.choice([max(a - b, 0) for a, b in zip(p, q, strict=True)])]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def sometimes_redraws(target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[int]:
    """Redraws from the target instead of the residual in 24 % of rejections, and hides its uniforms in logarithms."""
    for i, x in enumerate(draft_tokens):
        p, q = target_probs[i], draft_probs[i]
        if math.log(rng.random() or 5e-324) >= math.log(p[x] / q[x]):
            left = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
            return [*draft_tokens[:i], rng.choice(p if rng.random() < 0.24 else left)]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def exactly() -> str:
    report = ft.conformance(ratio_rule, DRAFT, target=TARGET, length=2)
    assert report.verdict == "lossless"
    assert report.settings["method"] == "exact execution"
    return f"TV {report.tv}"


def refuted(seed: int) -> str:
    report = ft.conformance(
        sometimes_redraws, ["3/4", "1/4"], target=["1/2", "1/2"], length=1, seed=seed, resolution=0.025
    )
    assert report.verdict == "lossy"
    assert report.settings["method"] == "samples"
    return f"TV {show(report.tv)} after {report.settings['calls']} calls"


def main() -> int:
    tasks: list[tuple[str, Callable[[int], str], float]] = [
        ("exact joint laws, K and positions up to 2, V = 3", lambda _: exactly(), 5.0),
        (f"refutation of TV {show(Fraction(24, 100) * Fraction(1, 8))} on samples", refuted, 20.0),
    ]
    table = Table("task", "median of 5, s", "allowed, s", "found in the last run")
    slow = 0
    for name, task, allowed in tasks:
        times, found = [], ""
        for run in range(RUNS):
            start = time.perf_counter()
            found = task(run)
            times.append(time.perf_counter() - start)
        slow += statistics.median(times) > allowed
        table.add_row(name, f"{statistics.median(times):.2f}", f"{allowed:g}", found)
    Console().print(table)
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
