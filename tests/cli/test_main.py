"""Verbs from entry points, errors as messages, and a base install that needs no extra."""

import subprocess
import sys
import types
from importlib.metadata import EntryPoint

import pytest

import fly_theory
from fly_theory import cli as cli_package
from fly_theory.errors import InvalidInput

HEAVY = ("jax", "torch", "transformers", "z3", "matplotlib")


@pytest.fixture
def verbs(monkeypatch):
    """Register functions as verbs: verbs(name=(function, [extra]))."""

    def register(**functions):
        module = types.ModuleType("made_up_verbs")
        found = []
        for name, (function, extra) in functions.items():
            if function is not None:
                setattr(module, name, function)
            value = f"made_up_verbs:{name}" + (f" [{extra}]" if extra else "")
            found.append(EntryPoint(name, value, cli_package.GROUP))
        monkeypatch.setitem(sys.modules, "made_up_verbs", module)
        monkeypatch.setattr(cli_package, "entry_points", lambda group: found)

    return register


def needs_what_is_missing() -> None:
    """Say something."""
    import a_package_that_is_not_there.inside  # noqa: F401


def fails_by_a_fault_of_its_own() -> None:
    """Fail."""
    import fly_theory.a_module_that_is_not_there  # noqa: F401


def test_version(program):
    assert program("--version").ok() == f"fly-theory {fly_theory.__version__}\n"


def test_help_lists_every_verb(cli):
    text = cli("--help").ok()
    for verb in ("ls", "show", "diagram", "divergence", "capture", "replay"):
        assert f"\n  {verb} " in text


def test_help_and_ls_need_no_extra():
    """With the optional packages made unimportable, the main help and `ls` still work, and load none of them."""
    code = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY!r}))
from typer.testing import CliRunner
from fly_theory.cli import application
for arguments in (["--help"], ["ls"], ["show", "lenience"], ["divergence"]):
    result = CliRunner().invoke(application(), arguments)
    assert result.exit_code == 0, (arguments, result.output, result.exception)
assert not any(sys.modules[name] for name in {HEAVY!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_package_names_the_extra(cli, verbs):
    verbs(replay=(needs_what_is_missing, "replay"))
    assert cli("replay").error() == (
        "fly-theory replay needs the package 'a_package_that_is_not_there'; "
        "install it with: pip install 'fly-theory[replay]'"
    )


def test_a_missing_package_without_an_extra(cli, verbs):
    verbs(other=(needs_what_is_missing, ""))
    assert cli("other").error() == (
        "fly-theory other needs the package 'a_package_that_is_not_there', which is not installed"
    )


def test_a_fault_is_not_blamed_on_an_extra(cli, verbs):
    verbs(broken=(fails_by_a_fault_of_its_own, "replay"))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        cli("broken")


def test_a_verb_that_cannot_be_imported_does_not_stop_the_others(cli, verbs):
    verbs(absent=(None, "replay"), present=(lambda: print("here"), ""))  # noqa: T201
    assert "absent" in cli("--help").ok()
    assert cli("present").ok() == "here\n"
    assert (
        cli("absent", "--any", "thing")
        .error()
        .startswith("the verb 'absent' cannot be loaded from made_up_verbs:absent [replay]: AttributeError")
    )


def test_a_verb_whose_module_needs_an_extra(cli, monkeypatch):
    entry = EntryPoint("far", "a_package_that_is_not_there.cli:far [capture]", cli_package.GROUP)
    monkeypatch.setattr(cli_package, "entry_points", lambda group: [entry])
    assert cli("far").error().endswith("install it with: pip install 'fly-theory[capture]'")


def test_a_verb_registered_twice_is_refused(monkeypatch):
    entries = [EntryPoint("ls", value, cli_package.GROUP) for value in ("one:ls", "other:ls")]
    monkeypatch.setattr(cli_package, "entry_points", lambda group: entries)
    with pytest.raises(InvalidInput, match="verb 'ls' is registered twice: one:ls and other:ls"):
        cli_package.application()


@pytest.mark.parametrize("arguments", [("show", "leniense"), ("show", "leniense", "--json")])
def test_an_error_is_one_message_and_exit_code_2(program, arguments):
    assert program(*arguments).error().startswith("unknown rule 'leniense'. Did you mean 'lenience'?")


def test_own_extras_are_those_of_the_package():
    """Every extra that an entry point of ours names exists."""
    from importlib.metadata import entry_points, metadata

    provided = set(metadata("fly-theory").get_all("Provides-Extra"))
    named = {extra for entry in entry_points(group=cli_package.GROUP) for extra in entry.extras}
    assert named <= provided
    assert {"capture", "replay"} <= named
