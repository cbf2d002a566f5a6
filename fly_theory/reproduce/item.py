"""An item of `fly-theory reproduce`, and what it finds: published values beside ours, figures, and an outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from matplotlib.figure import Figure

__all__ = ["CENT", "Compared", "Finding", "Item", "Outcome", "printed"]

Outcome = Literal["reproduced", "explained", "not reproducible here"]

# The last digit of nearly every published figure.
CENT = Fraction(1, 100)


def printed(value: float) -> Fraction:
    """A published figure as the decimal that is printed."""
    return Fraction(str(value))


@dataclass(frozen=True)
class Compared:
    """One value: what it is, as published, ours, and how far apart the two may be.

    published : a number, a statement, or None where nothing is printed.
    ours : what this project computes, in the same unit.
    allowed : the largest difference that rounding, or the accuracy stated in the item, accounts for; None where the
        two are set side by side without a judgement.
    """

    what: str
    published: float | Fraction | str | None
    ours: float | Fraction
    allowed: float | Fraction | None = None

    @property
    def difference(self) -> float | Fraction | None:
        """ours - published, where a number is published."""
        if self.published is None or isinstance(self.published, str):
            return None
        return self.ours - self.published

    @property
    def agrees(self) -> bool | None:
        """Whether the difference is within what is allowed; None where nothing is judged."""
        if self.allowed is None or self.difference is None:
            return None
        return abs(Fraction(self.difference)) <= Fraction(self.allowed)

    def as_json(self) -> dict[str, Any]:
        """Plain values; exact fractions become floats."""
        return {
            "what": self.what,
            "published": self.published if isinstance(self.published, str | None) else float(self.published),
            "ours": float(self.ours),
            "difference": None if self.difference is None else float(self.difference),
            "allowed": None if self.allowed is None else float(self.allowed),
            "agrees": self.agrees,
        }


@dataclass(frozen=True)
class Finding:
    """What an item finds.

    outcome : "reproduced" when ours is the published figure up to rounding or a stated accuracy; "explained" when
        theory or arithmetic accounts for what is published, with the deviations listed; "not reproducible here" when it
        does not follow from what is published, or needs models that are not here.
    why : one paragraph: how ours is computed, and what the outcome rests on.
    values, figures : what is set beside what is published, and pictures by label.
    fragments : by label, pieces of HTML that refer to nothing outside themselves.
    """

    outcome: Outcome
    why: str
    values: Sequence[Compared] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    fragments: Mapping[str, str] = field(default_factory=dict)

    @property
    def disagreements(self) -> list[Compared]:
        """The values that were judged and are further apart than allowed."""
        return [value for value in self.values if value.agrees is False]


@dataclass(frozen=True)
class Item:
    """A figure, table or statement: its name on the command line, a title, where it is from, and how it is computed."""

    name: str
    title: str
    source: str
    find: Callable[[], Finding]
