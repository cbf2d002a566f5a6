"""Who carries out a plan on the shards of a trace: this process, a pool of processes, or a Ray cluster."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from fly_theory.errors import InvalidInput
from gpu.replaying.executors.processes import ProcessPool
from gpu.replaying.executors.ray_cluster import RayCluster
from gpu.replaying.executors.serial import Serial
from gpu.replaying.plan import Plan
from gpu.replaying.tallying import Tallies
from gpu.trace import Trace

__all__ = ["Executor", "executor"]


class Executor(Protocol):
    """Carries out a plan on shards, which are independent of each other."""

    def __str__(self) -> str:
        """What provenance says of it."""

    def run(
        self, trace: Trace, plan: Plan, shards: Iterable[int], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, Tallies]]:
        """Yield each shard's number and tallies as they are finished, in any order.

        `announce` is called with the number of blocks that were done since it was last called.
        """


def executor(*, workers: int, ray: bool) -> Executor:
    """The executor that was asked for.

    Raises
    ------
    InvalidInput
        Fewer than one worker, or a number of workers for Ray, whose cluster has its own.
    """
    if not isinstance(workers, int) or workers < 1:
        msg = f"workers={workers!r}; allowed is an integer of at least 1"
        raise InvalidInput(msg)
    if ray and workers != 1:
        msg = f"workers={workers} with Ray, which runs one worker per GPU or core of its cluster; give one of the two"
        raise InvalidInput(msg)
    if ray:
        return RayCluster()
    return Serial() if workers == 1 else ProcessPool(workers)
