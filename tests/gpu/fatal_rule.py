"""A lossless rule whose n-th unpickling kills a process: the worker that it happens in, or the worker's parent."""

import os
import signal
from pathlib import Path
from typing import Any

from fly_theory.rules.base import Rule, Verdict
from fly_theory.rules.lossless import Lossless

SPEC = "tests.gpu.fatal_rule:Fatal"


def environment(count: Path, *, at: int, victim: str) -> dict[str, str]:
    """What makes the rule kill the `victim` (worker or parent) at its `at`-th unpickling, counted in a file."""
    return {"FATAL_COUNT": str(count), "FATAL_AT": str(at), "FATAL_VICTIM": victim}


class Fatal(Rule):
    name = "fatal"

    def verdict(self, p: Any, q: Any) -> Verdict:
        return Lossless().verdict(p, q)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ()


def _unpickled() -> Fatal:
    with open(os.environ["FATAL_COUNT"], "ab") as file:
        file.write(b".")
        file.flush()
        reached = file.tell() == int(os.environ["FATAL_AT"])
    if reached:
        os.kill({"worker": os.getpid, "parent": os.getppid}[os.environ["FATAL_VICTIM"]](), signal.SIGKILL)
    return Fatal()
