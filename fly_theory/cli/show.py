"""`fly-theory show`."""

import itertools
from typing import Annotated, Any

import numpy as np
import typer

from fly_theory.cli.catalogue import Entry, find
from fly_theory.cli.options import AsJson
from fly_theory.cli.output import display, number, print_json, table
from fly_theory.closed_form import waste
from fly_theory.divergence import max_ratio, total_variation
from fly_theory.example_pairs import example_pair

_SECTIONS = ("Statement", "Guarantee", "Reference")


def show(
    spec: Annotated[str, typer.Argument(metavar="RULE", help="A name, or a SPEC such as lenience:l=0.4.")],
    as_json: AsJson = False,
) -> None:
    """Show a rule and what it does to a small example.

    Its formula, guarantee, source, claims and parameters. A bare name is shown at the defaults, and at a typical value
    of every parameter without one.

    Examples:

      fly-theory show lenience

      fly-theory show typical:eps=0.09,delta=0.3
    """
    entry, rule = find(spec)
    claims = [str(claim) for claim in rule.claims]
    example = {"token": _token_example, "block": _block_example, "tree": _tree_example}[entry.level](rule)
    if as_json:
        sections = {heading.lower(): entry.sections.get(heading, "") for heading in _SECTIONS}
        print_json({"spec": rule.spec, **entry.as_json(), **sections, "claims": claims, "example": example})
        return
    display(f"{entry.name} ({entry.level} level)\n{entry.summary}")
    for heading in _SECTIONS:
        _section(heading, entry.sections.get(heading, "not documented"))
    _section(f"Claims of {rule.spec}", "\n".join(claims) or "none")
    if entry.parameters:
        display("\nParameters", table(("name", "domain", "default", "strict at", "meaning"), _parameters(entry)))
    _section(f"Example: {rule.spec}", "\n".join(f"{name:<16}{_text(value)}" for name, value in example.items()))
    for interpreter, (reason, always) in entry.unreadable().items():
        _section(f"Not readable by {interpreter.value}{'' if always else ' at some settings'}", reason)


def _section(heading: str, text: str) -> None:
    indented = text.replace("\n", "\n  ")
    display(f"\n{heading}\n  {indented}")


def _parameters(entry: Entry) -> list[tuple[str, ...]]:
    return [
        (
            p.name,
            str(p.domain),
            "required" if p.required else str(p.default),
            "" if p.strict_at is None else str(p.strict_at),
            p.help,
        )
        for p in entry.parameters
    ]


def _token_example(rule: Any) -> dict[str, Any]:
    p, q = example_pair("golden").arrays()
    out = rule.induced(p, q)
    return {
        "p": p,
        "q": q,
        "acceptance": rule.acceptance(p, q),
        "out": out,
        "TV(out, p)": total_variation(p, out),
        "max out/p": max_ratio(p, out),
        "waste": waste(p, q, rule),
    }


def _block_example(rule: Any) -> dict[str, Any]:
    """Two drafts from the same pair at every position; every drafted path weighed by its probability."""
    from fly_theory.blocks import Block

    p, q = example_pair("swapped").arrays()
    paths = np.array(list(itertools.product(range(len(p)), repeat=2)))
    block = Block(np.stack([p] * 3), np.stack([q] * 2), paths)
    law = q[paths].prod(axis=-1) @ rule.length_law(block)
    return {
        "p at each": p,
        "q at each": q,
        "drafts": 2,
        "P(n kept)": law,
        "expected kept": law @ np.arange(3),
    }


def _tree_example(rule: Any) -> dict[str, Any]:
    """Two candidates for one position, drawn as the rule wants them, beside the most that any lossless rule accepts."""
    from fly_theory.trees import optimal_acceptance, position_law

    (p, q), drawing = example_pair("golden").arrays(), rule.drawings[0]
    law = position_law(rule, p, q, 2, drawing=drawing)
    return {
        "p": p,
        "q": q,
        "candidates": 2,
        "drawn": drawing,
        "acceptance": law.acceptance,
        "optimum": optimal_acceptance(p, q, 2, drawing=drawing),
        "out": law.induced,
        "TV(out, p)": total_variation(p, law.induced),
    }


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"({', '.join(map(number, value))})" if np.ndim(value) else number(value)
