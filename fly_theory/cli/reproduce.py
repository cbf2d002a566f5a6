"""`fly-theory reproduce`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json, table
from fly_theory.errors import InvalidInput
from fly_theory.provenance import provenance


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="ITEM...", help="Items, as --list names them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every item.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the items and stop.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page, the figures and the tables.")] = Path(
        "reproduced"
    ),
    as_json: AsJson = False,
) -> None:
    """Compute figures, tables and statements of two papers anew, and hold them against what is published.

    Each item is reproduced, explained, or not reproducible here, and says why. The folder gets one page, index.html,
    that needs nothing but itself, and of each item its figures (SVG and PNG), values (CSV) and marked texts (HTML).

    Examples:

      fly-theory reproduce --list

      fly-theory reproduce lossy-table-2 fly-tables-4-9

      fly-theory reproduce --all --out evidence
    """
    from fly_theory.reproduce import item, items, write

    if listing:
        known = [(name, item.source, item.title) for name, item in items().items()]
        if as_json:
            print_json([{"name": name, "source": source, "title": title} for name, source, title in known])
        else:
            display(table(("item", "source", "title"), known))
        return
    if bool(names) == everything:
        msg = "give either ITEM... or --all; --list names the items"
        raise InvalidInput(msg)
    chosen = items() if everything else {name: item(name) for name in names or ()}
    progress = Console(stderr=True)
    findings = {}
    with progress.status("") as status:
        for name, wanted in chosen.items():
            status.update(name)
            findings[name] = (wanted, wanted.find())
    source = provenance(("matplotlib", "numpy", "scipy"), seed=None, device="cpu")
    files = write(out, findings, source)
    if as_json:
        document = [
            {
                "name": name,
                "source": wanted.source,
                "outcome": finding.outcome,
                "why": finding.why,
                "values": [value.as_json() for value in finding.values],
            }
            for name, (wanted, finding) in findings.items()
        ]
        print_json({"items": document, "files": files, "provenance": source})
        return
    rows = [
        (name, finding.outcome, str(len(finding.values)), str(len(finding.disagreements)))
        for name, (_, finding) in findings.items()
    ]
    display(table(("item", "outcome", "values", "off"), rows, numeric=("values", "off")), f"wrote {files[-1]}")
