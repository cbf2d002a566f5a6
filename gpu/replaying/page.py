"""What the pages of all reports share: the templates, how figures are written in them, and the style."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from gpu.replaying.wording import certified, elsewhere, interval, largest, number, percent, percent_interval, ratio

__all__ = ["environment", "style"]


def environment() -> Environment:
    """The templates, with the writers of figures as filters."""
    templates = Environment(
        loader=PackageLoader("gpu", "replaying/templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    writers = (certified, elsewhere, interval, largest, number, percent, percent_interval, ratio)
    templates.filters |= {writer.__name__: writer for writer in writers}
    return templates


def style() -> Markup:
    """The style sheet, to stand in the page itself."""
    return Markup(files("gpu.replaying").joinpath("templates/report.css").read_text(encoding="utf-8"))
