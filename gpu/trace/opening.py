"""Opening a trace folder of either kind."""

from pathlib import Path

from gpu.trace.header import TREE_SCHEMA, read_manifest
from gpu.trace.reader import Trace
from gpu.trace.tree_reader import TreeTrace

__all__ = ["open_trace"]


def open_trace(path: str | Path) -> Trace:
    """Open a trace folder: a `Trace` of blocks, or a `TreeTrace`.

    Raises
    ------
    TraceError
        No trace there, an unfinished one, or a file that is missing or has the wrong size. What is *in* a shard is
        held against its checksum when the shard is first read.
    """
    kind = TreeTrace if read_manifest(Path(path))["schema"] == TREE_SCHEMA else Trace
    return kind(path)
