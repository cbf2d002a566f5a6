"""The items of `fly-theory reproduce`, found through the entry-point group `fly_theory.reproductions`."""

from importlib.metadata import entry_points

from fly_theory.errors import unknown_name
from fly_theory.reproduce.item import Item

__all__ = ["GROUP", "item", "items"]

GROUP = "fly_theory.reproductions"


def items() -> dict[str, Item]:
    """Every item by name, in alphabetical order; one whose dependencies are not installed is passed over."""
    found: dict[str, Item] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found[entry.name] = entry.load()
        except ModuleNotFoundError:
            continue
    return found


def item(name: str) -> Item:
    """The item of this name.

    Raises
    ------
    UnknownName
        With the nearest names and the list of all of them.
    """
    known = items()
    if name not in known:
        raise unknown_name(kind="item", name=name, known=known)
    return known[name]
