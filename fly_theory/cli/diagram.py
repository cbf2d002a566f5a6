"""`fly-theory diagram`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fly_theory import __version__
from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, number, print_json, table
from fly_theory.cli.pair_source import DraftList, ExampleName, Pair, TargetList, pair_of, pair_of_trace
from fly_theory.divergence import max_ratio, total_variation
from fly_theory.errors import InvalidInput
from fly_theory.example_pairs import EXAMPLE_PAIRS
from fly_theory.provenance import provenance
from fly_theory.registry import rule as rule_of
from fly_theory.registry import rules as rules_of
from fly_theory.registry import tree_rule

if TYPE_CHECKING:
    from fly_theory.figures.diagram import OneTokenRule

_TOP_OF_TRACE = 15


def diagram(
    specs: Annotated[list[str] | None, typer.Argument(metavar="RULE...", help="SPECs, one panel each.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write: .png, .svg or .pdf.")] = None,
    pair: ExampleName = None,
    p: TargetList = None,
    q: DraftList = None,
    trace: Annotated[Path | None, typer.Option(help="Folder of a trace; its row is the pair.")] = None,
    block: Annotated[int, typer.Option(help="Block of the trace, from 0.")] = 0,
    position: Annotated[int, typer.Option(help="Position in the block, from 0.")] = 0,
    temperature: Annotated[float, typer.Option(help="Temperature of both models on the row of the trace.")] = 1.0,
    top: Annotated[
        int | None,
        typer.Option(help="Show this many tokens and the sum of the others; 15 on a trace, else all up to 60."),
    ] = None,
    drafts: Annotated[
        int | None, typer.Option(help="Draft this many candidates: token rules try them in turn, beside tree rules.")
    ] = None,
    drawing: Annotated[
        str, typer.Option(help="How candidates are drawn: with-replacement, without-replacement or deterministic.")
    ] = "with-replacement",
    width: Annotated[float | None, typer.Option(help="Width in inches; a paper's column or two by default.")] = None,
    list_pairs: Annotated[bool, typer.Option("--list-pairs", help="List the example pairs and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw what rules do to a target and a draft.

    One panel a rule, all on the same axes, tokens by falling target probability.

    Examples:

      fly-theory diagram lossless lenience:l=0.5 cos:w=0.5 -o figure.pdf

      fly-theory diagram cos:w=0.5 --p 1/2,3/10,1/5 --q 0.2,0.1,0.7 -o figure.png

      fly-theory diagram lossless k-seq min-p:base=0.5 --pair golden --drafts 3 -o figure.png

      fly-theory diagram lossless --trace trace --block 3 --position 2 -o figure.svg
    """
    if list_pairs:
        _list_pairs(as_json)
        return
    if not specs or out is None:
        msg = f"{'a RULE' if not specs else '-o FILE'} is missing: fly-theory diagram RULE... -o FILE.png"
        raise InvalidInput(msg)
    from fly_theory import figures
    from fly_theory.figures.diagram import ceiling_factor
    from fly_theory.figures.style import check_path

    check_path(out)
    if trace is None:
        found = pair_of(pair, p, q)
    elif (pair, p, q) != (None, None, None):
        msg = "--trace cannot be combined with --pair, --p or --q; a row of the trace is the pair"
        raise InvalidInput(msg)
    else:
        found = pair_of_trace(trace, block, position, temperature)
        top = _TOP_OF_TRACE if top is None else top
    rules = [_rule(spec, drafts, drawing) for spec in specs]
    figure = figures.diagram(found.p, found.q, rules, titles=specs, token_name=found.token_name, top=top, width=width)
    figures.save(figure, out, description=f"fly-theory {__version__} diagram {' '.join(specs)}: {found.name}")
    panels = [{**_measures(found, rule), "ceiling": ceiling_factor(rule, found.p, found.q)} for rule in rules]
    if as_json:
        source = provenance(("matplotlib", "numpy"), seed=None, device="cpu")
        print_json({"file": out, "pair": found.name, "panels": panels, "provenance": source})
    else:
        headings = ("rule", "acceptance", "TV(out, p)", "max out/p", "ceiling")
        display(table(headings, map(_row, panels), numeric=headings[1:]), f"wrote {out}")


def _rule(spec: str, drafts: int | None, drawing: Any) -> "OneTokenRule":
    if drafts is None:
        if spec.partition(":")[0] in rules_of(level="tree"):
            msg = f"--drafts is missing: {spec} judges several candidates"
            raise InvalidInput(msg)
        one_draft: OneTokenRule = rule_of(spec)
        return one_draft
    from fly_theory.trees import AtPosition

    return AtPosition(tree_rule(spec), drafts, drawing)


def _measures(pair: Pair, rule: "OneTokenRule") -> dict[str, Any]:
    out = rule.induced(pair.p, pair.q)
    return {
        "spec": rule.spec,
        "acceptance": rule.acceptance(pair.p, pair.q),
        "tv": total_variation(pair.p, out),
        "max_ratio": max_ratio(pair.p, out),
    }


def _row(panel: dict[str, Any]) -> list[str]:
    spec, *figures = panel.values()
    return [spec, *("none" if figure is None else number(figure) for figure in figures)]


def _list_pairs(as_json: bool) -> None:
    if as_json:
        print_json([{"name": e.name, "shows": e.shows, "p": e.p, "q": e.q} for e in EXAMPLE_PAIRS.values()])
    else:
        display(table(("pair", "tokens", "shows"), [(e.name, str(len(e.p)), e.shows) for e in EXAMPLE_PAIRS.values()]))
