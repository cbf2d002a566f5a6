"""`fly-theory check`."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from fly_theory.check import check as check_subject
from fly_theory.cli.options import AsJson

_EXIT_CODES = {"holds": 0, "refuted": 1, "undecided": 3}


def check(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="NAME, NAME:key=value, package.module:Object or FILE.py:Name.")
    ],
    claim: Annotated[
        list[str] | None,
        typer.Option(help="lossless, ceiling:2, kl:0.1, ...; repeatable. What the rule itself claims when absent."),
    ] = None,
    cases: Annotated[int, typer.Option(min=1, help="How many pairs to draw.")] = 300,
    seed: Annotated[int, typer.Option(help="The same seed draws the same pairs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check whether a rule, of tokens, blocks or trees, or a verifier function is what it claims to be.

    A refuted claim comes with the smallest counterexample, in fractions, and a test to paste. The exit code is 0 when
    everything claimed holds, 1 when something is refuted, 2 for bad input, 3 when something could not be decided.

    Examples:

      fly-theory check lenience:l=0.4

      fly-theory check cos:w=0.5 --claim ceiling:2

      fly-theory check my_rule.py:MyRule --claim lossless
    """
    report = check_subject(spec, claim, cases=cases, seed=seed)
    if as_json:
        sys.stdout.write(report.to_json())
    elif sys.stdout.isatty():
        Console().print(report)
    else:
        sys.stdout.write(f"{report}\n")
    raise typer.Exit(_EXIT_CODES[report.conclusion])
