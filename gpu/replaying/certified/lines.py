"""Bounds that are linear along a segment, and the operations under which they stay so.

A column of a row is one segment: a head known exactly (both ends the same), a head of which only p or only q is known,
or a sector of directions that unseen tokens may have. A quantity on it lies between a lower and an upper line, each
given by its values at the two ends.

Why each operation is sound: the minimum of linear functions is concave, so it lies above the chord of its ends (a lower
line) and below each of the functions (an upper line); the maximum is the mirror image.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Lines"]

_Operation = Callable[..., Tensor]


class Lines(NamedTuple):
    """A lower and an upper line, by their values at the left and the right end; columns whose ends agree share tensors.

    Operations compute once what is shared, so that exactly known columns cost one array operation, not four.
    """

    low_left: Tensor
    low_right: Tensor
    high_left: Tensor
    high_right: Tensor

    @classmethod
    def exact(cls, value: Tensor, right: Tensor | None = None) -> "Lines":
        """A known line: one value, or one at either end."""
        right = value if right is None else right
        return cls(value, right, value, right)

    @classmethod
    def between(cls, low: Tensor, high: Tensor) -> "Lines":
        """Bounds that do not depend on the place in the segment."""
        return cls(low, low, high, high)

    @classmethod
    def joined(cls, parts: Sequence["Lines"]) -> "Lines":
        """Those of several parts of rows, filled up with columns of zeros."""
        width = max(part.low_left.shape[-1] for part in parts)

        def filled(end: Tensor) -> Tensor:
            missing = width - end.shape[-1]
            return functional.pad(end, (0, missing)) if missing else end

        together = _once(lambda *ends: torch.cat([filled(end) for end in ends]))
        return cls(*(together(*ends) for ends in zip(*parts, strict=True)))

    @property
    def is_exact(self) -> bool:
        """Whether nothing is unknown: one value."""
        return self.low_left is self.low_right is self.high_left is self.high_right

    @property
    def is_known(self) -> bool:
        """Whether nothing is unknown: both lines are the same."""
        return self.low_left is self.high_left and self.low_right is self.high_right

    @property
    def is_flat(self) -> bool:
        """Whether both bounds are the same at either end."""
        return self.low_left is self.low_right and self.high_left is self.high_right

    @property
    def low(self) -> Tensor:
        """The smallest value of the lower line."""
        return self.low_left if self.low_left is self.low_right else torch.minimum(self.low_left, self.low_right)

    @property
    def high(self) -> Tensor:
        """The largest value of the upper line."""
        return self.high_left if self.high_left is self.high_right else torch.maximum(self.high_left, self.high_right)

    def rising(self, function: _Operation) -> "Lines":
        """A nondecreasing function of flat bounds, or a linear one of any."""
        once = _once(function)
        return Lines(*(once(end) for end in self))

    def at(self, columns: Tensor) -> "Lines":
        """Those of some columns (R, N)."""
        return self.rising(lambda end: end.gather(-1, columns))

    def beside(self, other: "Lines") -> "Lines":
        """The columns of both."""
        together = _once(lambda *ends: torch.cat(ends, dim=-1))
        return Lines(*(together(*ends) for ends in zip(self, other, strict=True)))

    def __add__(self, other: "Lines") -> "Lines":  # type: ignore[override]
        add = _once(torch.add)
        return Lines(*(add(a, b) for a, b in zip(self, other, strict=True)))

    def __neg__(self) -> "Lines":
        # 0 - x, not -x: no zero is negative, so that 1/0 is +inf.
        negative = _once(lambda end: 0 - end)
        return Lines(*(negative(end) for end in (*self[2:], *self[:2])))

    def __sub__(self, other: "Lines") -> "Lines":
        subtract = _once(torch.sub)
        return Lines(*(subtract(a, b) for a, b in zip(self, (*other[2:], *other[:2]), strict=True)))

    def __mul__(self, other: "Lines") -> "Lines":  # type: ignore[override]
        """The product with flat bounds; 0 times infinity is 0, since what is unbounded is finite."""
        times, least, most = _once(_times), _once(torch.minimum), _once(torch.maximum)
        if other.is_exact and (self.is_exact or bool((other.low_left >= 0).all())):
            return Lines(*(times(end, other.low_left) for end in self))
        if self.is_known:
            left, right = ((times(end, other.low_left), times(end, other.high_left)) for end in self[:2])
            return Lines(least(*left), least(*right), most(*left), most(*right))
        low_left, low_right, high_left, high_right = (
            (times(end, other.low_left), times(end, other.high_left)) for end in self
        )
        return Lines(
            least(least(*low_left), least(*high_left)),
            least(least(*low_right), least(*high_right)),
            most(most(*low_left), most(*high_left)),
            most(most(*low_right), most(*high_right)),
        )

    def __truediv__(self, other: "Lines") -> "Lines":
        """The quotient by flat bounds of what is positive wherever the quotient is used; 0 / 0 is 0."""
        divide = _once(_divide)
        if other.is_exact:
            return Lines(*(divide(end, other.low_left) for end in self))
        one = torch.ones_like(other.low_left)
        least, most = (end.clamp(min=0) for end in (other.low_left, other.high_left))
        # Where the inverse of the greatest divisor overflows, it is still finite.
        inverse = _divide(one, most).clamp(max=torch.finfo(one.dtype).max)
        return self * Lines.between(inverse, _divide(one, least))

    def minimum(self, other: "Lines") -> "Lines":
        """The lesser of two quantities at every place."""
        least = _once(torch.minimum)
        left, right = least(self.low_left, other.low_left), least(self.low_right, other.low_right)
        if self.is_flat and other.is_flat:
            high = least(self.high_left, other.high_left)
            return Lines(left, right, high, high)
        lower = self.high_left + self.high_right <= other.high_left + other.high_right
        lower = torch.where(_vanishes_alone(self, other), True, lower & ~_vanishes_alone(other, self))
        pick = _once(lambda ours, theirs: torch.where(lower, ours, theirs))
        return Lines(left, right, pick(self.high_left, other.high_left), pick(self.high_right, other.high_right))

    def maximum(self, other: "Lines") -> "Lines":
        """The greater of two quantities at every place."""
        most = _once(torch.maximum)
        left, right = most(self.high_left, other.high_left), most(self.high_right, other.high_right)
        if self.is_flat and other.is_flat:
            low = most(self.low_left, other.low_left)
            return Lines(low, low, left, left)
        higher = self.low_left + self.low_right >= other.low_left + other.low_right
        pick = _once(lambda ours, theirs: torch.where(higher, ours, theirs))
        return Lines(pick(self.low_left, other.low_left), pick(self.low_right, other.low_right), left, right)

    def hull(self, other: "Lines") -> "Lines":
        """Lines that enclose either quantity."""
        least, most = _once(torch.minimum), _once(torch.maximum)
        return Lines(
            least(self.low_left, other.low_left),
            least(self.low_right, other.low_right),
            most(self.high_left, other.high_left),
            most(self.high_right, other.high_right),
        )

    def where(self, sure: Tensor, possible: Tensor, other: "Lines") -> "Lines":
        """This quantity where the condition surely holds, the other where it surely does not, else either."""
        select, least, most = _once(torch.where), _once(torch.minimum), _once(torch.maximum)

        def bound(ours: Tensor, theirs: Tensor, either: _Operation) -> Tensor:
            chosen = select(sure, ours, theirs)
            if sure is possible:
                return chosen
            return torch.where(sure == possible, chosen, either(ours, theirs))

        shared = _once(bound)
        return Lines(
            shared(self.low_left, other.low_left, least),
            shared(self.low_right, other.low_right, least),
            shared(self.high_left, other.high_left, most),
            shared(self.high_right, other.high_right, most),
        )


def _once(operation: _Operation) -> _Operation:
    """The operation, computed once for the same arguments."""
    known: dict[tuple[int, ...], tuple[Tensor, tuple[object, ...]]] = {}

    def computed(*arguments: object) -> Tensor:
        key = tuple(id(argument) for argument in arguments)
        if key not in known:
            # The arguments are kept, since an id is free again once its object is gone.
            known[key] = operation(*arguments), arguments
        return known[key][0]

    return computed


def _vanishes_alone(a: Lines, b: Lines) -> Tensor:
    """Where of two quantities that are not negative the first one has an end at which only it is surely zero.

    Its upper line is then kept, since quotients stay bounded where numerator and denominator vanish together.
    """
    (a_left, a_right), (b_left, b_right) = a[:2], b[:2]
    alone = (a.high_left == 0) & (b.high_left > 0) & (a_right >= 0)
    alone |= (a.high_right == 0) & (b.high_right > 0) & (a_left >= 0)
    return alone & (torch.minimum(b_left, b_right) >= 0)


def _times(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).nan_to_num_(0.0, posinf=torch.inf, neginf=-torch.inf)


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return (a / b).nan_to_num_(0.0, posinf=torch.inf, neginf=-torch.inf)
