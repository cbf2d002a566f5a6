"""From tallies of trees to results: means, intervals, and what has to be said about them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fly_theory.trees import TreeRule
from gpu.replaying.estimates import CONFIDENCE, Estimate, Figures, difference, estimate
from gpu.replaying.measures import BASELINE, MATCHED
from gpu.replaying.on_trees.measures import TREE_MEASURES, why_no_first_law
from gpu.replaying.on_trees.result import TreeReplay, TreeRuleResult
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tally import Tally
from gpu.replaying.wording import elsewhere
from gpu.trace import TreeTrace

__all__ = ["summarise"]

_FIRST_POSITION = ("tv", "kl", "reverse_kl", "js", "max_ratio", "argmax_flip", "outside_support", "collapsed")
_ALLOWED = ("children_allowed", "any_allowed")


def summarise(
    trace: TreeTrace,
    settings: ReplaySettings,
    rules: Sequence[TreeRule],
    draft: Tally,
    tallies: Sequence[Tally],
    provenance: Mapping[str, Any],
) -> TreeReplay:
    """The result of a replay from the tally of the draft at the first positions, and one a rule."""
    mismatch = None if trace.drawing == "deterministic" else settings.mismatch(trace)
    lossless = next((tally for rule, tally in zip(rules, tallies, strict=True) if rule.spec == "lossless"), None)
    results = []
    for rule, tally in zip(rules, tallies, strict=True):
        gain = None if lossless is None or mismatch else difference(tally, lossless, "accepted_per_call")
        figures = _kept(tally, mismatch=mismatch) | {"gain_over_lossless": gain} | _first(tally)
        matched = baseline = None
        if f"{BASELINE}tv" in tally.measures:
            figures |= {name: _estimate(tally, name) for name in _ALLOWED}
            matched = {name: value for name, value in _first(tally, MATCHED).items() if name != "collapsed"}
            baseline = _kept(tally, BASELINE, mismatch=mismatch) | {"tv": _estimate(tally, f"{BASELINE}tv")}
        results.append(TreeRuleResult(rule, figures, matched, baseline, tuple(_notes_of(rule, trace, figures))))
    return TreeReplay(
        trace=trace,
        settings=settings,
        prompts=len(draft.prompts),
        rules=tuple(results),
        draft={name: _estimate(draft, name) for name in _FIRST_POSITION if name in draft.measures},
        notes=tuple(_notes(trace, settings, draft, mismatch)),
        provenance=provenance,
    )


def _kept(tally: Tally, prefix: str = "", *, mismatch: str | None) -> dict[str, Estimate | None]:
    accepted = None if mismatch else _estimate(tally, f"{prefix}accepted_per_call")
    return {
        "tokens_per_call": accepted and accepted.plus(1),
        "accepted_per_call": accepted,
        "first_kept": None if mismatch else _estimate(tally, f"{prefix}first_kept"),
    }


def _first(tally: Tally, prefix: str = "") -> dict[str, Estimate | None]:
    return {
        name: _estimate(tally, f"{prefix}{name}") if f"{prefix}{name}" in tally.measures else None
        for name in _FIRST_POSITION
    }


def _estimate(tally: Tally, name: str) -> Estimate:
    return estimate(tally, name, TREE_MEASURES)


def _notes(trace: TreeTrace, settings: ReplaySettings, draft: Tally, mismatch: str | None) -> Iterator[str]:
    if mismatch:
        yield f"Tokens per call are not identified: {mismatch}."
    how = {
        "deterministic": "Siblings are the draft's most probable paths, chosen without chance: given the context, the "
        "law of the first token is the rule's own.",
        "with-replacement": "Siblings are independent draws; divergences integrate those of the first position out in "
        "closed form, and tokens per call average over the captured draws.",
        "without-replacement": "Siblings are draws without replacement; tokens per call average over the captured "
        "draws, and divergences are identified only where a position has one candidate.",
    }
    yield how[trace.drawing]
    yield "Divergences are those of the first token after each context; what follows it depends on what was kept."
    if len(draft.prompts) > 1:
        yield (
            f"Intervals are {CONFIDENCE:.0%} cluster-robust Student intervals over the {len(draft.prompts)} prompts, "
            "within which trees are not independent."
        )
    else:
        yield "All trees come from one prompt, so no interval is available."
    context = trace.manifest["source"].get("settings", {}).get("context_temperature")
    origin = f"the target's own text at temperature {context:g}" if context is not None else "what the trace recorded"
    yield f"Contexts are {origin}. A lossy rule writes other text, and is not followed there."
    if settings.dtype == "float32":
        yield "Arithmetic is float32: figures below 1e-6 are rounding."


def _notes_of(rule: TreeRule, trace: TreeTrace, figures: Figures) -> Iterator[str]:
    if figures["tv"] is None:
        candidates = max(trace[0].parents.tolist().count(0), 1)
        yield f"Divergences are not identified: {why_no_first_law(rule, trace.drawing, candidates)}."
    for name, figure in figures.items():
        if figure is not None and figure.infinite_share:
            yield f"{TREE_MEASURES[name].label} is infinite {elsewhere(figure)}."
