"""Run an experiment many times and count what happened, in bounded memory, from counter-based keys.

Trial i draws its randomness from `fold_in(key(seed), i)` and nothing else, and only counts leave the device. So the
counts of trials 0..N-1 are the same however the trials are batched.
"""

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from fly_theory.errors import InvalidInput
from simulators.estimates import Counts

__all__ = ["MOST_TRIALS", "Experiment", "Progress", "tally"]

Progress = Callable[[int, int], None]

# A trial is numbered by the 32 bits that `fold_in` takes.
MOST_TRIALS = 2**32
# Numbers held at once for the trials that run side by side.
_NUMBERS_AT_ONCE = 2**21
# Trials are looked at after FIRST_LOOK, twice that, four times that, ... of them, whatever the batches are.
_FIRST_LOOK = 1000


class Experiment(Protocol):
    """What one trial does. Hashable, as it is compiled once for each experiment and the shapes of its inputs."""

    def outcomes(self, inputs: Any) -> Mapping[str, int]:
        """How many outcomes each recorded figure can have."""

    def trial(self, inputs: Any, key: jax.Array) -> Mapping[str, jax.Array]:
        """One trial: an outcome 0, 1, ... of every recorded figure."""

    def numbers(self, inputs: Any) -> int:
        """About how many numbers one trial holds at a time."""


def tally(
    experiment: Experiment,
    inputs: Any,
    *,
    trials: int,
    seed: int,
    batch: int | None = None,
    enough: Callable[[Mapping[str, Counts]], bool] | None = None,
    progress: Progress | None = None,
) -> dict[str, Counts]:
    """Counts of every outcome over `trials` trials, or fewer if `enough` says so at one of its `looks`.

    Parameters
    ----------
    inputs :
        A pytree of arrays, given to every trial.
    batch :
        Trials a device call, by default as many as take about a second: it sets how often `progress` is called, and
        nothing else.
    progress :
        Called with the trials done and the trials asked for.

    Raises
    ------
    InvalidInput
        For trials outside 2..2**32, a seed outside 0..2**64 - 1, or a batch below 1.
    """
    check_integer("trials", trials, 2, MOST_TRIALS)
    check_integer("seed", seed, 0, 2**64 - 1)
    batch = 2**20 if batch is None else batch
    check_integer("batch", batch, 1, MOST_TRIALS)
    with jax.enable_x64(True):
        key = jax.random.key(np.uint64(seed))
        inputs = jax.tree.map(jnp.asarray, inputs)
        chunk = max(1, min(2**14, batch, trials, _NUMBERS_AT_ONCE // experiment.numbers(inputs)))
        counts = {name: np.zeros(n, dtype=np.int64) for name, n in experiment.outcomes(inputs).items()}
        done = 0
        for look in [*looks(trials)] if enough else [trials]:
            while done < look:
                stop = min(done + batch, look)
                for name, more in _count(experiment, chunk, inputs, key, done, stop).items():
                    counts[name] += np.asarray(more)
                done = stop
                if progress:
                    progress(done, trials)
            if enough and enough(counts):
                break
    return counts


def looks(trials: int) -> list[int]:
    """The numbers of trials after which `tally` asks whether they are enough."""
    doubled = (_FIRST_LOOK << i for i in itertools.count())
    return [*itertools.takewhile(lambda n: n < trials, doubled), trials]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _count(
    experiment: Experiment, chunk: int, inputs: Any, key: jax.Array, start: int, stop: int
) -> dict[str, jax.Array]:
    def more(state: tuple[Any, dict[str, jax.Array]]) -> tuple[Any, dict[str, jax.Array]]:
        first, counts = state
        numbers = first + jnp.arange(chunk)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, numbers.astype(jnp.uint32))
        happened = jax.vmap(experiment.trial, (None, 0))(inputs, keys)
        inside = (numbers < stop).astype(jnp.int64)
        return first + chunk, {name: counts[name].at[happened[name]].add(inside) for name in counts}

    zero = {name: jnp.zeros(n, jnp.int64) for name, n in experiment.outcomes(inputs).items()}
    return jax.lax.while_loop(lambda state: state[0] < stop, more, (jnp.int64(start), zero))[1]


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Refuse a value that is no integer from low to high."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        msg = f"{name}={value!r} is not an integer from {low} to {high}"
        raise InvalidInput(msg)
