"""Every command that the README shows runs as shown, in order, in one fresh folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXPECTED_EXIT = {"fly-theory check examples/my_rule.py:MyRule": 1}


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("fly-theory")]


@pytest.mark.bundled
@pytest.mark.slow
def test_commands_of_the_readme_run(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = commands()
    assert len(shown) >= 7
    for command in shown:
        program, *arguments = shlex.split(command)
        full = [Path(sys.executable).with_name(program), *arguments]
        done = subprocess.run(full, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == EXPECTED_EXIT.get(command, 0), f"{command}\n{done.stdout}\n{done.stderr}"
    drawn, shown_in_readme = (tmp_path / "rules.png").read_bytes(), (ROOT / "docs" / "rules.png").read_bytes()
    assert drawn == shown_in_readme, "docs/rules.png is stale"


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
