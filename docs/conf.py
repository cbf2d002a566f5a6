"""How the documentation is built: `make docs`, without the network, warnings being errors."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.logging import getLogger

import fly_theory

project = "fly-theory"
author = "The fly-theory authors"
release = fly_theory.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "notebooks/*.py", "notebooks/.ipynb_checkpoints"]

# Notebooks come executed; `make notebooks` runs them anew. Code on the other pages are doctests, which pytest runs.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # single backticks in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_custom_sections = ["Statement", "Guarantee", "Reference"]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Fields of the same name in several named tuples are no cross-reference.
suppress_warnings = ["ref.python"]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"fly-theory {release}"
html_static_path: list[str] = []
pygments_style = "friendly"

# A line `name, name : meaning` of a docstring, outside the sections of numpydoc.
_ENTRY = re.compile(r"(\w+(?:, \w+)*) : (.+)")


def _as_list(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Turn such lines, and the indented ones that go on from them, into the items of a list."""
    written: list[str] = []
    inside = False
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry:
            written += [*([] if inside else [""]), f"* ``{entry[1]}``: {entry[2]}"]
        elif inside and line.startswith("    "):
            written.append(f"  {line.strip()}")
        else:
            written += [*([""] if inside and line else []), line]
        inside = bool(entry) or (inside and line.startswith("    "))
    lines[:] = written


def _mathml(node: nodes.Element, display: str) -> str:
    """Mathematics as MathML, which browsers show without a script or the network."""
    # The converter knows \operatorname, and not \arg.
    found = convert(node.astext().replace(r"\arg", r"\operatorname{arg}"), display=display)
    if "\\" in found:
        getLogger(__name__).warning("not understood in %s", node.astext(), location=node)
    return found


def _inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _displayed(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """The list maker runs after napoleon, which has the default priority of 500."""
    app.connect("autodoc-process-docstring", _as_list, priority=600)
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
