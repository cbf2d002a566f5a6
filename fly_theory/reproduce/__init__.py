"""Figures, tables and statements of two papers, and findings of this project, computed anew.

    reproduce.items()              all items by name, found through the entry-point group `fly_theory.reproductions`
    reproduce.item(name).find()    published values beside ours, figures, and an outcome
    reproduce.write(folder, ...)   one page with everything, and a vector figure and a table of each item

The papers are *Revisiting Lossy Verification in Speculative Decoding* (the "lossy paper") and *Training-Free Loosely
Speculative Decoding* (FLy, arXiv 2511.22972); their printed figures are in `fly_theory.published`. One item a file; an
item that needs another package than the core lives there and joins the group.
"""

from fly_theory.reproduce.item import Compared, Finding, Item, Outcome
from fly_theory.reproduce.pages import write
from fly_theory.reproduce.registry import item, items

__all__ = ["Compared", "Finding", "Item", "Outcome", "item", "items", "write"]
