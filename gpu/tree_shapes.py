"""Which draft trees a capture draws: as an option writes them, and how many nodes they have; needs no torch."""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from fly_theory.errors import InvalidInput
from fly_theory.trees.builders import branching, positive
from fly_theory.trees.tree import Drawing, Parents, check_drawing

__all__ = ["FullTree", "TopKTree", "TreeShape", "tree_shape"]

_EXAMPLES = "total=60,depth=5,top_k=8 or children by depth, as in 3,2,2"


@dataclass(frozen=True, kw_only=True)
class TopKTree:
    """The most probable paths of the draft, grown and ranked anew for each context: see `fly_theory.trees.expand`.

    Attributes
    ----------
    total, depth, top_k
        Nodes that stay, levels that are grown, and nodes of a level that get children, as many as they are themselves.
    """

    total: int
    depth: int
    top_k: int

    def __post_init__(self) -> None:
        for name in ("total", "depth", "top_k"):
            positive(f"tree: {name}", getattr(self, name))

    @property
    def drawing(self) -> Drawing:
        """How siblings are drawn."""
        return "deterministic"

    @property
    def nodes(self) -> int:
        """N, the drafted tokens of each tree."""
        return min(self.total, self.top_k + (self.depth - 1) * self.top_k**2)

    @property
    def siblings(self) -> int:
        """The most children that a node can have."""
        return self.top_k


@dataclass(frozen=True, kw_only=True)
class FullTree:
    """A full tree: every node at depth 0, 1, ... has so many children.

    Attributes
    ----------
    children
        Their numbers.
    drawing
        How siblings are drawn; deterministic ones are the draft's most probable tokens.
    """

    children: tuple[int, ...]
    drawing: Drawing = "with-replacement"

    def __post_init__(self) -> None:
        check_drawing(self.drawing)
        branching(self.children)

    @property
    def depth(self) -> int:
        """Drafted tokens on a path."""
        return len(self.children)

    @property
    def nodes(self) -> int:
        """N, the drafted tokens of each tree."""
        return sum(accumulate(self.children, mul))

    @property
    def parents(self) -> Parents:
        """The topology."""
        return branching(self.children)

    @property
    def siblings(self) -> int:
        """The most children that a node has."""
        return max(self.children)


TreeShape = TopKTree | FullTree


def tree_shape(text: str, drawing: str | None = None) -> TreeShape:
    """The trees that `text` describes: `total=60,depth=5,top_k=8`, or children by depth as in `3,2,2`.

    `drawing` belongs to the second form; None is with-replacement there.

    Raises
    ------
    InvalidInput
        A text of neither form, numbers below 1, or a drawing where there is no choice or that is unknown.

    Examples
    --------
    >>> tree_shape("total=60,depth=5,top_k=8").nodes, tree_shape("3,2,2").nodes
    (60, 21)
    """
    items = [item.strip() for item in text.split(",")]
    if all(item.isdecimal() for item in items):
        children = tuple(map(int, items))
        return FullTree(children=children) if drawing is None else FullTree(children=children, drawing=drawing)
    settings = dict(item.partition("=")[::2] for item in items)
    numbers = {key: int(value) for key, value in settings.items() if value.isdecimal()}
    if set(settings) != {"total", "depth", "top_k"} or len(numbers) < len(items):
        msg = f"tree={text!r}; expected {_EXAMPLES}"
        raise InvalidInput(msg)
    if drawing not in (None, "deterministic"):
        msg = f"drawing={drawing!r}, tree={text!r}: the most probable paths are deterministic"
        raise InvalidInput(msg)
    return TopKTree(**numbers)
