"""Pages that show files and commands, and what happens when they are followed from top to bottom."""

import doctest
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
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


def follow(page: str, folder: Path, *, elsewhere: Collection[str] = (), shared: Path | None = None) -> Iterator[Done]:
    """Write the files and run the `fly-theory` commands of a page in a folder, in order; `make` is left to CI.

    Command lines in `elsewhere` are left out: another test does what they do. With a folder `shared`, a command that
    several pages show on the same files runs once: what it printed and wrote is kept there.

    Raises
    ------
    AssertionError
        For a command that prints something else than the page shows, or whose failure the page does not announce: the
        exit code of a command is shown by `echo $?` after it, and is 0 where it is not shown.
    """
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
        if not step.line.startswith("fly-theory") or step.line in elsewhere:
            continue
        last = _run(step.line, folder) if shared is None else _run_once(step.line, folder, shared)
        if step.output.strip():
            shown = checker.check_output(step.output, last.output, doctest.ELLIPSIS)
            assert shown, f"{step.line}\nshown:\n{step.output}\nprinted:\n{last.output}\n{last.errors}"
        yield last
    if last is not None:
        assert last.exit_code == 0, f"{last.line}\n{last.output}\n{last.errors}"


def _run(line: str, folder: Path) -> Done:
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(line, done.returncode, done.stdout, done.stderr)


def _run_once(line: str, folder: Path, shared: Path) -> Done:
    """Run a command, unless a test, of another process perhaps, has run it on files with the same content."""
    read = {word: _digests(folder / word) for word in re.split(r"[\s:]+", line) if (folder / word).exists()}
    kept = shared / hashlib.sha256(json.dumps([line, read]).encode()).hexdigest()
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "done.json").exists():
            before = _digests(folder)
            done = _run(line, folder)
            for name, digest in _digests(folder).items():
                if before.get(name) != digest:
                    (kept / "files" / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(folder / name, kept / "files" / name)
            kept.mkdir(exist_ok=True)
            (kept / "done.json").write_text(json.dumps(asdict(done)))
        elif (kept / "files").exists():
            shutil.copytree(kept / "files", folder, dirs_exist_ok=True)
        return Done(**json.loads((kept / "done.json").read_text()))


def _digests(path: Path) -> dict[str, str]:
    """Digests of a file, or of all files in a folder by their path in it."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
