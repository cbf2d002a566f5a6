"""Run an experiment many times and count what happened, in bounded memory, from counter-based random numbers.

The uniforms of trial i are a hash (Threefry 2x32) of the seed, i, and their place in the trial, and only counts leave
the device. So the counts of trials 0..N-1 are the same however the trials are batched.
"""

import functools
import itertools
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from fly_theory.errors import InvalidInput
from simulators.estimates import Counts

__all__ = ["Draw", "Experiment", "Progress", "check_integer", "looks", "tally"]

Draw = Callable[[Any], jax.Array]
Progress = Callable[[int, int], None]

# Trials are numbered by 32 bits of the counter, and the places of uniforms within a trial by the other 32.
_MOST_TRIALS = 2**32
# Trials that run side by side, and numbers they hold at most together: what fits into a processor's cache is fastest.
_SIDE_BY_SIDE = 2**13
_NUMBERS_AT_ONCE = 2**22
# Trials a device call, unless given: a fraction of a second. As many calls run at a time as there are processors.
_BATCH = 2**18
# Trials are looked at after this many, twice that, four times that, ..., whatever the batches are.
_FIRST_LOOK = 1000


class Experiment(Protocol):
    """What a trial does. Hashable, as it is compiled once for each experiment and the shapes of its inputs."""

    @property
    def uniforms(self) -> int:
        """How many uniforms one part of a trial takes."""

    def outcomes(self, inputs: Any) -> Mapping[str, int]:
        """How many outcomes each recorded figure can have."""

    def numbers(self, inputs: Any) -> int:
        """About how many numbers one trial holds at a time."""

    def trials(self, inputs: Any, draw: Draw) -> Mapping[str, jax.Array]:
        """Run T trials side by side: an outcome 0, 1, ... (T,) of every recorded figure.

        `draw(part)` gives the uniforms (uniforms, T) of part 0, 1, ... of the trials: multiples of 2**-32 in [0, 1).
        """


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
        A pytree of arrays, the same for every trial.
    batch :
        Trials a device call: sets how often `progress` is called, and nothing else.
    progress :
        Called with the trials done and the trials asked for.

    Raises
    ------
    InvalidInput
        For trials outside 2..2**32, a seed outside 0..2**64 - 1, or a batch below 1.
    """
    check_integer("trials", trials, 2, _MOST_TRIALS)
    check_integer("seed", seed, 0, 2**64 - 1)
    batch = _BATCH if batch is None else batch
    check_integer("batch", batch, 1, _MOST_TRIALS)
    key = np.array([seed >> 32, seed & 0xFFFFFFFF], dtype=np.uint32)
    side_by_side = max(1, min(_SIDE_BY_SIDE, batch, _NUMBERS_AT_ONCE // experiment.numbers(inputs)))
    counts = {name: np.zeros(n, dtype=np.int64) for name, n in experiment.outcomes(inputs).items()}
    with jax.enable_x64(True):
        inputs = jax.tree.map(jnp.asarray, inputs)

    def count(start: int, stop: int) -> dict[str, Counts]:
        with jax.enable_x64(True):
            found = _count(experiment, side_by_side, inputs, key, start, stop)
            return {name: np.asarray(more) for name, more in found.items()}

    done, calls = 0, os.cpu_count() or 1
    with ThreadPoolExecutor(calls) as pool:
        for look in looks(trials) if enough else [trials]:
            while done < look:
                starts = range(done, min(done + calls * batch, look), batch)
                stops = [min(start + batch, look) for start in starts]
                for done, found in zip(stops, pool.map(count, starts, stops), strict=True):
                    for name, more in found.items():
                        counts[name] += more
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
    experiment: Experiment, side_by_side: int, inputs: Any, key: jax.Array, start: int, stop: int
) -> dict[str, jax.Array]:
    def more(state: tuple[Any, dict[str, jax.Array]]) -> tuple[Any, dict[str, jax.Array]]:
        first, counts = state
        numbers = first + jnp.arange(side_by_side)
        happened = experiment.trials(inputs, functools.partial(_draw, key, numbers, experiment.uniforms))
        inside = (numbers < stop).astype(jnp.int64)
        return first + side_by_side, {name: counts[name].at[happened[name]].add(inside) for name in counts}

    zero = {name: jnp.zeros(n, jnp.int64) for name, n in experiment.outcomes(inputs).items()}
    return jax.lax.while_loop(lambda state: state[0] < stop, more, (jnp.int64(start), zero))[1]


def _draw(key: jax.Array, numbers: jax.Array, count: int, part: Any) -> jax.Array:
    """Uniforms (count, T) of a part of the trials with these numbers (T,): two from each value of the counter."""
    blocks = (count + 1) // 2
    places = jnp.uint32(part) * jnp.uint32(blocks) + jnp.arange(blocks, dtype=jnp.uint32)
    counter = jnp.broadcast_arrays(numbers.astype(jnp.uint32), places[:, None])
    return threefry_2x32(key, jnp.concatenate(counter))[:count] * 2.0**-32


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Refuse a value that is no integer from low to high."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        msg = f"{name}={value!r} is not an integer from {low} to {high}"
        raise InvalidInput(msg)
