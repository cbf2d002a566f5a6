"""From tallies to results: means, intervals, and what has to be said about them."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from math import inf
from typing import Any

from fly_theory.errors import ZeroResidualError
from fly_theory.registry import rule as rule_from_spec
from fly_theory.rules.base import Rule
from fly_theory.rules.lossless import Lossless
from gpu.replaying.cases import examine
from gpu.replaying.comparison import compare
from gpu.replaying.estimates import CONFIDENCE, Estimate, Figures, difference, estimate
from gpu.replaying.measures import BASELINE, DISTANCES, LEAST, MATCHED, MEASURES
from gpu.replaying.modes import ZERO_RESIDUAL, Consistency, Level, mode_results
from gpu.replaying.on_blocks.summary import block_notes, summarise_block_rules
from gpu.replaying.plan import Plan
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tally import TV_EDGES, Tally
from gpu.replaying.tallying import Tallies
from gpu.replaying.wording import elsewhere
from gpu.trace import TopKTrace, Trace

__all__ = ["summarise"]

# What the figures of the draft are figures of.
_ACCEPTS_ALL = "cos:w=1"


def summarise(
    trace: Trace,
    plan: Plan,
    tallies: Tallies,
    provenance: Mapping[str, Any],
) -> Replay:
    """The result of a replay from its tallies."""
    settings, draft = plan.settings, tallies.draft
    mismatch = settings.mismatch(trace) or _impossible(draft)
    lossless = next(
        (tally for rule, tally in zip(plan.rules, tallies.rules, strict=True) if isinstance(rule, Lossless)), None
    )
    results = []
    for rule, tally in zip(plan.rules, tallies.rules, strict=True):
        stuck = list(_stuck(rule, tally))
        look = cache(partial(examine, trace, settings, rule))
        gain = None if lossless is None or mismatch else difference(tally, lossless, "accepted_per_call")
        figures = _efficiency(tally, mismatch=mismatch) | {"gain_over_lossless": gain} | _distances(tally)
        matched = _distances(tally, MATCHED) or None
        baseline = None
        if f"{BASELINE}acceptance" in tally.measures:
            distances = _distances(tally, BASELINE) or {"tv": figures["tv"]}
            baseline = _efficiency(tally, BASELINE, mismatch=mismatch) | distances
        results.append(
            RuleResult(
                rule=rule,
                figures=figures,
                matched=matched,
                baseline=baseline,
                comparison=compare(tally, identified=mismatch is None),
                tv_histogram=tuple(tally.tv_histogram),
                worst=tuple(
                    look(worst.block, worst.position) for worst in tally.worst["tv"] if worst.value >= TV_EDGES[0]
                ),
                modes=mode_results(tally, plan.modes(Level.RULE), look),
                notes=(*stuck, *_infinities(figures), *(f"Against p_A: {note}" for note in _infinities(matched or {}))),
            )
        )
    return Replay(
        trace=trace,
        settings=settings,
        positions=len(trace) * trace.draft_length,
        prompts=len(draft.prompts),
        rules=tuple(results),
        draft=_distances(draft),
        pair_modes=mode_results(
            draft, plan.modes(Level.PAIR), cache(partial(examine, trace, settings, rule_from_spec(_ACCEPTS_ALL)))
        ),
        consistency=None if plan.detectors is None else Consistency.of(draft),
        notes=(
            *_notes(trace, settings, draft, mismatch),
            *_unseen(trace, plan),
            *block_notes(trace, plan),
            *tallies.notes,
        ),
        provenance=provenance,
        block_rules=summarise_block_rules(trace, plan, tallies, mismatch),
    )


def _efficiency(tally: Tally, prefix: str = "", *, mismatch: str | None) -> dict[str, Estimate | None]:
    accepted = None if mismatch else estimate(tally, f"{prefix}accepted_per_call")
    return {
        "tokens_per_call": accepted and accepted.plus(1),
        "accepted_per_call": accepted,
        "acceptance": estimate(tally, f"{prefix}acceptance"),
    }


def _distances(tally: Tally, prefix: str = "") -> dict[str, Estimate]:
    return {name: estimate(tally, f"{prefix}{name}") for name in DISTANCES if f"{prefix}{name}" in tally.measures}


def _stuck(rule: Rule, tally: Tally) -> Iterator[str]:
    """What to say of the positions where the rule has nothing to redraw from.

    Raises
    ------
    ZeroResidualError
        There is no other position.
    """
    totals = [totals[ZERO_RESIDUAL.found] for totals in tally.prompts.values() if ZERO_RESIDUAL.found in totals]
    found, positions = sum(int(total.sum) for total in totals), sum(total.finite for total in totals)
    if found and found == positions:
        msg = f"{rule.spec} rejects at every position, and its residual is zero at each: it has no output"
        raise ZeroResidualError(msg)
    if found:
        yield (
            f"At {found} of {positions} positions it rejects and its residual is zero, so that nothing can be emitted. "
            "They are left out of every figure that depends on the output."
        )


def _impossible(draft: Tally) -> str | None:
    count = sum(int(totals["impossible_drafts"].sum) for totals in draft.prompts.values())
    if not count:
        return None
    return f"{count} of the draft tokens have no mass under the draft's law, so they were not drawn from it"


def _notes(trace: Trace, settings: ReplaySettings, draft: Tally, mismatch: str | None) -> Iterator[str]:
    if mismatch:
        yield (
            f"Block efficiency is not identified: {mismatch}. The other figures hold for the law of this replay along "
            "the captured drafts."
        )
    if len(draft.prompts) > 1:
        yield (
            f"Means are pooled over all blocks. Intervals are {CONFIDENCE:.0%} cluster-robust Student intervals over "
            f"the {len(draft.prompts)} prompts, within which positions are not independent; one of zero width means "
            "that the prompts agree, not that the figure is certain."
        )
    else:
        yield "All blocks come from one prompt, so no interval is available."
    context = trace.manifest["source"].get("settings", {}).get("context_temperature")
    origin = f"the target's own text at temperature {context:g}" if context is not None else "what the trace recorded"
    yield (
        f"Contexts are {origin}, followed by the earlier draft tokens of the block. A lossy rule writes other text, "
        "and is not followed there."
    )
    if settings.dtype == "float32" and f"{LEAST}tv" not in draft.measures:
        yield "Arithmetic is float32: figures below 1e-6 are rounding."
    widths = trace.manifest["vocabulary"]
    if widths["target"] != widths["draft"]:
        yield (
            f"The logits differ in width (target {widths['target']}, draft {widths['draft']}); missing ones count as "
            "-inf."
        )


def _unseen(trace: Trace, plan: Plan) -> Iterator[str]:
    """What to say where not every token is evaluated."""
    if plan.tail is not None:
        left = f"Tokens of a joint mass (p + q)/2 up to {plan.tail:g} in each row are summed by their ratio of q to p"
    elif isinstance(trace, TopKTrace):
        left = f"The trace holds the {trace.top_k} most probable tokens of each row and the mass of the others"
    else:
        return
    yield (
        f"{left}. Certified intervals contain the figure of the whole rows, whatever the unseen tokens are; estimates "
        "stand in their middle. Intervals over prompts allow for both. Failure modes are not looked for."
    )


# What makes a measure unbounded where tokens are unseen.
_UNBOUNDED = {
    "kl": "a token may be unseen to which the target gives mass and the output next to none",
    "reverse_kl": "a token may be unseen to which the output gives mass and the target next to none",
    "max_ratio": "a token may be unseen to which the output gives mass and the target next to none",
}


def _infinities(figures: Figures) -> Iterator[str]:
    for name, figure in figures.items():
        if figure is None:
            continue
        if figure.certified is not None and figure.certified[1] == inf and figure.certified[0] < inf:
            yield f"{MEASURES[name].label} is certified from below only: {_UNBOUNDED[name]}."
        elif figure.infinite_share:
            yield f"{MEASURES[name].label} is infinite {elsewhere(figure)}."
