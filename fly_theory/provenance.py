"""Where a result comes from: versions, code revision and command line."""

import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["code_revision", "provenance", "versions"]


def provenance(packages: Iterable[str], *, seed: int | None, device: str) -> dict[str, Any]:
    """What every result file carries; `seed` is None where nothing is drawn."""
    return {
        "versions": versions(packages),
        "code": code_revision(),
        "argv": sys.argv,
        "seed": seed,
        "device": device,
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Python, the system, fly-theory, and those of the named distributions that are installed."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("fly-theory", *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def code_revision() -> dict[str, Any] | None:
    """The git commit this package was imported from, and whether files were changed since; None outside a checkout."""
    here = Path(__file__)
    # An installed copy may lie inside somebody else's repository, which then does not track it.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    changes = _git(here.parent, "status", "--porcelain", "--untracked-files=no")
    return {"git": _git(here.parent, "rev-parse", "HEAD"), "changed": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None
