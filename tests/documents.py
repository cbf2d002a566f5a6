"""Pages that show files and commands, and what happens when they are followed from top to bottom."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Command", "Done", "follow", "steps"]

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command line that a page shows, and the output shown under it, with `...` for what is left out."""

    line: str
    output: str = ""


@dataclass(frozen=True)
class Done:
    """What a command did."""

    line: str
    exit_code: int
    output: str
    errors: str


def steps(page: str) -> Iterator[Command | tuple[str, str]]:
    """The commands of a page and its files, as (name, text): Python blocks that begin with the comment `# name.py`."""
    for language, text in _BLOCK.findall(page):
        named = re.match(r"# (\w+\.py)\n", text)
        if language == "python" and named:
            yield named[1], text
        elif language == "console":
            for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, output = command.partition("\n")
                yield Command(line, output)


def follow(page: str, folder: Path) -> Iterator[Done]:
    """Write the files and run the `fly-theory` commands of a page in a folder, in order; `make` is left to CI.

    Raises
    ------
    AssertionError
        For a command that prints something else than the page shows, or whose failure the page does not announce: the
        exit code of a command is shown by `echo $?` after it, and is 0 where it is not shown.
    """
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    checker = doctest.OutputChecker()
    last: Done | None = None
    for step in steps(page):
        if isinstance(step, tuple):
            (folder / step[0]).write_text(step[1])
            continue
        if step.line == "echo $?":
            assert last is not None
            assert last.exit_code == int(step.output), f"{last.line}\n{last.output}\n{last.errors}"
            last = None
            continue
        if last is not None:
            assert last.exit_code == 0, f"{last.line}\n{last.output}\n{last.errors}"
            last = None
        if not step.line.startswith("fly-theory"):
            continue
        done = subprocess.run(
            step.line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        last = Done(step.line, done.returncode, done.stdout, done.stderr)
        if step.output.strip():
            shown = checker.check_output(step.output, last.output, doctest.ELLIPSIS)
            assert shown, f"{step.line}\nshown:\n{step.output}\nprinted:\n{last.output}\n{last.errors}"
        yield last
    if last is not None:
        assert last.exit_code == 0, f"{last.line}\n{last.output}\n{last.errors}"
