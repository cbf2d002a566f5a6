"""The answer of `check` and `conformance`: one result per invariant, each refutation with its witness."""

import dataclasses
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from fly_theory.files import json_text

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Estimate", "Outcome", "Report", "Result", "VerdictName", "Witness", "show"]

Outcome = Literal["proved", "held", "refuted", "not applicable", "undecided"]
VerdictName = Literal["lossless", "lossless but slower", "lossy", "invalid", "undecided"]
Conclusion = Literal["holds", "refuted", "undecided"]

_UNBOUNDED = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """A measured number with the interval it lies in, up to the stated false-alarm budget."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class Witness:
    """A counterexample: what goes in, what comes out, and what should have.

    inputs : name -> value, e.g. p (V,) and q (V,) as tuples of Fractions
    quantity : the name of what is compared, e.g. "out"
    got, expected : its wrong and its right value; `relation` is what should hold between them
    test : a ready-to-paste pytest case that fails for as long as the fault is there
    """

    inputs: Mapping[str, Any]
    quantity: str
    got: Any
    expected: Any
    relation: str = "="
    test: str = ""

    def __str__(self) -> str:
        inputs = [f"{name} = {show(value)}" for name, value in self.inputs.items()]
        return "\n".join(
            [
                *inputs,
                f"{self.quantity} is      {show(self.got)}",
                f"{self.quantity} must be {'' if self.relation == '=' else f'{self.relation} '}{show(self.expected)}",
            ]
        )


@dataclass(frozen=True)
class Result:
    """What was found about one invariant.

    `cases` is how many inputs it was judged on; `asked` says whether it was claimed: only claimed results decide
    `Report.ok`, the others inform. `detail` is one line: the bound, the method, or why it is not applicable.
    """

    name: str
    outcome: Outcome
    cases: int = 0
    witness: Witness | None = None
    detail: str = ""
    asked: bool = True

    def __str__(self) -> str:
        found = f"held on {self.cases} cases" if self.outcome == "held" else self.outcome
        return f"{self.name}: {found}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True)
class Report:
    """Everything `check` or `conformance` found about one subject.

    verdict : what the subject is, whether or not it claimed to be
    tv : the largest TV(out, p) met; a Fraction where exact
    max_ratio : the largest out(x)/p(x) met; infinite where mass lands on a token without target mass
    measures : further named numbers, e.g. acceptance rates side by side
    settings : how it was judged: arithmetic, seed, budgets, versions
    """

    subject: str
    verdict: VerdictName
    results: tuple[Result, ...]
    tv: Fraction | float | Estimate | None = None
    max_ratio: Fraction | float | Estimate | None = None
    measures: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def conclusion(self) -> Conclusion:
        """Whether what was claimed holds: one refutation refutes, else one undecided result leaves it undecided."""
        outcomes = {result.outcome for result in self.results if result.asked}
        if "refuted" in outcomes:
            return "refuted"
        return "undecided" if "undecided" in outcomes else "holds"

    @property
    def ok(self) -> bool:
        """Whether every claim asked for holds."""
        return self.conclusion == "holds"

    def __getitem__(self, name: str) -> Result:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def to_json(self) -> str:
        """The whole report as one JSON document; Fractions are written "3/10", infinity "inf"."""
        results = [
            {
                "name": result.name,
                "outcome": result.outcome,
                "claimed": result.asked,
                "cases": result.cases,
                "detail": result.detail,
                "witness": None if result.witness is None else vars(result.witness),
            }
            for result in self.results
        ]
        document = {
            "subject": self.subject,
            "verdict": self.verdict,
            "conclusion": self.conclusion,
            "ok": self.ok,
            "tv": _figure(self.tv),
            "max_ratio": _figure(self.max_ratio),
            "measures": {name: _figure(value) for name, value in self.measures.items()},
            "results": results,
            "settings": self.settings,
        }
        return json_text(document)

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=_UNBOUNDED, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def __rich__(self) -> "RenderableType":
        from rich.console import Group
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        style = {"holds": "bold green", "refuted": "bold red", "undecided": "bold yellow"}[self.conclusion]
        head = (
            Text(f"{self.subject}: ")
            .append(self.verdict, style="bold")
            .append("  claims: ")
            .append(self.conclusion, style=style)
        )
        table = Table("invariant", "claimed", "outcome", "detail", box=None, pad_edge=False, header_style="dim")
        for result in self.results:
            colour = {"refuted": "red" if result.asked else "dim", "undecided": "yellow", "not applicable": "dim"}.get(
                result.outcome, "green"
            )
            found = f"held on {result.cases}" if result.outcome == "held" else result.outcome
            table.add_row(
                Text(result.name), "yes" if result.asked else "", Text(found, style=colour), Text(result.detail)
            )
        blocks: list[RenderableType] = [head, Text(", ".join(self._figures())), table]
        for result in self.results:
            if result.witness is not None:
                blocks.append(Text(f"\n{result.name}: refuted by", style="red" if result.asked else "dim"))
                blocks.append(Padding(Text(str(result.witness)), (0, 0, 0, 2), expand=False))
                if result.asked and result.witness.test:
                    blocks.append(Padding(Text(f"\n{result.witness.test}"), (0, 0, 0, 2), expand=False))
        return Group(*blocks)

    def _figures(self) -> Iterator[str]:
        if self.tv is not None:
            yield f"TV(out, p) up to {show(self.tv)}"
        if self.max_ratio is not None:
            yield f"max out/p {show(self.max_ratio)}"
        for name, value in (*self.measures.items(), *self.settings.items()):
            yield f"{name} {show(value)}"


def show(value: Any) -> str:
    """A value as a reader wants it: fractions as 3/10, sequences in parentheses, mappings entry by entry."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{show(key)}: {show(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(show, value)) + ("," if len(value) == 1 else "") + ")"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _figure(value: Any) -> Any:
    return dataclasses.asdict(value) if isinstance(value, Estimate) else value
