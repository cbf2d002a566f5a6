"""The files of a replay on draft trees; their names are those of a replay on blocks."""

from pathlib import Path
from typing import Any

from fly_theory.files import json_text
from gpu.replaying.files import JSON, PARQUET, REPORT, named_columns, table_file, write_contents
from gpu.replaying.measures import BASELINE, MATCHED
from gpu.replaying.on_trees.report import html
from gpu.replaying.on_trees.result import TreeReplay, TreeRuleResult

__all__ = ["write_result"]


def write_result(replay: TreeReplay, folder: Path) -> None:
    """Write the three files, each whole or not at all, results.json last.

    Raises
    ------
    InvalidInput
        The folder cannot be written to.
    """
    document = replay.to_json()
    described = {name: json_text(document[name]) for name in ("trace", "settings", "notes", "provenance")}
    rows = [_row(replay, result) for result in replay]
    contents = {
        PARQUET: table_file(rows, described),
        REPORT: html(replay).encode(),
        JSON: json_text(document).encode(),
    }
    write_contents(contents, folder)


def _row(replay: TreeReplay, result: TreeRuleResult) -> dict[str, Any]:
    return (
        {"rule": result.spec, "trees": len(replay.trace), "nodes": replay.trace.nodes, "prompts": replay.prompts}
        | replay.settings.law
        | named_columns(result.figures)
        | named_columns(result.matched or {}, MATCHED)
        | named_columns(result.baseline or {}, BASELINE)
        | {"notes": list(result.notes)}
    )
