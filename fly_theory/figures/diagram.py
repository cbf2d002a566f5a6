"""What a rule does to one pair of distributions: target, draft, their overlap, the output and its ceiling, per token."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator

from fly_theory.arrays import Array
from fly_theory.claims import Ceiling
from fly_theory.distributions import as_pair
from fly_theory.errors import InvalidInput, ShapeError
from fly_theory.figures.style import COLOURS, TWO_COLUMNS, new_figure, style
from fly_theory.rules import Rule

__all__ = ["Panel", "ceiling_factor", "diagram"]

OTHER = "other"

# Up to this many tokens the horizontal axis names each; up to _MOST_BARS each has a bar of its own.
_MOST_NAMED = 16
_MOST_BARS = 60

_PANEL_HEIGHT = 1.32
_MOST_COLUMNS = 3


@dataclass(frozen=True)
class Panel:
    """What one panel shows, one entry a bar: p, q, out and (where the rule claims one) the ceiling, each (bars,)."""

    title: str
    p: Array
    q: Array
    out: Array
    ceiling: Array | None
    acceptance: float
    tv: float
    max_ratio: float

    @property
    def summary(self) -> str:
        """The line under the title."""
        ratio = "∞" if math.isinf(self.max_ratio) else f"{self.max_ratio:.3g}"
        return f"acceptance {self.acceptance:.2f}    TV {self.tv:.3f}    max ratio {ratio}"


def diagram(
    p: Array | Sequence[Any],
    q: Array | Sequence[Any],
    rules: Sequence[Rule],
    *,
    titles: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    top: int | None = None,
    width: float = TWO_COLUMNS,
) -> Figure:
    """Draw the output distribution of each rule on one pair, one panel a rule, all on the same axes.

    Parameters
    ----------
    p, q
        Target and draft, (V,) each.
    rules
        Token-level rules.
    titles
        One title a panel; the SPEC of the rule by default.
    labels
        (V,) names of the tokens; their ids by default.
    top
        Draw only the `top` tokens to which p or q gives most, and the sum of all others as a last bar.
        By default every token up to 60 tokens, else 30.
    width
        Of the figure, in inches.

    Returns
    -------
    Figure
        Bars are ordered by falling p, ties by id. The ceiling is dashed, in the panels of rules that claim one.

    Raises
    ------
    InvalidInput
        For no rule, numbers of titles or labels that do not fit, or `top` below 1; also whatever `Rule.induced` raises.
    """
    p, q = as_pair(p, q)
    _check(p, q, rules, titles, labels, top)
    if top is None and p.shape[-1] > _MOST_BARS:
        top = _MOST_BARS // 2
    groups = _bars(p, q, top)
    names = _names(groups, labels)
    panels = [
        _panel(p, q, rule, rule.spec if titles is None else titles[index], groups) for index, rule in enumerate(rules)
    ]
    with style():
        return _draw(panels, names, width)


def ceiling_factor(rule: Rule, p: Array, q: Array) -> float | None:
    """The smallest factor c for which the rule claims out <= c p on this pair, or None when it claims no ceiling."""
    factors = [
        float(claim.factor(p, q)) if callable(claim.factor) else float(claim.factor)
        for claim in rule.claims
        if isinstance(claim, Ceiling)
    ]
    return min(factors, default=None)


def _check(
    p: Array,
    q: Array,
    rules: Sequence[Rule],
    titles: Sequence[str] | None,
    labels: Sequence[str] | None,
    top: int | None,
) -> None:
    if p.ndim != 1 or q.ndim != 1:
        msg = f"p {tuple(p.shape)} and q {tuple(q.shape)}: a diagram shows one pair, (V,) each"
        raise ShapeError(msg)
    if not rules:
        msg = "rules is empty; a diagram shows at least one rule"
        raise InvalidInput(msg)
    if titles is not None and len(titles) != len(rules):
        msg = f"{len(titles)} titles for {len(rules)} rules; give one a rule"
        raise InvalidInput(msg)
    if labels is not None and len(labels) != p.shape[-1]:
        msg = f"{len(labels)} labels for a vocabulary of {p.shape[-1]} tokens; give one a token"
        raise InvalidInput(msg)
    if top is not None and top < 1:
        msg = f"top={top} is below 1: at least one token is shown"
        raise InvalidInput(msg)
