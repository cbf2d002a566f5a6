"""The report of a replay on draft trees: one HTML page that needs nothing but itself."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from fly_theory.files import json_text
from gpu.replaying.estimates import CONFIDENCE
from gpu.replaying.on_trees.measures import TREE_MEASURES
from gpu.replaying.on_trees.plots import tokens_against_divergence
from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.on_trees.wording import models, setting
from gpu.replaying.plots import inline_svg
from gpu.replaying.wording import elsewhere, interval, largest, number, percent, ratio

__all__ = ["html"]


def html(replay: TreeReplay) -> str:
    """The page, without any reference to the outside."""
    environment = Environment(
        loader=PackageLoader("gpu", "replaying/templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "number": number,
        "interval": interval,
        "percent": percent,
        "ratio": ratio,
        "largest": largest,
        "elsewhere": elsewhere,
    }
    figure = tokens_against_divergence(replay)
    return environment.get_template("trees.html.j2").render(
        replay=replay,
        style=Markup(files("gpu.replaying").joinpath("templates/report.css").read_text(encoding="utf-8")),
        models=models(replay),
        setting=setting(replay),
        measures=TREE_MEASURES,
        confidence=CONFIDENCE,
        figure=None if figure is None else Markup(inline_svg(figure, "trees")),
        provenance=json_text(replay.provenance),
    )
