"""Draft sources compared on the target's own texts: tokens per target call, and what the cost model makes of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fly_theory.cost import RoundTime, fly_table1, implied_lookup
from fly_theory.errors import InvalidInput, unknown_name
from fly_theory.provenance import provenance
from gpu.draft_sources.base import DraftSource
from gpu.draft_sources.datastore import Datastore
from gpu.draft_sources.multi_level import DrafterCalls, drafter_calls, fitted
from gpu.draft_sources.prompt_lookup import FlyLookup, OriginalLookup, TransformersLookup
from gpu.draft_sources.rest import Rest
from gpu.draft_sources.texts import RecordedDraft, Text, read_texts
from gpu.draft_sources.token_recycling import TokenRecycling
from gpu.draft_sources.walking import Call, walk
from gpu.replaying.estimates import CONFIDENCE, Estimate, clustered_mean
from gpu.replaying.settings import drawn_temperature
from gpu.trace import TopKTrace, Trace, TreeTrace, open_trace

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["RECORDED", "TWO_LEVELS", "Comparison", "SourceResult", "compare_sources"]

RECORDED, TWO_LEVELS = "recorded draft", "recorded draft, itself drafted by FLy's lookup"


@dataclass(frozen=True)
class SourceResult:
    """What a source of drafts made of the texts.

    Attributes
    ----------
    calls
        Target calls.
    tokens_per_call, accepted_per_call
        Over all calls, with intervals that take a prompt as a cluster.
    drafting
        Share of the calls that had a draft.
    drafted_per_call
        Tokens the target judged in a call, all branches counted.
    drafter_calls
        Calls of the draft model in a round; 0 where there is none.
    modelled_drafter_calls
        The same by the cost model of the lookup, from the share of copied tokens kept; None for other sources.
    speedup
        Over plain decoding by `fly_theory.cost.RoundTime`, a verification costing a plain step whatever its size.
    """

    name: str
    calls: int
    tokens_per_call: Estimate
    accepted_per_call: Estimate
    drafting: float
    drafted_per_call: float
    drafter_calls: float
    modelled_drafter_calls: float | None
    speedup: float
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        estimates = {name: getattr(self, name) for name in ("tokens_per_call", "accepted_per_call")}
        return asdict(self) | {name: _plain(estimate) for name, estimate in estimates.items()}


@dataclass(frozen=True)
class Comparison:
    """Draft sources on the texts of a trace; `comparison["REST"]` is the result of one.

    Attributes
    ----------
    prompts, tokens
        How many texts there are, and how many tokens the target wrote in them.
    draft_cost
        Time of a call of the draft model, in target steps.
    """

    trace: Trace = field(repr=False)
    prompts: int
    tokens: int
    draft_cost: float
    sources: tuple[SourceResult, ...]
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]

    def __getitem__(self, name: str) -> SourceResult:
        for source in self.sources:
            if source.name == name:
                return source
        raise unknown_name(name, kind="draft source", known=[source.name for source in self.sources])

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "schema": "fly-theory-sources/1",
            "trace": {
                "models": self.trace.manifest["source"].get("models"),
                "blocks": len(self.trace),
                "draft_length": self.trace.draft_length,
                "prompts": self.prompts,
                "tokens": self.tokens,
            },
            "confidence": CONFIDENCE,
            "draft_cost": self.draft_cost,
            "sources": [source.to_json() for source in self.sources],
            "notes": self.notes,
            "provenance": self.provenance,
        }

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from gpu.draft_sources.table import summary

        yield from summary(self)


def compare_sources(
    trace: Trace | str | Path,
    *,
    datastore: str | Path | None = None,
    draft_cost: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Verify the drafts of several sources by the lossless rule, on the texts that the target wrote in a trace.

    The text of a prompt is its longest context. Sources without a model write it call by call; the recorded draft is
    known at the blocks of the trace only, and is judged there.

    Parameters
    ----------
    trace
        A trace of blocks, or its folder.
    datastore
        A text file for REST, a document a paragraph (blank lines between); without it, the other prompts of the trace
        with their texts.
    draft_cost
        Time of a call of the draft model in target steps; by default that of FLy Table 1 for L3-70B.
    progress
        Called with (blocks read, blocks in all).

    Raises
    ------
    InvalidInput
        A trace of trees or of top-k logits, or one whose contexts are no texts; a datastore that cannot be read or is
        empty; a negative cost.
    TraceError
        A missing, truncated or altered trace, or one without a tokenizer when a datastore is given.
    """
    if not isinstance(trace, Trace):
        trace = open_trace(trace)
    if isinstance(trace, TreeTrace | TopKTrace):
        kind = "of draft trees" if isinstance(trace, TreeTrace) else "of the largest logits only"
        msg = f"{trace.path} is a trace {kind}; draft sources are compared on a trace of blocks with all logits"
        raise InvalidInput(msg)
    if draft_cost is None:
        table = fly_table1("L3-70B", accelerated=False)
        draft_cost = float(table.draft) / float(table.step)
    store = None if datastore is None else _from_file(trace, Path(datastore))
    time = RoundTime(step=1, draft=draft_cost, verify=1)
    texts, recorded = read_texts(trace, progress)
    lookup = FlyLookup()
    written = [drafter_calls(lookup, draft.context, draft.tokens) for draft in recorded]
    results = [_recorded(recorded, time), _two_levels(recorded, written, lookup, time)]
    results += [_walked(source, texts) for source in _sources(trace, texts, store)]
    known = provenance(("numpy", "torch", "safetensors"), seed=None, device="cpu")
    return Comparison(
        trace=trace,
        prompts=len(texts),
        tokens=sum(len(text.tokens) - text.start for text in texts),
        draft_cost=draft_cost,
        sources=tuple(results),
        notes=tuple(_notes(trace, texts)),
        provenance=known | {"trace": {"path": trace.path, "sha256": trace.sha256}},
    )


def _sources(trace: Trace, texts: Sequence[Text], store: Datastore | None) -> Iterable[DraftSource]:
    yield OriginalLookup()
    yield TransformersLookup(stop=frozenset(trace.manifest["source"].get("stop_ids", ())))
    yield FlyLookup()
    if store is not None:
        yield Rest(lambda prompt: store, "the datastore is a file; whether it holds the texts themselves is not known")
    elif len(texts) > 1:
        yield Rest.leaving_one_out(texts)
    yield TokenRecycling()


def _from_file(trace: Trace, path: Path) -> Datastore:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"datastore {str(path)!r} cannot be read: {error}"
        raise InvalidInput(msg) from error
    return Datastore(trace.encode(paragraph) for paragraph in text.split("\n\n") if paragraph.strip())


def _walked(source: DraftSource, texts: Sequence[Text]) -> SourceResult:
    by_prompt = [walk(source, text) for text in texts]
    calls = [call for each in by_prompt for call in each]
    tokens = _clustered([(sum(call.written for call in each), len(each)) for each in by_prompt])
    return SourceResult(
        name=source.name,
        calls=len(calls),
        tokens_per_call=tokens,
        accepted_per_call=_clustered([(sum(call.accepted for call in each), len(each)) for each in by_prompt]),
        drafting=_share(calls, lambda call: call.drafted > 0),
        drafted_per_call=_share(calls, lambda call: call.drafted),
        drafter_calls=0.0,
        modelled_drafter_calls=None,
        speedup=RoundTime(step=1, draft=0, verify=1).speedup(tokens.mean, 1),
        notes=source.notes,
    )


def _share(calls: Sequence[Call], of: Callable[[Call], float]) -> float:
    return sum(map(of, calls)) / len(calls)


def _recorded(recorded: Sequence[RecordedDraft], time: RoundTime) -> SourceResult:
    length = len(recorded[0].tokens)
    by_prompt = [list(group) for _, group in groupby(sorted(recorded, key=_prompt), key=_prompt)]
    accepted = _clustered([(sum(Fraction(draft.accepted) for draft in each), len(each)) for each in by_prompt])
    tokens = accepted.plus(1)
    return SourceResult(
        name=RECORDED,
        calls=len(recorded),
        tokens_per_call=tokens,
        accepted_per_call=accepted,
        drafting=1.0,
        drafted_per_call=float(length),
        drafter_calls=float(length),
        modelled_drafter_calls=None,
        speedup=time.speedup(tokens.mean, length),
        notes=("judged at the blocks of the trace, which lie evenly in the texts, and not call by call",),
    )


def _two_levels(
    recorded: Sequence[RecordedDraft], written: Sequence[DrafterCalls], lookup: FlyLookup, time: RoundTime
) -> SourceResult:
    """The recorded draft in fewer drafter calls."""
    one_level, length = _recorded(recorded, time), len(recorded[0].tokens)
    model = fitted(written, lookup.length)
    calls = sum(each.calls for each in written) / len(written)
    as_measured = RoundTime(
        step=time.step,
        draft=time.draft,
        verify=time.verify,
        lookup=implied_lookup(length / calls, length, length=lookup.length),
    )
    note = (
        f"the drafter had a copy to judge in {float(model.hit):.0%} of its calls, and kept "
        f"{float(model.acceptance):.0%} of the copied tokens up to the first it did not write"
    )
    return SourceResult(
        name=TWO_LEVELS,
        calls=one_level.calls,
        tokens_per_call=one_level.tokens_per_call,
        accepted_per_call=one_level.accepted_per_call,
        drafting=1.0,
        drafted_per_call=float(length),
        drafter_calls=calls,
        modelled_drafter_calls=model.calls(length),
        speedup=as_measured.speedup(one_level.tokens_per_call.mean, length),
        notes=(*one_level.notes, note),
    )


def _prompt(draft: RecordedDraft) -> int:
    return draft.prompt


def _clustered(clusters: Iterable[tuple[Fraction | int, int]]) -> Estimate:
    return Estimate(*clustered_mean([(Fraction(total), count) for total, count in clusters]))


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {"mean": estimate.mean, "interval": None if estimate.low is None else [estimate.low, estimate.high]}


def _notes(trace: Trace, texts: Sequence[Text]) -> Iterable[str]:
    temperature = trace.manifest["source"].get("settings", {}).get("context_temperature")
    origin = "as recorded" if temperature is None else f"written by the target at temperature {temperature:g}"
    yield f"A text is the longest context of its prompt, {origin}; its last call is cut where the text ends."
    drawn = drawn_temperature(trace)
    if drawn is None:
        yield "The trace does not say at which temperature its drafts were drawn; the recorded draft is verified at 1."
    elif drawn != temperature:
        yield f"The recorded draft is verified at the temperature it was drawn at, {drawn:g}."
    yield (
        f"Intervals are {CONFIDENCE:.0%} cluster-robust Student intervals over the {len(texts)} prompts."
        if len(texts) > 1
        else "All text comes from one prompt, so no interval is available, and REST has no other text to draw on."
    )
    known = sum(len([n for n in text.likeliest if n < len(text.tokens)]) for text in texts)
    share = known / sum(len(text.tokens) - text.start for text in texts)
    yield f"The target's most probable tokens are known at {share:.0%} of the positions of the texts."
