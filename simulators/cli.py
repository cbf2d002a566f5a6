"""`fly-theory simulate`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, number, print_json, table
from fly_theory.cli.pair_source import DraftList, ExampleName, TargetList, pair_of
from fly_theory.errors import InvalidInput
from fly_theory.provenance import provenance
from fly_theory.registry import block_rule, rule, rules, tree_rule

if TYPE_CHECKING:
    from fly_theory.pairs import MarkovPair
    from simulators.estimates import Estimate
    from simulators.simulation import Simulation

_MOST_ROWS = 40


def simulate(
    specs: Annotated[list[str], typer.Argument(metavar="RULE...", help="SPECs of token, block or tree rules.")],
    pair: ExampleName = None,
    p: TargetList = None,
    q: DraftList = None,
    markov: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with target (V, V), draft (V, V) and start (V,): a pair with a memory of one token."
        ),
    ] = None,
    draft_length: Annotated[
        int | None, typer.Option("--draft-length", "-K", help="Draft tokens a round; none judges single tokens.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Write texts of this many tokens, over repeated rounds.")] = None,
    tree: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Draft a tree whose nodes have so many children at each depth."),
    ] = None,
    drawing: Annotated[
        str, typer.Option(help="How siblings are drawn: with-replacement, without-replacement or deterministic.")
    ] = "with-replacement",
    trials: Annotated[int, typer.Option(help="Most trials to run.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of every random draw; every rule sees the same draws.")] = 0,
    until: Annotated[
        float | None, typer.Option(metavar="WIDTH", help="Stop when the first interval is no wider.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of every interval.")] = 0.99,
    mean_interval: Annotated[
        str, typer.Option(help="Interval of means: student, or empirical-bernstein (wider, right for any trials).")
    ] = "student",
    plot: Annotated[Path | None, typer.Option(help="File to draw to: .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate by simulation what rules do, with intervals, beside exact values where they can be had.

    Token rules judge single tokens; with -K they judge blocks, as block rules do; with --tree they judge siblings in
    turn, beside tree rules.

    Examples:

      fly-theory simulate lossless lenience:l=0.5 --pair golden

      fly-theory simulate lossless block --pair golden -K 5 --trials 1000000

      fly-theory simulate lossless traversal --pair golden --tree 2,2 --drawing without-replacement

      fly-theory simulate fly:theta=0.3,window=2 --markov pair.json -K 8 --length 4 --until 0.01 --plot figure.png
    """
    import simulators

    if plot is not None:
        from fly_theory.figures.style import check_path

        check_path(plot)
    if markov is None:
        found = pair_of(pair, p, q)
        name, on = found.name, (found.p, found.q)
    elif (pair, p, q) != (None, None, None):
        msg = "--markov cannot be combined with --pair, --p or --q; the file is the pair"
        raise InvalidInput(msg)
    else:
        name, on = str(markov), _markov_pair(markov)
    blocks = draft_length is not None or length is not None or markov is not None
    if tree is None and blocks and draft_length is None:
        msg = "--draft-length (-K) is missing: with --length or --markov, rules judge blocks of K drafts"
        raise InvalidInput(msg)
    parents = None if tree is None else _topology(tree)
    make = tree_rule if parents else block_rule if blocks else _token_rule
    subjects = [make(spec) for spec in specs]
    simulations = []
    with _meter() as meter:
        for spec, subject in zip(specs, subjects, strict=True):
            task = meter.add_task(spec, total=trials)
            simulations.append(
                simulators.simulate(
                    subject,
                    on,
                    trials,
                    seed,
                    draft_length=draft_length,
                    length=length,
                    parents=parents,
                    drawing=drawing,
                    confidence=confidence,
                    mean_interval=mean_interval,
                    until=until,
                    progress=lambda done, total, task=task: meter.update(task, completed=done, total=total),
                )
            )
    if plot is not None:
        from fly_theory.figures.style import save
        from simulators.figure import figure

        save(figure(simulations), plot, description=f"fly-theory simulate {' '.join(specs)}: {name}, seed {seed}")
    if as_json:
        source = provenance(("jax", "jaxlib", "numpy", "scipy"), seed=seed, device="cpu")
        documents = [simulation.to_json() for simulation in simulations]
        print_json({"pair": name, "simulations": documents, "file": plot, "provenance": source})
        return
    for simulation in simulations:
        display(f"{_title(simulation, name, until)}\n", _estimates(simulation), "")
    if plot is not None:
        display(f"wrote {plot}")


def _token_rule(spec: str) -> Any:
    if spec.partition(":")[0] in rules(level="block"):
        msg = f"--draft-length (-K) is missing: {spec} judges blocks of K drafts"
        raise InvalidInput(msg)
    if spec.partition(":")[0] in rules(level="tree"):
        msg = f"--tree is missing: {spec} judges draft trees"
        raise InvalidInput(msg)
    return rule(spec)


def _topology(text: str) -> tuple[int, ...]:
    from fly_theory.trees import branching

    try:
        counts = [int(count) for count in text.split(",")]
    except ValueError as error:
        msg = f"--tree {text!r} is not a list of integers such as 2,2: the number of children at each depth"
        raise InvalidInput(msg) from error
    return branching(counts)


def _markov_pair(path: Path) -> "MarkovPair":
    from fly_theory.pairs import MarkovPair

    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        tables = [np.asarray(read[name], dtype=np.float64) for name in ("target", "draft", "start")]
    except (OSError, ValueError, LookupError, TypeError) as error:
        msg = f"--markov {path}: expected a JSON object with target, draft and start; {type(error).__name__}: {error}"
        raise InvalidInput(msg) from error
    return MarkovPair(*tables)


@contextmanager
def _meter() -> Iterator[Progress]:
    """A progress bar on stderr, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress


def _title(simulation: "Simulation", pair: str, until: float | None) -> str:
    title = f"{simulation.subject} on {pair}: {simulation.trials} trials, seed {simulation.seed}"
    if until is None:
        return title
    first = simulation.estimates[0]
    return (
        f"{title}; {first.label} is {'' if first.width <= until else 'not '}within {until:g} ({first.width:.3g} wide)"
    )


def _estimates(simulation: "Simulation") -> Any:
    shown = simulation.estimates[:_MOST_ROWS]
    headings = ("figure", "estimate", "low", "high", "exact", "interval")
    rows = [_row(estimate) for estimate in shown]
    if len(shown) < len(simulation.estimates):
        rows.append((f"and {len(simulation.estimates) - len(shown)} more: --json has them all", *[""] * 5))
    return table(headings, rows, numeric=headings[1:5])


def _row(estimate: "Estimate") -> tuple[str, ...]:
    exact = "" if estimate.exact is None else number(estimate.exact)
    interval = f"{estimate.method} {100 * estimate.confidence:.6g} %"
    return (estimate.label, number(estimate.value), number(estimate.low), number(estimate.high), exact, interval)
