"""Findings as files: one self-contained page, and of each item its figures, its values and its marked text."""

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from fly_theory.errors import InvalidInput
from fly_theory.figures import encode
from fly_theory.files import json_text, write_bytes, write_text
from fly_theory.reproduce.item import Compared, Finding, Item

__all__ = ["page", "write"]

_COLUMNS = ("what", "published", "ours", "difference", "allowed", "agrees")
_STYLE = """
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 64rem; color: #1d2330; background: #fff;
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.15rem; margin-top: 2.75rem; padding-top: .75rem; border-top: 1px solid #d9dde5; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem .25rem 0; text-align: right; border-bottom: 1px solid #d9dde5; vertical-align: top; }
th:first-child, td:first-child, .text { text-align: left; }
tr.off td { background: #fdeeee; } .soft { color: #5b6475; font-size: .87rem; }
.outcome { font-weight: 600; } .reproduced { color: #00714f; } .explained { color: #0060a0; } .not { color: #a04000; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
pre { background: #f6f7f9; padding: .75rem; overflow-x: auto; font-size: .78rem; }
summary { cursor: pointer; }
"""


def write(folder: Path, findings: Mapping[str, tuple[Item, Finding]], provenance: Mapping[str, Any]) -> list[Path]:
    """Write `index.html` and the files of each item into a folder, which is made if it is not there.

    Raises
    ------
    InvalidInput
        When the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [path for name, (_, finding) in findings.items() for path in _files(folder, name, finding)]
        index = folder / "index.html"
        write_text(index, page(findings, provenance))
    except OSError as error:
        msg = f"cannot write to {str(folder)!r}: {error.strerror}"
        raise InvalidInput(msg) from error
    return [*written, index]


def _files(folder: Path, name: str, finding: Finding) -> list[Path]:
    paths = []
    for label, figure in finding.figures.items():
        for file_format in ("svg", "png"):
            paths.append(folder / f"{name}-{label}.{file_format}")
            write_bytes(paths[-1], encode(figure, file_format, description=f"fly-theory reproduce {name}: {label}"))
    for label, fragment in finding.fragments.items():
        paths.append(folder / f"{name}-{label}.html")
        write_text(paths[-1], _document(f"{name}: {label}", fragment))
    if finding.values:
        paths.append(folder / f"{name}.csv")
        table = io.StringIO()
        rows = csv.DictWriter(table, _COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(value.as_json() for value in finding.values)
        write_text(paths[-1], table.getvalue())
    return paths


def page(findings: Mapping[str, tuple[Item, Finding]], provenance: Mapping[str, Any]) -> str:
    """One HTML page that needs nothing but itself."""
    overview = "".join(
        f'<tr><td><a href="#{name}">{escape(item.title)}</a></td><td class="text">{escape(item.source)}</td>'
        f'<td class="text">{_outcome(finding)}</td>'
        f"<td>{len(finding.values)}</td><td>{len(finding.disagreements)}</td></tr>"
        for name, (item, finding) in findings.items()
    )
    sections = "".join(_section(name, item, finding) for name, (item, finding) in findings.items())
    return _document(
        "What the papers say, computed anew",
        "<h1>What the papers say, computed anew</h1>"
        "<p><b>Reproduced</b>: ours is the published figure, up to rounding or a stated accuracy. <b>Explained</b>: "
        "theory or arithmetic accounts for it, deviations listed. <b>Not reproducible here</b>: it does not follow "
        "from what is published, or needs models that are not here. Differences are ours minus published.</p>"
        '<table><tr><th>item</th><th class="text">source</th><th class="text">outcome</th>'
        "<th>values</th><th>off</th></tr>"
        f"{overview}</table>\n{sections}\n<h2>Where this comes from</h2><pre>{escape(json_text(provenance))}</pre>",
    )


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def _section(name: str, item: Item, finding: Finding) -> str:
    pictures = "".join(
        f'<figure><img alt="{escape(label)}" width="{round(100 * figure.get_figwidth())}" '
        f'src="data:image/png;base64,{base64.b64encode(encode(figure, "png")).decode()}"></figure>'
        for label, figure in finding.figures.items()
    )
    off = finding.disagreements
    named = f"<p>Further apart than allowed:</p>{_table(off)}" if off else ""
    everything = (
        f"<details><summary>All {len(finding.values)} values</summary>{_table(finding.values)}</details>"
        if finding.values
        else ""
    )
    return (
        f'<h2 id="{name}">{escape(item.title)}</h2><p class="soft">{escape(item.source)} · <code>fly-theory reproduce '
        f"{name}</code></p><p>{_outcome(finding)}. {escape(finding.why)}</p>"
        f"{pictures}{''.join(finding.fragments.values())}{named}{everything}\n"
    )


def _outcome(finding: Finding) -> str:
    return f'<span class="outcome {finding.outcome.split()[0]}">{finding.outcome.capitalize()}</span>'


def _table(values: Sequence[Compared]) -> str:
    heads = "".join(f"<th>{head}</th>" for head in _COLUMNS[:-1])
    rows = "".join(
        f"<tr{' class=off' if value.agrees is False else ''}><td>{escape(value.what)}</td>"
        + "".join(f"<td>{_text(x)}</td>" for x in (value.published, value.ours, value.difference, value.allowed))
        + "</tr>"
        for value in values
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _text(value: float | Fraction | str | None) -> str:
    if value is None:
        return ""
    return escape(value) if isinstance(value, str) else f"{round(float(value), 12) + 0.0:.6g}"
