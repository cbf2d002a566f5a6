"""`fly-theory sources`."""

from pathlib import Path
from typing import Annotated

import typer

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, print_json
from gpu.command_line import let_threads_sleep, progress_bar


def sources(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace folder, as `capture` writes it.")],
    datastore: Annotated[
        Path | None,
        typer.Option(help="Text file for REST, paragraphs as documents; by default the other prompts' texts."),
    ] = None,
    draft_cost: Annotated[
        float | None,
        typer.Option(help="Time of a draft-model call in target steps; by default that of FLy Table 1."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare sources of drafts on the texts that the target wrote: prompt lookup, REST, TokenRecycling, a draft model.

    Each is verified by the lossless rule. With two levels, the draft model verifies prompt lookup first.

    Examples:

      fly-theory sources trace

      fly-theory sources trace --datastore corpus.txt --draft-cost 0.1 --json
    """
    let_threads_sleep()
    import gpu

    with progress_bar("blocks") as bar:
        task = bar.add_task("reading", total=None)
        result = gpu.compare_sources(
            trace,
            datastore=datastore,
            draft_cost=draft_cost,
            progress=lambda done, total: bar.update(
                task, completed=done, total=total, description="drafting" if done == total else "reading"
            ),
        )
    if as_json:
        print_json(result.to_json())
        return
    from gpu.draft_sources.table import summary

    display(*summary(result))
