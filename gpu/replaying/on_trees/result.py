"""What a replay on draft trees found, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fly_theory.errors import unknown_name
from fly_theory.registry import tree_rule
from fly_theory.trees import TreeRule
from gpu.replaying.estimates import CONFIDENCE, Estimate, Figures, plain
from gpu.replaying.settings import ReplaySettings
from gpu.trace import TreeTrace

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["TreeReplay", "TreeRuleResult"]


@dataclass(frozen=True)
class TreeRuleResult:
    """What a replay found about one rule; `result["tv"]` is a figure.

    Attributes
    ----------
    figures
        Tokens per call on the trees, and the first emitted token's law against the target p.
    matched
        For a rule with an allowed set: that law against the target truncated to the set, p_A.
    baseline
        For a rule with an allowed set: verifying p_A losslessly on the same trees, and TV(p, p_A).
    notes
        What a reader has to know about these figures.
    """

    rule: TreeRule
    figures: Figures
    matched: Figures | None
    baseline: Figures | None
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Estimate | None:
        return self.figures[name]

    @property
    def spec(self) -> str:
        """The SPEC string of the rule."""
        return self.rule.spec

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rule": self.spec,
            "figures": plain(self.figures),
            "matched": None if self.matched is None else plain(self.matched),
            "baseline": None if self.baseline is None else plain(self.baseline),
            "notes": self.notes,
        }


@dataclass(frozen=True)
class TreeReplay:
    """What a replay found; `replay["lenience:l=0.5"]` is the result of that rule on the siblings of a tree in turn.

    Attributes
    ----------
    trace, settings
        What was replayed, and how.
    prompts
        How many prompts the trees follow.
    rules
        One result a rule.
    draft
        The figures of the draft q at the first positions against the target.
    notes
        What a reader has to know about all figures.
    provenance
        Versions, git revision, command line, seed, device and trace hash.
    """

    trace: TreeTrace = field(repr=False)
    settings: ReplaySettings
    prompts: int
    rules: tuple[TreeRuleResult, ...]
    draft: Figures
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]

    def __iter__(self) -> Iterator[TreeRuleResult]:
        return iter(self.rules)

    def __getitem__(self, spec: str) -> TreeRuleResult:
        wanted = tree_rule(spec).spec
        for result in self.rules:
            if result.spec == wanted:
                return result
        raise unknown_name(spec, kind="replayed rule", known=[result.spec for result in self.rules])

    def to_json(self) -> dict[str, Any]:
        """As plain values; all but `provenance` is a function of the trees and of what was asked for."""
        return {
            "schema": "fly-theory-tree-replay/1",
            "trace": {
                "models": self.trace.manifest["source"].get("models"),
                "trees": len(self.trace),
                "nodes": self.trace.nodes,
                "depth": self.trace.draft_length,
                "drawing": self.trace.drawing,
                "prompts": self.prompts,
                "vocabulary": self.trace.vocabulary,
                "dtype": self.trace.manifest["dtype"],
            },
            "settings": asdict(self.settings) | {"confidence": CONFIDENCE},
            "draft": plain(self.draft),
            "rules": [result.to_json() for result in self.rules],
            "notes": self.notes,
            "provenance": self.provenance,
        }

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from gpu.replaying.on_trees.table import summary

        yield from summary(self, width=options.max_width)
