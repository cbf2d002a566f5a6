"""What is finished of a replay, kept beside its results until they are written, so that a killed run can go on.

partial/plan.json           the trace and the plan, by which a resumed run knows its own
partial/shard-00003.json    the tallies of one shard of the trace, and the digest of plan.json
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from fly_theory.errors import InvalidInput
from fly_theory.files import json_text, write_text
from gpu.difference import first_difference
from gpu.digest import sha256_of_bytes
from gpu.replaying.plan import Plan
from gpu.replaying.state import from_state, to_state
from gpu.replaying.tallying import Tallies

__all__ = ["FOLDER", "Partials", "identity"]

FOLDER = "partial"

_PLAN = "plan.json"


def identity(trace_sha256: str, plan: Plan, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What two runs have to share for their tallies to be one result: the trace, the plan, and the code."""
    versions = provenance["versions"]
    return {
        "schema": "fly-theory-partial/1",
        "trace": trace_sha256,
        "plan": _described(plan),
        "code": {name: versions[name] for name in ("fly-theory", "torch") if name in versions}
        | (provenance["code"] or {}),
    }


class Partials:
    """The finished shards of a replay in the folder of its results; each appears whole or not at all.

    Raises
    ------
    InvalidInput
        On resuming, a partial result of another trace, plan or version (the first difference is named); a folder that
        cannot be written to.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], *, resume: bool) -> None:
        self._folder = out / FOLDER
        text = json_text(identity)
        self._digest = sha256_of_bytes(text.encode())
        if resume and self._folder.is_dir():
            self._compare(identity)
            return
        self.remove()
        try:
            self._folder.mkdir(parents=True)
        except OSError as error:
            msg = f"cannot write the results to {str(out)!r}: {error.strerror}"
            raise InvalidInput(msg) from error
        self._write(self._folder / _PLAN, text)

    def __contains__(self, shard: int) -> bool:
        return self._file(shard).exists()

    def read(self, shard: int) -> Tallies:
        """The tallies of a finished shard."""
        document = _read(self._file(shard))
        if document.get("digest") != self._digest:
            msg = f"{self._file(shard)} belongs to another replay; remove it, and its shard is replayed again"
            raise InvalidInput(msg)
        tallies: Tallies = from_state(Tallies, document["tallies"])
        return tallies

    def write(self, shard: int, tallies: Tallies) -> None:
        """Keep the tallies of a finished shard."""
        document = {"digest": self._digest, "tallies": to_state(tallies)}
        self._write(self._file(shard), json.dumps(document, separators=(",", ":"), allow_nan=False))

    def remove(self) -> None:
        """Remove everything, the results being written or a new run begun."""
        if self._folder.is_dir():
            shutil.rmtree(self._folder)

    def _file(self, shard: int) -> Path:
        return self._folder / f"shard-{shard:05d}.json"

    def _compare(self, identity: Mapping[str, Any]) -> None:
        before = _read(self._folder / _PLAN)
        difference = first_difference(before, json.loads(json_text(identity)))
        if difference:
            msg = (
                f"{self._folder} holds the beginning of another replay: {difference}. Resume that one, "
                "choose another folder, or start over (--force, overwrite=True, without resuming)"
            )
            raise InvalidInput(msg)

    def _write(self, path: Path, text: str) -> None:
        try:
            write_text(path, text)
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}. Finished shards are kept; resume once there is room"
            raise InvalidInput(msg) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        msg = f"{path} cannot be read ({error}); start over (--force, overwrite=True, without resuming)"
        raise InvalidInput(msg) from error
    return document


def _described(value: Any) -> Any:
    """A part of a plan as plain values: rules by their SPEC, dataclasses by type and fields, functions by name."""
    if hasattr(value, "spec"):
        return value.spec
    if is_dataclass(value):
        return {"type": type(value).__qualname__} | {f.name: _described(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else value
