"""Time of the exact joint law: at the size of interest, and how it grows with V, K, the text and the contexts.

    python benchmarks/exact.py

Each figure is the best of three runs of `ft.joint_law` on a random pair, in one process. Exits with status 1 when the
size of interest takes more than ten seconds.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table

import fly_theory as ft
from fly_theory.pairs import Pair

ALLOWED_SECONDS = 10.0
RULES = ("lossless", "block", "hierarchical-naive", "fly:theta=0.3,window=2")


def markov(vocabulary: int) -> ft.MarkovPair:
    tree = ft.ContextTreePair.random(vocabulary, 1, seed=0)
    return ft.MarkovPair(tree.target[1:], tree.draft[1:], tree.target[0])


def seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def row(pair: Pair, draft_length: int, length: int) -> list[float]:
    return [seconds(partial(ft.joint_law, ft.block_rule(spec), pair, draft_length, length)) for spec in RULES]


def show(console: Console, title: str, variable: str, rows: dict[int, list[float]]) -> None:
    table = Table(variable, *(f"{spec} [s]" for spec in RULES), title=title, title_justify="left")
    for value, times in rows.items():
        table.add_row(str(value), *(f"{t:.3f}" for t in times))
    console.print(table)


def main() -> int:
    console = Console()
    tree = ft.ContextTreePair.random
    sizes = {
        "a Markov pair (4 contexts)": row(markov(4), 5, 6),
        "a context tree of depth 5 (1,365 contexts)": row(tree(4, 5, seed=0), 5, 6),
    }
    console.print("V = 4, K = 5, 6 tokens of text: slowest of " + ", ".join(RULES))
    for what, times in sizes.items():
        console.print(f"  on {what}: {max(times):.3f} s")

    show(console, "K grows (V = 4, 6 tokens, Markov)", "K", {k: row(markov(4), k, 6) for k in range(1, 9)})
    show(console, "V grows (K = 4, 4 tokens, Markov)", "V", {v: row(markov(v), 4, 4) for v in range(2, 11, 2)})
    show(console, "The text grows (V = 4, K = 3, Markov)", "tokens", {n: row(markov(4), 3, n) for n in range(2, 11, 2)})
    trees = {depth: row(tree(4, depth, seed=0), 3, 6) for depth in range(6)}
    show(console, "Contexts grow (V = 4, K = 3, 6 tokens)", "depth", trees)
    exact = {k: row(tree(3, 2, seed=0, exact=True), k, 4) for k in range(1, 5)}
    show(console, "In fractions (V = 3, 4 tokens, tree of depth 2)", "K", exact)
    return int(max(map(max, sizes.values())) > ALLOWED_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
