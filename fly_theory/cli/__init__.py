"""The command line `fly-theory`: one verb a file, found through the entry-point group `fly_theory.commands`.

An entry point of the group is a plain annotated function and becomes the verb of its name. One that needs optional
dependencies imports them when it is called, and names the extra: `capture = "gpu.cli:capture [capture]"`.
"""

import contextlib
import functools
import importlib.util
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer

from fly_theory import __version__
from fly_theory.errors import FlyTheoryError, InvalidInput, MissingExtra

__all__ = ["application", "main"]

GROUP = "fly_theory.commands"


def main() -> None:
    """Run the command line on the arguments of the process."""
    application()()


def application() -> typer.Typer:
    """The command line with every registered verb.

    A verb that cannot be imported is listed all the same, and says what is missing when it is used.

    Raises
    ------
    InvalidInput
        For a verb that is registered twice.
    """
    app = typer.Typer(
        name="fly-theory",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for entry in _entries():
        try:
            function = entry.load()
        except Exception as error:
            settings = {"ignore_unknown_options": True, "allow_extra_args": True}
            app.command(entry.name, context_settings=settings)(_unavailable(entry, error))
        else:
            app.command(entry.name)(_reporting(function, entry))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fly-theory {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Exact analysis, simulation, proof and replay of speculative-decoding verification rules."""


def _entries() -> list[EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        known = found.setdefault(entry.name, entry)
        if known.value != entry.value:
            msg = f"verb {entry.name!r} is registered twice: {known.value} and {entry.value}"
            raise InvalidInput(msg)
    return [found[name] for name in sorted(found)]


def _reporting(function: Callable[..., Any], entry: EntryPoint) -> Callable[..., Any]:
    @functools.wraps(function)
    def verb(*args: Any, **kwargs: Any) -> Any:
        with _errors_as_messages():
            try:
                return function(*args, **kwargs)
            except ModuleNotFoundError as error:
                raise _explained(error, entry) from error

    return verb


def _unavailable(entry: EntryPoint, error: Exception) -> Callable[..., Any]:
    def verb(context: typer.Context) -> None:
        with _errors_as_messages():
            explained = _explained(error, entry)
            if not isinstance(explained, FlyTheoryError):
                msg = f"the verb {entry.name!r} cannot be loaded from {entry.value}: {type(error).__name__}: {error}"
                raise FlyTheoryError(msg) from error
            raise explained from error

    verb.__doc__ = f"(not available: {type(error).__name__}: {error})"
    return verb


@contextlib.contextmanager
def _errors_as_messages() -> Iterator[None]:
    """Print an error of our own type as a message and leave with exit code 2."""
    try:
        yield
    except FlyTheoryError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from error


def _explained(error: Exception, entry: EntryPoint) -> Exception:
    """MissingExtra for an optional dependency that is not installed; any other error as it is."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return error
    package = error.name.partition(".")[0]
    if importlib.util.find_spec(package) is not None:
        return error
    msg = f"fly-theory {entry.name} needs the package {package!r}"
    hint = (
        f"; install it with: pip install 'fly-theory[{entry.extras[0]}]'"
        if entry.extras
        else ", which is not installed"
    )
    return MissingExtra(msg + hint)
