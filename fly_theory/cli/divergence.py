"""`fly-theory divergence`."""

from typing import Annotated, Any

import typer

from fly_theory.arrays import Array
from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, number, print_json, table
from fly_theory.cli.pair_source import ExampleName, TargetList, pair_of
from fly_theory.divergence import DIVERGENCES, renyi
from fly_theory.registry import rule

_HEADINGS = {
    "total_variation": "TV",
    "kl": "KL(p||out)",
    "reverse_kl": "KL(out||p)",
    "js": "JS",
    "chi2": "chi2",
    "hellinger": "Hellinger",
    "max_ratio": "max out/p",
}


def divergence(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE]...", help="SPECs; none compares p and q.")
    ] = None,
    pair: ExampleName = None,
    p: TargetList = None,
    q: Annotated[
        str | None, typer.Option("--q", "--out", help="Draft, or without a RULE the distribution to compare with p.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Order of the Renyi divergence.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Measure how far distributions are from a target p.

    The distributions are the outputs of rules on p and a draft q, or without a rule q itself. Logs are natural; the
    Renyi divergence is that of p from out.

    Examples:

      fly-theory divergence --p 1/2,1/2 --out 1/3,2/3

      fly-theory divergence lossless lenience:l=0.5 cos:w=0.5 --pair golden
    """
    found = pair_of(pair, p, q)
    outs = {spec: rule(spec).induced(found.p, found.q) for spec in specs or []} or {"q": found.q}
    measured = {name: _measures(found.p, out, alpha) for name, out in outs.items()}
    if as_json:
        print_json({"pair": found.name, "p": found.p, "q": found.q, "renyi_alpha": alpha, "divergences": measured})
        return
    headings = ("out", *_HEADINGS.values(), f"Renyi({alpha:g})")
    rows = [(name, *map(number, measures.values())) for name, measures in measured.items()]
    display(f"{found.name}\n", table(headings, rows, numeric=headings[1:]))


def _measures(p: Array, out: Array, alpha: float) -> dict[str, Any]:
    return {**{name: DIVERGENCES[name](p, out) for name in _HEADINGS}, "renyi": renyi(p, out, alpha=alpha)}
