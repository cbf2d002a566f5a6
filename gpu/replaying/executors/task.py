"""The unit of work that a worker is sent: one shard of a trace, which it opens by path."""

from functools import lru_cache
from pathlib import Path

from gpu.replaying.plan import Plan
from gpu.replaying.tallying import Tallies, tally_blocks
from gpu.trace import Trace, open_trace

__all__ = ["RETRIES", "tally_shard"]

# How often a shard is taken up again after the worker that had it was lost.
RETRIES = 2


def tally_shard(path: Path, shard: int, plan: Plan) -> Tallies:
    """Carry out a plan on one shard."""
    return tally_blocks(_opened(path).shard(shard), plan)


@lru_cache(maxsize=1)
def _opened(path: Path) -> Trace:
    return open_trace(path)
