"""What a replay found, as data."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fly_theory.errors import unknown_name
from fly_theory.rules.base import Rule
from gpu.replaying.cases import Case
from gpu.replaying.comparison import Comparison
from gpu.replaying.estimates import CONFIDENCE, Estimate, Figures, plain
from gpu.replaying.modes.consistency import Consistency
from gpu.replaying.modes.found import ModeResult
from gpu.replaying.on_blocks.result import BlockRuleResult
from gpu.replaying.resolving import from_spec
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.sweep import Sweep
from gpu.replaying.tally import TV_EDGES
from gpu.trace import Trace

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["Replay", "RuleResult"]


@dataclass(frozen=True)
class RuleResult:
    """What a replay found about one rule; `result["tv"]` is a figure.

    Attributes
    ----------
    figures
        Of the rule's output against the target p.
    matched
        For a rule with an allowed set: the figures of its output against the target truncated to that set, p_A.
    baseline
        What a lossy rule is held against: acceptance and block efficiency of verifying losslessly the target p_A of its
        allowed set, and TV(p, p_A); for a rule without one, of sampling its own output law exactly.
    comparison
        The rule minus its baseline, with a verdict.
    tv_histogram
        Numbers of positions by TV(p, out): below the first of `TV_EDGES`, which is rounding, then between each two.
    worst
        The positions farthest from the target, worst first; none where nothing but rounding is found.
    modes
        The failure modes, those first that explain most of the divergence; none where they were not looked for.
    notes
        What a reader has to know about these figures.
    """

    rule: Rule
    figures: Figures
    matched: Figures | None
    baseline: Figures | None
    comparison: Comparison | None
    tv_histogram: tuple[int, ...]
    worst: tuple[Case, ...]
    modes: tuple[ModeResult, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Estimate | None:
        return self.figures[name]

    @property
    def spec(self) -> str:
        """The SPEC string of the rule."""
        return self.rule.spec

    @property
    def label(self) -> str:
        """What the rule is called in tables: its SPEC."""
        return self.spec

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rule": self.spec,
            "figures": plain(self.figures),
            "matched": None if self.matched is None else plain(self.matched),
            "baseline": None if self.baseline is None else plain(self.baseline),
            "comparison": self.comparison and self.comparison.to_json(),
            "tv_histogram": {"edges": TV_EDGES, "counts": self.tv_histogram},
            "worst": [case.to_json() for case in self.worst],
            "modes": [found.to_json() for found in self.modes],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Replay:
    """What a replay found; `replay["lenience:l=0.5"]` is the result of that rule, a `RuleResult` or `BlockRuleResult`.

    Attributes
    ----------
    trace, settings
        What was replayed, and how.
    positions, prompts
        How many draft tokens were judged, from how many prompts.
    rules, block_rules
        One result a rule: of token-level rules, over which iteration goes, and of block rules.
    draft
        The figures of the draft q itself against the target: of accepting everything.
    pair_modes
        The failure modes of the pair and its trace, whatever the rule.
    consistency
        Whether the draft tokens look drawn from the q of this replay; None where modes were not looked for.
    notes
        What a reader has to know about all figures.
    provenance
        Versions, git revision, command line, seed, device and trace hash.
    sweeps
        Which of the settings are the points of a curve.
    points_only
        The SPECs of settings that nobody asked for but a sweep: the report shows them in its curve only.
    """

    trace: Trace = field(repr=False)
    settings: ReplaySettings
    positions: int
    prompts: int
    rules: tuple[RuleResult, ...]
    draft: Figures
    pair_modes: tuple[ModeResult, ...]
    consistency: Consistency | None
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]
    block_rules: tuple[BlockRuleResult, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    points_only: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[RuleResult]:
        return iter(self.rules)

    def __getitem__(self, spec: str) -> Any:
        results = (*self.rules, *self.block_rules)
        for result in results:
            if result.spec == spec:
                return result
        wanted = from_spec(spec).spec
        for result in results:
            if result.spec == wanted:
                return result
        raise unknown_name(spec, kind="replayed rule", known=[result.spec for result in results])

    def to_json(self) -> dict[str, Any]:
        """As plain values; all but `provenance` is a function of the blocks and of what was asked for."""
        source = self.trace.manifest["source"]
        return {
            "schema": "fly-theory-replay/1",
            "trace": {
                "models": source.get("models"),
                "blocks": len(self.trace),
                "draft_length": self.trace.draft_length,
                "positions": self.positions,
                "prompts": self.prompts,
                "vocabulary": self.trace.vocabulary,
                "dtype": self.trace.manifest["dtype"],
            },
            "settings": asdict(self.settings) | {"confidence": CONFIDENCE},
            "draft": plain(self.draft),
            "pair_modes": [found.to_json() for found in self.pair_modes],
            "consistency": None if self.consistency is None else self.consistency.to_json(),
            "rules": [result.to_json() for result in self.rules],
            "block_rules": [result.to_json() for result in self.block_rules],
            "sweeps": [sweep.to_json() for sweep in self.sweeps],
            "notes": self.notes,
            "provenance": self.provenance,
        }

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from gpu.replaying.table import summary

        yield from summary(self, width=options.max_width)
