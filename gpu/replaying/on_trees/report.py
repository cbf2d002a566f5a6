"""The report of a replay on draft trees: one HTML page that needs nothing but itself."""

from markupsafe import Markup

from fly_theory.files import json_text
from gpu.replaying.estimates import CONFIDENCE
from gpu.replaying.on_trees.measures import TREE_MEASURES
from gpu.replaying.on_trees.plots import tokens_against_divergence
from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.on_trees.wording import setting
from gpu.replaying.page import environment, style
from gpu.replaying.plots import inline_svg
from gpu.replaying.wording import models

__all__ = ["html"]


def html(replay: TreeReplay) -> str:
    """The page, without any reference to the outside."""
    figure = tokens_against_divergence(replay)
    template = environment().get_template("trees.html.j2")
    return template.render(
        replay=replay,
        style=style(),
        models=models(replay.trace),
        setting=setting(replay),
        measures=TREE_MEASURES,
        confidence=CONFIDENCE,
        figure=None if figure is None else Markup(inline_svg(figure, "trees")),
        provenance=json_text(replay.provenance),
    )
