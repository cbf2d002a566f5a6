"""Files that are either whole or not there, and JSON that every strict parser reads."""

import json
import math
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

__all__ = ["PARTIAL", "json_text", "write_bytes", "write_text"]

PARTIAL = ".partial"


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a kill or a full disk at any moment leaves the old file or the new one.

    The bytes go to a neighbour with the suffix `.partial`, reach the disk, and are then renamed; the neighbour is
    removed when that fails. A neighbour left behind by a kill is overwritten by the next attempt.
    """
    partial = path.with_name(path.name + PARTIAL)
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of a text in UTF-8."""
    write_bytes(path, text.encode())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def json_text(document: Any) -> str:
    """A document as JSON, ending in a newline; keys keep their order.

    Arrays become lists, fractions the text `1/3`. JSON has no infinities or NaN: they become the texts `inf`, `-inf`
    and `nan`, which `float` reads back.
    """
    return json.dumps(_jsonable(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, Fraction | Path):
        return str(value)
    if hasattr(value, "tolist"):
        return _jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
