"""`fly-theory replay`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json
from gpu.command_line import Epsilon, Eta, MinP, TopK, TopP, let_threads_sleep, progress_bar
from gpu.settings import Device


def replay(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace folder, as `capture` writes it.")],
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RULE]...", help="SPECs of token-level and block rules; on draft trees of token and tree rules."
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="One parameter moved through LOW:HIGH:STEP, or the draft length K after @. May be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html, results.json and results.parquet; new or empty.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over earlier results in --out.")] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Of both models; by default the one the draft tokens were drawn at.")
    ] = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    epsilon: Epsilon = None,
    eta: Eta = None,
    dtype: Annotated[Literal["float32", "float64"], typer.Option(help="Of all arithmetic.")] = "float32",
    device: Annotated[Device, typer.Option(help="auto is cuda where there is one.")] = "auto",
    modes: Annotated[
        bool, typer.Option("--modes/--no-modes", help="Look for failure modes, or only for figures.")
    ] = True,
    tail: Annotated[
        float | None,
        typer.Option(help="Sum tokens of up to this joint mass (p + q)/2 a row; figures become certified intervals."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share the shards of the trace.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="Spread the shards over a Ray cluster instead.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what a killed run finished in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate verification rules on every captured row of a trace.

    Block efficiency needs draft tokens drawn from the replayed draft law; at another temperature, or with warpers, it
    is left out and the notes say why.

    Examples:

      fly-theory replay trace lossless lenience:l=0.5 cos:w=0.5 --out results

      fly-theory replay trace lossless min-p:base=0.1 --temperature 0.7 --top-p 0.9 --json

      fly-theory replay trace lossless lenience:l=0.5 --out results --workers 4 --resume

      fly-theory replay trace lossless fly fly-released --sweep fly:theta=0:1:0.1 --sweep fly@1:15:1 --out results

      fly-theory replay trace lossless min-p:base=0.1 --tail 0.01

      fly-theory replay trees lossless min-p:base=0.1 greedy-path threshold-walk:single=0.5,acc=0.75 --out results
    """
    let_threads_sleep()
    import gpu

    with progress_bar("blocks") as bar:
        task = bar.add_task("replaying", total=None)
        result = gpu.replay(
            trace,
            specs or (),
            sweeps=sweep or (),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            epsilon=epsilon,
            eta=eta,
            dtype=dtype,
            device=device,
            tail=tail,
            modes=modes,
            out=out,
            overwrite=force,
            workers=workers,
            ray=ray,
            resume=resume,
            progress=lambda done, total: bar.update(
                task,
                completed=done,
                total=total,
                description="writing the report" if out is not None and done == total else "replaying",
            ),
        )
    if as_json:
        print_json(result.to_json())
        return
    from gpu.replaying import on_trees, table
    from gpu.replaying.files import JSON, PARQUET, REPORT

    summary = on_trees.summary if isinstance(result, gpu.TreeReplay) else table.summary
    display(*summary(result, width=Console().width if sys.stdout.isatty() else None))
    if out is not None:
        display(f"\nreport: {out / REPORT}\nresults: {out / JSON}, {out / PARQUET}")
