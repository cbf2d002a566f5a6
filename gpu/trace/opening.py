"""Opening a trace folder of any kind."""

from pathlib import Path

from gpu.trace.header import TOP_K_SCHEMA, TREE_SCHEMA, read_manifest
from gpu.trace.reader import Trace
from gpu.trace.top_k_reader import TopKTrace
from gpu.trace.tree_reader import TreeTrace

__all__ = ["open_trace"]


def open_trace(path: str | Path) -> Trace:
    """Open a trace folder: a `Trace` of blocks, a `TreeTrace`, or a `TopKTrace`.

    Raises
    ------
    TraceError
        No trace there, an unfinished one, or a file that is missing or has the wrong size. What is *in* a shard is
        held against its checksum when the shard is first read.
    """
    kinds = {TREE_SCHEMA: TreeTrace, TOP_K_SCHEMA: TopKTrace}
    return kinds.get(read_manifest(Path(path))["schema"], Trace)(path)
