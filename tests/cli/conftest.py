"""Running the command line in this process or as the installed program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fly_theory.cli import application


class Run:
    """What a run printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def ok(self) -> str:
        assert self.code == 0, self.err
        return self.out

    def json(self):
        return json.loads(self.ok())

    def error(self) -> str:
        """The one message of a refused run."""
        assert self.code == 2
        assert self.out == ""
        assert "Traceback" not in self.err
        assert self.err.startswith("Error: ")
        assert self.err.count("\nError: ") == 0
        return self.err.removeprefix("Error: ").strip()


@pytest.fixture
def cli():
    """Run the command line in this process: cli("show", "lenience")."""

    def run(*arguments: object) -> Run:
        result = CliRunner().invoke(application(), [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Run(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def program():
    """Run the installed program: program("show", "lenience")."""

    def run(*arguments: object, **environment: str) -> Run:
        script = Path(sys.executable).with_name("fly-theory")
        done = subprocess.run(
            [script, *map(str, arguments)], capture_output=True, text=True, check=False, env=environment or None
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run
