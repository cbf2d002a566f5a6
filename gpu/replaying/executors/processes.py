"""Shards spread over processes of this machine."""

import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from threading import Thread

import torch

from fly_theory.errors import InvalidInput, WorkerLost
from gpu.replaying.executors.task import RETRIES, tally_shard
from gpu.replaying.plan import NOT_PORTABLE, Plan
from gpu.replaying.tallying import Tallies
from gpu.trace import Trace

__all__ = ["ProcessPool"]


@dataclass(frozen=True)
class ProcessPool:
    """Processes that share the threads torch would use here; each holds one block of logits at a time.

    A pool that loses a worker is replaced, and every shard that was in flight is replayed again, at most `RETRIES`
    times.
    """

    workers: int

    def __str__(self) -> str:
        return f"{self.workers} processes"

    def run(
        self, trace: Trace, plan: Plan, shards: Iterable[int], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, Tallies]]:
        """See `Executor.run`.

        Raises
        ------
        InvalidInput
            A rule that cannot be sent to another process.
        WorkerLost
            A shard whose workers were lost more than `RETRIES` times.
        """
        _check_portable(plan)
        remaining, losses = list(shards), Counter[int]()
        while remaining:
            running: dict[Future[Tallies], int] = {}
            try:
                with self._pool(len(remaining)) as pool:
                    waiting = iter(tuple(remaining))
                    while remaining:
                        for shard in islice(waiting, self.workers - len(running)):
                            running[pool.submit(tally_shard, trace.path, shard, plan)] = shard
                        done, _ = wait(running, return_when=FIRST_COMPLETED)
                        for future in done:
                            tallies = future.result()
                            shard = running.pop(future)
                            remaining.remove(shard)
                            announce(trace.shards[shard])
                            yield shard, tallies
            except BrokenProcessPool as error:
                losses.update(running.values())
                self._give_up(trace, losses, error)

    def _pool(self, shards: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            min(self.workers, shards),
            mp_context=get_context("spawn"),
            initializer=_begin,
            initargs=(max(1, torch.get_num_threads() // self.workers),),
        )

    def _give_up(self, trace: Trace, losses: Counter[int], error: BrokenProcessPool) -> None:
        shard, times = losses.most_common(1)[0]
        if times > RETRIES:
            msg = (
                f"a worker process was lost {times} times while shard {shard} of {trace.path} was being replayed "
                "(memory, perhaps); use fewer workers. What is finished is kept beside the results, for --resume"
            )
            raise WorkerLost(msg) from error


def _check_portable(plan: Plan) -> None:
    try:
        pickle.dumps(plan)
    except NOT_PORTABLE as error:
        msg = (
            f"a rule cannot be sent to another process: {error}. Its class has to be importable by name, "
            "package.module:Rule instead of file.py:Rule; or use workers=1"
        )
        raise InvalidInput(msg) from error


def _begin(threads: int) -> None:
    """Begin a worker: its share of the threads, no interrupts of its own, and no life after the parent's."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
