"""Time of one verdict on one draft tree of 60 nodes at the vocabulary of a large model, a rule.

    python benchmarks/trees.py            prints a table: law and expected length of one tree, in milliseconds

Times are the best of seven. Rows come as they would from a model, validated elsewhere. The memory beyond the tree's own
rows is the most that one call allocates, in units of the target's rows (61, V).
"""

import time
import tracemalloc

import numpy as np

import fly_theory as ft
from fly_theory.distributions import trusted_inputs
from fly_theory.trees import expected_kept
from fly_theory.trees.tree import Parents

VOCABULARY, RUNS = 128_256, 7
RULES = (
    "lossless",
    "lenience:l=0.5",
    "min-p:base=0.1",
    "traversal",
    "k-seq",
    "greedy-path",
    "threshold-walk",
    "typical-path",
    "fly-tree:theta=0.3,window=1",
    "fly-tree-released:window=2",
    "fly-tree-sampled:window=2",
)


def topology() -> Parents:
    """4, then 3, 2 and 1 children a node: 60 nodes, 4 deep."""
    first, second, third = range(1, 5), range(5, 17), range(17, 41)
    below = [(node, count) for level, count in ((first, 3), (second, 2), (third, 1)) for node in level]
    return ((0,) * 4 + tuple(node for node, count in below for _ in range(count)))[:60]


def rows(rng: np.random.Generator, near: np.ndarray | None = None) -> np.ndarray:
    """61 peaked laws in float32, or laws near the given ones."""
    noise = rng.standard_normal((61, VOCABULARY), dtype=np.float32)
    weights = np.exp(3 * noise) if near is None else near * np.exp(noise)
    return weights / weights.sum(axis=-1, keepdims=True)


def main() -> None:
    rng, parents = np.random.default_rng(0), topology()
    target = rows(rng)
    draft = rows(rng, target)
    rank = [sum(other == parent for other in parents[:i]) for i, parent in enumerate(parents)]
    tokens = np.array([np.argsort(-draft[parent])[place] for parent, place in zip(parents, rank, strict=True)])
    print(f"{'rule':<30}{'siblings':<22}{'ms':>8}{'memory':>9}{'kept':>8}")
    for spec in RULES:
        rule = ft.tree_rule(spec)
        tree = ft.DraftTree(target, draft, tokens, parents, drawing=rule.drawings[0])
        with trusted_inputs():
            times = []
            for _ in range(RUNS):
                started = time.perf_counter()
                kept = expected_kept(rule.law(tree), tree)
                times.append(1000 * (time.perf_counter() - started))
            tracemalloc.start()
            rule.law(tree)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        memory = most / target.nbytes
        print(f"{spec:<30}{tree.drawing:<22}{min(times):>8.1f}{memory:>9.2f}{float(kept):>8.3f}")


if __name__ == "__main__":
    main()
