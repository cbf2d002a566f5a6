"""The report of a replay: one HTML page that needs nothing but itself."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from fly_theory.figures import TWO_COLUMNS
from fly_theory.files import json_text
from gpu.replaying.cases import Case
from gpu.replaying.comparison import VERDICT_RULE
from gpu.replaying.estimates import CONFIDENCE
from gpu.replaying.findings import findings
from gpu.replaying.measures import MEASURES, Measure
from gpu.replaying.modes import MODES, Level, ModeResult, commonest
from gpu.replaying.on_blocks.measures import BLOCK_FIGURES, BlockFigure
from gpu.replaying.page import environment, style
from gpu.replaying.plots import case_diagram, efficiency_against_divergence, inline_svg, tv_distribution
from gpu.replaying.result import Replay, RuleResult
from gpu.replaying.sweep import Sweep
from gpu.replaying.sweep_plots import sweep_curves
from gpu.replaying.wording import consistency, models, setting

__all__ = ["html"]


def html(replay: Replay) -> str:
    """The page, without any reference to the outside."""
    templates = environment()
    templates.filters |= {"capitalise": _capitalise, "breakable": _breakable}
    return templates.get_template("report.html.j2").render(
        replay=replay,
        style=style(),
        models=models(replay.trace),
        setting=setting(replay),
        findings=list(findings(replay)),
        measures=MEASURES,
        block_figures=BLOCK_FIGURES,
        meanings=_meanings(replay),
        confidence=CONFIDENCE,
        verdict_rule=VERDICT_RULE,
        efficiency=replay.rules and Markup(inline_svg(efficiency_against_divergence(replay), "efficiency")),
        distribution=replay.rules and Markup(inline_svg(tv_distribution(replay), "distribution")),
        curves=[_curve(replay, number) for number in range(len(replay.sweeps))],
        drawn=partial(_drawn, replay),
        **_modes(replay),
        provenance=json_text(replay.provenance),
    )


def _meanings(replay: Replay) -> list[Measure | BlockFigure]:
    """What is explained: every figure that the page shows."""
    shown = [name for name in BLOCK_FIGURES if any(result.figures[name] for result in replay.block_rules)]
    known = list(MEASURES.values()) if replay.rules else []
    return known + [BLOCK_FIGURES[name] for name in shown if name not in MEASURES or not replay.rules]


def _drawn(replay: Replay, result: RuleResult, case: Case, key: str = "") -> Markup:
    """The diagram of a case; none where the rule has no output. `key` tells it from others of the same position."""
    if case.tv is None:
        return Markup()
    name = f"case-{case.block}-{case.position}-{key}{result.spec}"
    return Markup(inline_svg(case_diagram(replay, result, case), name))


def _modes(replay: Replay) -> dict[str, Any]:
    """What the page says of failure modes."""
    results = (*replay, *replay.block_rules)
    names = {found.mode.name for result in results for found in result.modes}
    names |= {found.mode.name for found in replay.pair_modes}
    looked_for = [mode for mode in MODES.values() if mode.name in names]
    return {
        "all_modes": looked_for,
        "rule_modes": [mode for mode in looked_for if mode.level is Level.RULE],
        "block_modes": [mode for mode in looked_for if mode.level is Level.BLOCK],
        "shares": {"tv": "TV", "lost": "lost", "forgiven": "forgiven"},
        "commonest": commonest,
        "worst_cases": _worst_cases,
        "consistency": replay.consistency and consistency(replay.consistency),
    }


def _worst_cases(modes: Sequence[ModeResult]) -> Iterator[tuple[ModeResult, Case]]:
    """A case for each of the commonest modes: its worst one that does not illustrate an earlier mode already."""
    shown: set[tuple[int, int]] = set()
    for found in commonest(modes):
        for case in found.worst:
            if (case.block, case.position) not in shown:
                shown.add((case.block, case.position))
                yield found, case
                break


def _curve(replay: Replay, number: int) -> tuple[Sweep, Markup, float]:
    """A sweep, its figure, and the share of the full width that the figure takes."""
    sweep = replay.sweeps[number]
    figure = sweep_curves(replay, sweep)
    return sweep, Markup(inline_svg(figure, f"sweep-{number}")), figure.get_figwidth() / TWO_COLUMNS


def _breakable(spec: str) -> Markup:
    """A SPEC that may be broken before its parameters."""
    return Markup("<wbr>").join(re.split(r"(?<=[:,])", spec))


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
