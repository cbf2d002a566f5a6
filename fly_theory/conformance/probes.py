"""Single calls at the edges: uniforms at the ends of their interval, a residual without mass, rows of NaN."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from fly_theory.conformance.cases import Case, Drafts
from fly_theory.conformance.guard import CallFailed, Inputs
from fly_theory.conformance.laws import Text, constant
from fly_theory.conformance.scripted import LAST_COIN, Scripted, Seeded

_SEEDS = 8

__all__ = ["Caller", "Found", "coin_edges", "nan_rows", "same_seed", "untouched", "zero_residual"]


class Caller(Protocol):
    """Whatever can call the verifier."""

    def call(self, case: Case, inputs: Inputs, rng: Any) -> Text:
        """What the verifier emits."""


@dataclass(frozen=True)
class Found:
    """What a probe saw: whether it is as it should be, in words, on which inputs."""

    fine: bool
    what: str
    inputs: Inputs


def coin_edges(caller: Caller, case: Case, drafts: Drafts, coins: tuple[float, ...]) -> Found:
    """Every uniform at an edge: a token that the target gives no mass must not come out, and nothing must fail."""
    inputs = case.inputs(drafts).floats()
    where = f"with uniforms {', '.join(_coin(coin) for coin in coins)}"
    try:
        emitted = caller.call(case, inputs.copy(), Scripted(coins))
    except CallFailed as failed:
        return Found(False, f"{where}: {failed.what}", inputs)
    for i, token in enumerate(emitted[: case.positions]):
        if not case.goal(emitted[:i])[token]:
            return Found(False, f"{where}: emits token {token}, which the target gives no mass", inputs)
    return Found(True, f"{where}: emits {list(emitted)}", inputs)


def zero_residual(caller: Caller, case: Case) -> Found | None:
    """A rejection that leaves nothing to redraw from: None if the verifier avoids it, else what comes out.

    Fine are an error, and a token that the target gives mass. The rejection is provoked in two ways: target rows that
    lack a little mass, as rounding leaves them, with the uniform just below one; and a draft that neither law allows.
    """
    law = (Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(0))
    short = tuple(mass * (1 - Fraction(1, 2**20)) for mass in law)
    for target, token in ((short, 1), (law, 0)):
        tried = replace(
            case, given=constant(target), told=constant(law), vocabulary=len(law), draft_length=1, candidates=None
        )
        inputs = tried.inputs((token,)).floats()
        try:
            emitted = caller.call(tried, inputs.copy(), Scripted((LAST_COIN,)))
        except CallFailed as failed:
            return Found(True, failed.what, inputs)
        if len(emitted) == 1:
            return Found(bool(law[emitted[0]]), f"emits token {emitted[0]}", inputs)
    return None


def nan_rows(caller: Caller, case: Case) -> Found:
    """Target rows of NaN: the only fine answer is an error."""
    drafts = next(iter(case.drafts()))[1]
    inputs = case.inputs(drafts).floats()
    inputs = replace(inputs, target_probs=np.full_like(inputs.target_probs, np.nan))
    try:
        emitted = caller.call(case, inputs.copy(), Scripted((0.5,)))
    except CallFailed as failed:
        return Found(failed.raised, failed.what, inputs)
    return Found(False, f"emits {list(emitted)}", inputs)


def same_seed(caller: Caller, case: Case) -> Iterator[Found]:
    """Two calls on the same inputs and seed: the answer must be the same."""
    for _, drafts in case.drafts():
        inputs = case.inputs(drafts).floats()
        for seed in range(_SEEDS):
            first, second = (caller.call(case, inputs.copy(), Seeded(seed)) for _ in range(2))
            yield Found(first == second, f"emits {list(first)}, then {list(second)}", inputs)


def untouched(caller: Caller, case: Case) -> Iterator[Found]:
    """The inputs of a call: they must be as before."""
    for _, drafts in case.drafts():
        inputs = case.inputs(drafts).floats()
        handed = inputs.copy()
        caller.call(case, handed, Seeded(0))
        yield Found(handed.same_as(inputs), "writes to its inputs", inputs)


def _coin(coin: float) -> str:
    return "just below 1" if coin == LAST_COIN else f"{coin:g}"
