"""A plan carried out on a whole trace, shard by shard, whoever does the work and however often it was broken off."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from gpu.replaying.executors import Executor
from gpu.replaying.partials import Partials
from gpu.replaying.plan import Plan
from gpu.replaying.tallying import Tallies
from gpu.trace import Trace

__all__ = ["tally_by_shard"]


def tally_by_shard(
    trace: Trace,
    plan: Plan,
    executor: Executor,
    *,
    partials: Partials | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tallies:
    """The tallies of all blocks; finished shards go to `partials`, and those that are there are not replayed again.

    Shards are merged in their order, so that nothing shows in which order they were finished; only tallies of shards
    that ran ahead wait in memory.
    """
    done = 0

    def announce(blocks: int) -> None:
        nonlocal done
        done += blocks
        if progress:
            progress(done, len(trace))

    shards = range(len(trace.shards))
    known = {shard for shard in shards if partials is not None and shard in partials}
    announce(sum(trace.shards[shard] for shard in known))
    work = executor.run(trace, plan, [shard for shard in shards if shard not in known], announce)
    whole = Tallies.empty(plan)
    with closing(work if partials is None else _kept(work, partials)) as found:
        ahead: dict[int, Tallies] = {}
        for shard in shards:
            if partials is not None and shard in known:
                whole.merge(partials.read(shard))
                continue
            while shard not in ahead:
                ahead.update([next(found)])
            whole.merge(ahead.pop(shard))
    return whole


def _kept(found: Iterable[tuple[int, Tallies]], partials: Partials) -> Iterator[tuple[int, Tallies]]:
    for shard, tallies in found:
        partials.write(shard, tallies)
        yield shard, tallies
