"""Every notebook is a script and its executed copy, and the two are in step. `make notebooks` runs the copies anew.

After a change: jupytext --to ipynb NAME.py && pytest --nbmake --overwrite NAME.ipynb
"""

from pathlib import Path

import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def executed(script: Path) -> nbformat.NotebookNode:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def code_cells(script: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in executed(script).cells if cell.cell_type == "code"]


def test_scripts_and_copies_come_in_pairs():
    assert SCRIPTS
    assert {script.stem for script in SCRIPTS} == {copy.stem for copy in FOLDER.glob("*.ipynb")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_copy_has_the_cells_of_the_script(script):
    written, ran = jupytext.read(script), executed(script)
    assert [(cell.cell_type, cell.source) for cell in ran.cells] == [
        (cell.cell_type, cell.source) for cell in written.cells
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_copy_ran_from_top_to_bottom_without_errors_or_warnings(script):
    cells = code_cells(script)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_prose_mathematics_and_figures(script):
    cells = executed(script).cells
    assert cells[0].source.startswith("# ")
    assert sum(cell.cell_type == "markdown" for cell in cells) >= len(code_cells(script)) / 2
    kinds = {kind for cell in code_cells(script) for output in cell.outputs for kind in output.get("data", {})}
    assert "image/png" in kinds
