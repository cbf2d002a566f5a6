"""Shards spread over a Ray cluster, whose machines all see the trace under one path."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fly_theory.errors import InvalidInput, MissingExtra, WorkerLost
from gpu.replaying.executors.task import RETRIES, tally_shard
from gpu.replaying.plan import Plan
from gpu.replaying.tallying import Tallies
from gpu.trace import Trace

__all__ = ["RayCluster"]


@dataclass(frozen=True)
class RayCluster:
    """One worker per GPU when the plan is for cuda, otherwise one per core.

    The cluster is the one this process is connected to, or that RAY_ADDRESS or this machine's running Ray names;
    without any, Ray is started here and stopped afterwards.
    """

    def __str__(self) -> str:
        return "Ray"

    def run(
        self, trace: Trace, plan: Plan, shards: Iterable[int], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, Tallies]]:
        """See `Executor.run`.

        Raises
        ------
        MissingExtra
            Ray is not installed.
        InvalidInput
            A plan for cuda on a cluster without GPUs.
        WorkerLost
            A shard whose workers were lost more than `RETRIES` times.
        """
        with _connected() as ray:
            unit = "gpu" if plan.settings.device == "cuda" else "cpu"
            slots = int(ray.cluster_resources().get(unit.upper(), 0))
            if not slots:
                msg = f"device={plan.settings.device!r}, but the Ray cluster has no {unit.upper()}"
                raise InvalidInput(msg)
            task = ray.remote(tally_shard).options(max_retries=RETRIES, **{f"num_{unit}s": 1})
            shared, waiting, running = ray.put(plan), iter(shards), dict[Any, int]()
            while True:
                for shard in islice(waiting, slots - len(running)):
                    running[task.remote(trace.path.absolute(), shard, shared)] = shard
                if not running:
                    return
                (done, *_), _ = ray.wait(list(running), num_returns=1)
                shard = running.pop(done)
                tallies = _result(ray, done, trace, shard)
                announce(trace.shards[shard])
                yield shard, tallies


def _result(ray: Any, reference: Any, trace: Trace, shard: int) -> Tallies:
    try:
        tallies: Tallies = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        msg = (
            f"Ray lost a worker {RETRIES + 1} times while shard {shard} of {trace.path} was being replayed (memory, "
            "perhaps). What is finished is kept beside the results, for --resume"
        )
        raise WorkerLost(msg) from error
    return tallies


@contextmanager
def _connected() -> Iterator[Any]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report over the network
    try:
        import ray
    except ModuleNotFoundError as error:
        msg = "a Ray cluster needs the package 'ray'; install it with: pip install 'fly-theory[ray]'"
        raise MissingExtra(msg) from error
    # Ray tells of lost workers on stdout.
    with redirect_stdout(sys.stderr):
        if ray.is_initialized():
            yield ray
            return
        ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        try:
            yield ray
        finally:
            ray.shutdown()
