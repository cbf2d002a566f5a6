"""Trials a second of the simulators, against verification one trial a call in torch, as released simulations do it.

Both sides draft K tokens from q, verify them against p and emit one more token, in the same run on the same machine:

    python benchmarks/simulate.py            prints a table: rates, ratios, and cost and memory up to 10^7 trials
    python benchmarks/simulate.py --quick    the same with a tenth of the trials
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

import fly_theory as ft
import simulators

VOCABULARY, DRAFT_LENGTH = 4, 10

Once = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def tokenwise_once(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """One round of token verification with target rows p (K+1, V) and draft rows q (K, V): the tokens emitted."""
    tokens = torch.multinomial(q, 1).squeeze(1)
    at = torch.arange(DRAFT_LENGTH)
    accepted = torch.rand(DRAFT_LENGTH) < p[at, tokens] / q[at, tokens]
    kept = int(accepted.cumprod(dim=0).sum())
    if kept == DRAFT_LENGTH:
        law = p[kept]
    else:
        residual = torch.clamp(p[kept] - q[kept], min=0)
        law = residual / residual.sum()
    return torch.cat([tokens[:kept], torch.multinomial(law, 1)])


def block_once(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """One round of block verification with target rows p (K+1, V) and draft rows q (K, V): the tokens emitted."""
    tokens = torch.multinomial(q, 1).squeeze(1)
    uniforms = torch.rand(DRAFT_LENGTH)
    joint, kept, law = torch.ones(()), 0, torch.clamp(p[0] - q[0], min=0)
    for i, token in enumerate(tokens):
        joint = torch.clamp(joint * p[i, token] / q[i, token], max=1)
        if i + 1 == DRAFT_LENGTH:
            passes, residual = joint, p[DRAFT_LENGTH]
        else:
            residual = torch.clamp(joint * p[i + 1] - q[i + 1], min=0)
            passes = torch.ones(()) if joint == 1 else residual.sum() / (residual.sum() + 1 - joint)
        if uniforms[i] < passes:
            kept, law = i + 1, residual
    return torch.cat([tokens[:kept], torch.multinomial(law / law.sum(), 1)])


def torch_rate(once: Once, p: np.ndarray, q: np.ndarray, trials: int) -> float:
    """Trials a second of a verification called once a trial, with the target p (V,) and draft q (V,) in every row."""
    p, q = torch.from_numpy(p).tile(DRAFT_LENGTH + 1, 1), torch.from_numpy(q).tile(DRAFT_LENGTH, 1)
    begun = time.perf_counter()
    for _ in range(trials):
        once(p, q)
    return trials / (time.perf_counter() - begun)


def seconds(rule: str, p: np.ndarray, q: np.ndarray, trials: int) -> float:
    """Seconds that a simulation of so many trials takes."""
    begun = time.perf_counter()
    simulators.simulate(ft.block_rule(rule), (p, q), trials, 0, draft_length=DRAFT_LENGTH)
    return time.perf_counter() - begun


def peak_megabytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    scale = 10 if arguments.parse_args().quick else 1
    p, q = np.random.default_rng(1).dirichlet(np.ones(VOCABULARY), size=2)
    torch.set_num_threads(1)  # tensors of four numbers: more threads only slow it down

    print(f"V = {VOCABULARY}, K = {DRAFT_LENGTH}; medians of 5 alternating runs")
    print(f"{'rule':10}  {'torch, one a call':>18}  {'simulators':>14}  {'ratio':>7}  {'compile':>8}")
    for rule, once in (("lossless", tokenwise_once), ("block", block_once)):
        compiled = seconds(rule, p, q, 10**5)
        slow, fast = [], []
        for _ in range(5):
            slow.append(torch_rate(once, p, q, 4000 // scale))
            fast.append(2 * 10**6 // scale / seconds(rule, p, q, 2 * 10**6 // scale))
        one, many = statistics.median(slow), statistics.median(fast)
        print(f"{rule:10}  {one:>16,.0f}/s  {many:>12,.0f}/s  {many / one:>6,.0f}x  {compiled:>6.1f} s")

    print(f"\n{'rule':10}  {'trials':>12}  {'seconds':>8}  {'trials/s':>12}  {'peak memory':>12}")
    for rule in ("lossless", "block"):
        for trials in (10**5, 10**6, 10**7):
            took = seconds(rule, p, q, trials // scale)
            row = f"{rule:10}  {trials // scale:>12,}  {took:>8.2f}  {trials // scale / took:>12,.0f}"
            print(f"{row}  {peak_megabytes():>9,.0f} MB")


if __name__ == "__main__":
    main()
