"""`fly-theory ls`."""

from typing import Annotated, Any

import typer
from rich.text import Text

from fly_theory.cli import rules_table
from fly_theory.cli.catalogue import Entry, entries
from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json, table


def ls(
    readers: Annotated[bool, typer.Option("--table", help="Show which interpreter can read which rule.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the verification rules.

    What each does, its parameters, and what it claims. A rule is shown at its defaults, and at a typical value of every
    parameter without one.

    Examples:

      fly-theory ls

      fly-theory ls --table
    """
    shown = entries()
    if as_json:
        print_json([_document(entry) for entry in shown])
    elif readers:
        display(table(rules_table.HEADINGS, map(rules_table.row, shown)), "", *rules_table.reasons(shown))
    else:
        display(table(("rule", "what it does"), [(entry.name, _description(entry)) for entry in shown]))


def _document(entry: Entry) -> dict[str, Any]:
    typical = entry.typical()
    return {**entry.as_json(), "at": typical.spec, "claims": list(map(str, typical.claims))}


def _description(entry: Entry) -> Text:
    typical = entry.typical()
    lines = [entry.summary]
    if entry.parameters:
        lines.append("parameters: " + "; ".join(f"{p.name} in {p.domain}" for p in entry.parameters))
    lines.append(f"claims of {typical.spec}: {'; '.join(map(str, typical.claims)) or 'none'}")
    if entry.level != "token":
        lines.append({"block": "judges whole blocks of draft tokens", "tree": "judges draft trees"}[entry.level])
    summary, *details = lines
    return Text.assemble(summary, ("\n" + "\n".join(details), "dim"))
