"""Every command of the documentation runs and prints what is shown; every public name has its place.

The Python examples are doctests, which pytest collects from the pages themselves; `make docs` builds them.
"""

import re
from pathlib import Path

import pytest

import fly_theory
from tests.documents import Command, follow, steps

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WITH_COMMANDS = [page for page in PAGES if any(isinstance(step, Command) for step in steps(page.read_text()))]


def test_a_wrong_output_or_exit_code_would_be_seen(tmp_path, shared_commands):
    block = "```console\n$ fly-theory show lossless\n{}```\n"
    with pytest.raises(AssertionError, match="shown"):
        list(follow(block.format("something else\n"), tmp_path, shared=shared_commands))
    with pytest.raises(AssertionError, match="fly-theory show lossless"):
        list(follow(block.format("$ echo $?\n1\n"), tmp_path, shared=shared_commands))
    with pytest.raises(AssertionError, match="no-such-rule"):
        list(follow("```console\n$ fly-theory show no-such-rule\n```\n", tmp_path))


@pytest.mark.bundled
@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_commands_of_a_page_run_as_shown(page, tmp_path, shared_commands):
    assert list(follow(page.read_text(), tmp_path, shared=shared_commands))


def test_a_command_runs_once_where_its_files_are_the_same(tmp_path):
    page = "```python\n# rule.py\n{}\n```\n```console\n$ fly-theory show rule.py:Mine > shown\n$ echo $?\n2\n```\n"
    shared = tmp_path / "shared"
    for folder in ("shared", "first", "second", "third"):
        (tmp_path / folder).mkdir()
    first, again, other = (
        next(follow(page.format(text), tmp_path / folder, shared=shared))
        for folder, text in (("first", "a = 1"), ("second", "a = 1"), ("third", "a = 2"))
    )
    assert first == again
    assert other.exit_code == first.exit_code == 2
    assert len(list(shared.glob("*/done.json"))) == 2
    assert (tmp_path / "second" / "shown").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_of_a_page_is_a_doctest_or_a_file(page):
    fences = re.findall(r"^```(\S+)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert {language for language, _ in fences} <= {"console", "pycon", "python", "text", "{toctree}"}
    for language, text in fences:
        if language == "pycon":
            assert text.startswith(">>> ")
            assert text.endswith("\n\n")  # so that the fence is no output
        if language == "python":
            assert re.match(r"# \w+\.py\n", text)


def test_the_reference_has_every_public_name_of_the_core():
    """The other packages' pages are made from their `__all__`."""
    page = (DOCS / "api" / "fly_theory.rst").read_text()
    named = re.findall(r"auto(?:function|class|module):: ([\w.]+)", page)
    assert set(fly_theory.__all__) <= {name.removeprefix("fly_theory.") for name in named}


def test_pages_are_in_a_table_of_contents():
    contents = (DOCS / "index.md").read_text()
    listed = set(re.findall(r"^([\w/-]+)$", contents, flags=re.MULTILINE))
    expected = {page.stem for page in PAGES if page.stem != "index"}
    expected |= {f"api/{page.stem}" for page in (DOCS / "api").glob("*.rst")}
    expected |= {f"notebooks/{page.stem}" for page in (DOCS / "notebooks").glob("*.ipynb")}
    assert listed == expected
