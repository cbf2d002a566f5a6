"""The files of a replay: results.json, results.parquet, modes.parquet and report.html; of sweeps, curves and points."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fly_theory.errors import InvalidInput
from fly_theory.figures import encode
from fly_theory.figures.style import FORMATS
from fly_theory.files import json_text, write_bytes
from gpu.replaying.comparison import Comparison
from gpu.replaying.estimates import Figures
from gpu.replaying.measures import BASELINE, MATCHED
from gpu.replaying.on_blocks.result import BlockRuleResult
from gpu.replaying.partials import FOLDER as PARTIALS
from gpu.replaying.report import html
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.sweep_plots import sweep_curves
from gpu.replaying.tally import TV_EDGES

__all__ = [
    "JSON",
    "MODES",
    "PARQUET",
    "REPORT",
    "SWEEPS",
    "check_folder",
    "named_columns",
    "table_file",
    "write",
    "write_contents",
]

JSON, PARQUET, REPORT = "results.json", "results.parquet", "report.html"
MODES, SWEEPS = "modes.parquet", "sweeps.parquet"


def check_folder(folder: Path, *, overwrite: bool, resume: bool) -> None:
    """Refuse a place where results cannot go, before any work is done.

    Raises
    ------
    InvalidInput
        A file, or a folder that holds something already and is neither to be written over nor the beginning of a replay
        to be resumed.
    """
    if folder.exists() and not folder.is_dir():
        msg = f"out={str(folder)!r} is a file; give a folder"
        raise InvalidInput(msg)
    begun = (folder / PARTIALS).is_dir()
    if begun and not (overwrite or resume):
        msg = (
            f"out={str(folder)!r} holds the beginning of a replay; go on with it (--resume, resume=True), "
            "or start over (--force, overwrite=True)"
        )
        raise InvalidInput(msg)
    if folder.is_dir() and not (overwrite or begun) and any(folder.iterdir()):
        msg = f"out={str(folder)!r} is not empty; choose another folder, or write over it (--force, overwrite=True)"
        raise InvalidInput(msg)


def write(replay: Replay, folder: Path) -> None:
    """Write the files, each whole or not at all, results.json last.

    modes.parquet is written only if modes were looked for; sweeps.parquet and sweep-N, in every format, with sweeps.

    Raises
    ------
    InvalidInput
        The folder cannot be written to.
    """
    contents = {
        PARQUET: _parquet(replay, [_any_row(replay, result) for result in (*replay.rules, *replay.block_rules)]),
        **({MODES: _parquet(replay, modes)} if (modes := _mode_rows(replay)) else {}),
        **_of_sweeps(replay),
        REPORT: html(replay).encode(),
        JSON: json_text(replay.to_json()).encode(),
    }
    write_contents(contents, folder)


def write_contents(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write files by name, each whole or not at all, in the order given; modes and sweeps of an earlier result go.

    Raises
    ------
    InvalidInput
        The folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_bytes(folder / name, content)
        curves = [path.name for suffix in FORMATS for path in folder.glob(f"sweep-[0-9]*.{suffix}")]
        for name in {MODES, SWEEPS, *curves} - contents.keys():
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        msg = f"cannot write the results to {str(folder)!r}: {error.strerror}"
        raise InvalidInput(msg) from error


def _of_sweeps(replay: Replay) -> dict[str, bytes]:
    if not replay.sweeps:
        return {}
    rows = [
        {"sweep": sweep.text, "parameter": sweep.parameter, "value": point.value} | _any_row(replay, replay[point.rule])
        for sweep in replay.sweeps
        for point in sweep.points
    ]
    curves = {f"sweep-{number}": sweep_curves(replay, sweep) for number, sweep in enumerate(replay.sweeps, start=1)}
    figures = {f"{name}.{suffix}": encode(figure, suffix) for name, figure in curves.items() for suffix in FORMATS}
    return {SWEEPS: _parquet(replay, rows), **figures}


def _any_row(replay: Replay, result: RuleResult | BlockRuleResult) -> dict[str, Any]:
    return _block_row(replay, result) if isinstance(result, BlockRuleResult) else _row(replay, result)


def _parquet(replay: Replay, rows: Sequence[Mapping[str, Any]]) -> bytes:
    document = replay.to_json()
    described = {name: json_text(document[name]) for name in ("trace", "settings", "notes", "provenance")}
    return table_file(rows, described)


def table_file(rows: Sequence[Mapping[str, Any]], described: Mapping[str, str]) -> bytes:
    """Rows of named values as a parquet file, which carries what describes them as metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata({"fly-theory": json.dumps(described)}), sink)
    return sink.getvalue().to_pybytes()


def _common(replay: Replay, spec: str, level: str) -> dict[str, Any]:
    counts = {"blocks": len(replay.trace), "positions": replay.positions, "prompts": replay.prompts}
    return {"rule": spec, "level": level} | counts | replay.settings.law


def _block_row(replay: Replay, result: BlockRuleResult) -> dict[str, Any]:
    return (
        _common(replay, result.spec, "block")
        | {"draft_length": result.draft_length, "notes": []}
        | named_columns({name: figure for name, figure in result.figures.items() if figure is not None})
    )


def _row(replay: Replay, result: RuleResult) -> dict[str, Any]:
    return (
        _common(replay, result.spec, "token")
        | {"draft_length": replay.trace.draft_length}
        | named_columns(result.figures)
        | named_columns(result.matched or {}, MATCHED)
        | named_columns(result.baseline or {}, BASELINE)
        | _compared(result.comparison)
        | {"tv_edges": list(TV_EDGES), "tv_counts": list(result.tv_histogram), "notes": list(result.notes)}
    )


def _compared(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {}
    differences = {name: getattr(comparison, name) for name in ("tokens_per_call", "acceptance", "tv")}
    told = {"matched_to": comparison.against, "verdict": comparison.verdict}
    return told | named_columns(differences, f"minus_{BASELINE}")


def named_columns(figures: Figures, prefix: str = "") -> dict[str, float | None]:
    """Figures as the columns of a row: the mean under the figure's own name, its other parts beside it."""
    columns: dict[str, float | None] = {}
    for name, estimate in figures.items():
        parts = ("mean", "low", "high", "largest", "finite_mean", "infinite_share")
        for part in parts:
            key = f"{prefix}{name}" if part == "mean" else f"{prefix}{name}_{part}"
            columns[key] = None if estimate is None else getattr(estimate, part)
        if estimate is not None and estimate.certified is not None:
            ends = zip(("low", "high"), estimate.certified, strict=True)
            columns |= {f"{prefix}{name}_certified_{end}": value for end, value in ends}
    return columns


def _mode_rows(replay: Replay) -> list[dict[str, Any]]:
    """A row a rule and mode; those of the pair have no rule."""
    found = [(result.spec, mode) for result in (*replay, *replay.block_rules) for mode in result.modes]
    return [
        {"rule": spec, "mode": mode.mode.name, "level": str(mode.mode.level)}
        | named_columns({"rate": mode.rate, "explained": mode.explained})
        for spec, mode in [*found, *((None, mode) for mode in replay.pair_modes)]
    ]
