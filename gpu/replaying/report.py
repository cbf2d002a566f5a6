"""The report of a replay: one HTML page that needs nothing but itself."""

import re
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from fly_theory.files import json_text
from gpu.replaying.estimates import CONFIDENCE
from gpu.replaying.findings import findings
from gpu.replaying.measures import MEASURES
from gpu.replaying.plots import case_diagram, efficiency_against_divergence, inline_svg, tv_distribution
from gpu.replaying.result import Replay
from gpu.replaying.wording import elsewhere, interval, largest, models, number, percent, ratio, setting

__all__ = ["html"]


def html(replay: Replay) -> str:
    """The page, without any reference to the outside."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "number": number,
        "interval": interval,
        "percent": percent,
        "ratio": ratio,
        "largest": largest,
        "elsewhere": elsewhere,
        "capitalise": _capitalise,
        "breakable": _breakable,
    }
    template = environment.from_string(files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8"))
    return template.render(
        replay=replay,
        style=Markup(files(__package__).joinpath("report.css").read_text(encoding="utf-8")),
        models=models(replay),
        setting=setting(replay),
        findings=list(findings(replay)),
        measures=MEASURES,
        confidence=CONFIDENCE,
        efficiency=Markup(inline_svg(efficiency_against_divergence(replay), "efficiency")),
        distribution=Markup(inline_svg(tv_distribution(replay), "distribution")),
        drawn=lambda rule, case: Markup(
            inline_svg(case_diagram(replay, rule, case), f"case-{case.block}-{case.position}-{rule.spec}")
        ),
        provenance=json_text(replay.provenance),
    )


def _breakable(spec: str) -> Markup:
    """A SPEC that may be broken before its parameters."""
    return Markup("<wbr>").join(re.split(r"(?<=[:,])", spec))


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
