"""What the commands of this package have in common: the warpers of both models, and the bar on stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from fly_theory.errors import FlyTheoryError

__all__ = ["Epsilon", "Eta", "MinP", "TopK", "TopP", "let_threads_sleep", "progress_bar"]

TopK = Annotated[int | None, typer.Option(help="Warper of both models: the k most probable tokens.")]
TopP = Annotated[float | None, typer.Option(help="Warper of both: the most probable tokens up to this mass.")]
MinP = Annotated[float | None, typer.Option(help="Warper of both: tokens with p >= min_p max p.")]
Epsilon = Annotated[float | None, typer.Option(help="Warper of both: tokens with p >= epsilon.")]
Eta = Annotated[float | None, typer.Option(help="Warper of both: tokens with p >= min(eta, sqrt(eta) exp(-entropy)).")]


def let_threads_sleep() -> None:
    """Before torch is imported: waiting threads are to sleep, unless the user has said otherwise.

    Spinning, the default, takes five times as long on a busy machine.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def progress_bar(unit: str) -> Iterator[Progress]:
    """A bar on stderr that counts in a unit; one that an error of our own type ends is not left above its message."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
    ) as bar:
        try:
            yield bar
        except FlyTheoryError:
            bar.live.transient = True
            raise
