"""The report of a replay: one HTML page that needs nothing but itself."""

import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from fly_theory.files import json_text
from gpu.replaying.block_measures import BLOCK_FIGURES, BlockFigure
from gpu.replaying.comparison import VERDICT_RULE
from gpu.replaying.estimates import CONFIDENCE
from gpu.replaying.findings import findings
from gpu.replaying.measures import MEASURES, Measure
from gpu.replaying.plots import case_diagram, efficiency_against_divergence, inline_svg, tv_distribution
from gpu.replaying.result import Replay
from gpu.replaying.wording import (
    elsewhere,
    interval,
    largest,
    models,
    number,
    percent,
    percent_interval,
    ratio,
    setting,
)

__all__ = ["html"]


def html(replay: Replay) -> str:
    """The page, without any reference to the outside."""
    environment = Environment(
        loader=PackageLoader("gpu", "replaying"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": number,
        "interval": interval,
        "percent": percent,
        "percent_interval": percent_interval,
        "ratio": ratio,
        "largest": largest,
        "elsewhere": elsewhere,
        "capitalise": _capitalise,
        "breakable": _breakable,
    }
    return environment.get_template("report.html.j2").render(
        replay=replay,
        style=Markup(files(__package__).joinpath("report.css").read_text(encoding="utf-8")),
        models=models(replay),
        setting=setting(replay),
        findings=list(findings(replay)),
        measures=MEASURES,
        block_figures=BLOCK_FIGURES,
        meanings=_meanings(replay),
        confidence=CONFIDENCE,
        verdict_rule=VERDICT_RULE,
        efficiency=replay.rules and Markup(inline_svg(efficiency_against_divergence(replay), "efficiency")),
        distribution=replay.rules and Markup(inline_svg(tv_distribution(replay), "distribution")),
        drawn=lambda rule, case: Markup(
            inline_svg(case_diagram(replay, rule, case), f"case-{case.block}-{case.position}-{rule.spec}")
        ),
        provenance=json_text(replay.provenance),
    )


def _meanings(replay: Replay) -> list[Measure | BlockFigure]:
    """What is explained: every figure that the page shows."""
    shown = [name for name in BLOCK_FIGURES if any(result.figures[name] for result in replay.block_rules)]
    known = list(MEASURES.values()) if replay.rules else []
    return known + [BLOCK_FIGURES[name] for name in shown if name not in MEASURES or not replay.rules]


def _breakable(spec: str) -> Markup:
    """A SPEC that may be broken before its parameters."""
    return Markup("<wbr>").join(re.split(r"(?<=[:,])", spec))


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
