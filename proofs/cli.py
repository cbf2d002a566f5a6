"""`fly-theory prove`."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json, table
from fly_theory.errors import InvalidInput
from fly_theory.parameters import parameters
from fly_theory.registry import load
from fly_theory.rules import Rule

_HEADINGS = ("name", "statement", "outcome", "method", "obligations", "seconds")
_EXIT_CODES = {"proved": 0, "refuted": 1, "unknown": 3}


def prove(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="Theorems; with --claim, rules by SPEC. All when absent."),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            help="Try a rule with the standard lemmas: lossless, on-the-line, ceiling:2, ceiling:1/l, ...; repeatable."
        ),
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option(help="Write SMT-LIB2 files that any solver can check, and a write-up, into this folder."),
    ] = None,
    small: Annotated[
        int, typer.Option(help="Also ask z3, without lemmas, about every vocabulary of 2 to this many tokens.")
    ] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as many as there are CPUs when absent.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove the theorems of the book, for every vocabulary size, or refute them with a counterexample.

    Every obligation is shown by z3 and by cvc5. The exit code is 0 when every statement comes out as the book says:
    proved, or refuted where it is kept because it is false. With --claim it is 0 for proved, 1 for refuted, 3 for
    unknown.

    Examples:

      fly-theory prove

      fly-theory prove lossless lenience-ceiling --certificates certificates

      fly-theory prove my_rule.py:MyRule --claim lossless --claim ceiling:1/l
    """
    if claim:
        rows = _tried(names or [], claim, certificates, small)
        code = max((_EXIT_CODES[row["outcome"]] for row in rows), key=(0, 3, 1).index)
    else:
        rows = _of_the_book(names, certificates, small, jobs or os.cpu_count() or 1)
        code = 0 if all(row["outcome"] == row["expected"] for row in rows) else 1
    if as_json:
        print_json(rows)
    else:
        _show(rows)
    raise typer.Exit(code)


def _of_the_book(names: list[str] | None, certificates: Path | None, small: int, jobs: int) -> list[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import Progress

    from proofs.runner import outcomes
    from proofs.theorem import theorems

    wanted = list(dict.fromkeys(names or theorems()))
    about_a_rule = next((name for name in wanted if ":" in name), None)
    if about_a_rule:
        msg = f"{about_a_rule!r} names a rule, not a theorem; say what to prove of it, e.g. --claim lossless"
        raise InvalidInput(msg)
    done: dict[str, dict[str, Any]] = {}
    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("proving", total=len(wanted))
        for row in outcomes(wanted, jobs=jobs, certificates=certificates, small=small):
            done[row["name"]] = row
            progress.update(task, advance=1, description=f"proving ({row['name']} done)")
    return [done[name] for name in wanted]


def _tried(specs: list[str], claims: list[str], certificates: Path | None, small: int) -> list[dict[str, Any]]:
    from proofs.attempt import attempt, claim_about
    from proofs.runner import reported

    if not specs:
        msg = "--claim is about a rule; name one by its SPEC, e.g. fly-theory prove my_rule.py:MyRule --claim lossless"
        raise InvalidInput(msg)
    wanted = [(text, claim_about(text)) for text in claims]
    rows = []
    for spec in specs:
        rule, settings = _subject(spec)
        for text, about in wanted:
            proof = attempt(rule, about, text=text, settings=settings)
            rows.append(reported(proof, certificates, small, substitute=rule))
    return rows


def _subject(spec: str) -> tuple[Any, dict[str, Any]]:
    """The rule, or class of rules, that a SPEC names, and the parameters it gives."""
    target, texts = load(spec)
    if isinstance(target, Rule):
        return target, {}
    if not (isinstance(target, type) and issubclass(target, Rule)):
        msg = f"{spec!r} names a {type(target).__name__}, not a Rule (class or object) of the token level"
        raise InvalidInput(msg)
    domains = {declared.name: declared.domain for declared in parameters(target)}
    unknown = [name for name in texts if name not in domains]
    if unknown:
        msg = f"{spec!r}: {target.__name__} has no parameter {unknown[0]!r}; it has {', '.join(domains) or 'none'}"
        raise InvalidInput(msg)
    return target, {name: domains[name].parse(text) for name, text in texts.items()}


def _show(rows: list[dict[str, Any]]) -> None:
    cells = [
        (row["name"], row["statement"], row["outcome"], _method(row), str(row["obligations"]), f"{row['seconds']:.2f}")
        for row in rows
    ]
    notes = [note for row in rows for note in _notes(row)]
    display(table(_HEADINGS, cells, numeric=("obligations", "seconds")), *notes)


def _method(row: dict[str, Any]) -> str:
    sizes = [size for size, answer in row.get("small", {}).items() if answer == "proved"]
    return f"{row['method']}; V = {', '.join(sizes)}" if sizes else str(row["method"])


def _notes(row: dict[str, Any]) -> list[str]:
    notes = []
    if row["witness"]:
        witness = row["witness"]
        figures = "; ".join(
            f"{name} = {_figure(value)}" for part in ("inputs", "found") for name, value in witness[part].items()
        )
        notes.append(f"{row['name']}: {witness['rule']} at {figures}")
    if row["missing"] and row["outcome"] != row["expected"]:
        notes.append(f"{row['name']}: missing: {row['missing']}")
    return notes


def _figure(value: Any) -> str:
    return f"({', '.join(value)})" if isinstance(value, list) else str(value)
