"""Shards one after the other, in this process."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpu.replaying.plan import Plan
from gpu.replaying.tallying import Tallies, tally_blocks
from gpu.trace import Trace, TraceBlock

__all__ = ["Serial"]


@dataclass(frozen=True)
class Serial:
    """Holds one block of logits at a time, and announces every block."""

    def __str__(self) -> str:
        return "this process"

    def run(
        self, trace: Trace, plan: Plan, shards: Iterable[int], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, Tallies]]:
        """See `Executor.run`; shards come in the order given."""
        for shard in shards:
            yield shard, tally_blocks(_announced(trace.shard(shard), announce), plan)


def _announced(blocks: Iterable[TraceBlock], announce: Callable[[int], None]) -> Iterator[TraceBlock]:
    for block in blocks:
        yield block
        announce(1)
