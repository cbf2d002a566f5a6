"""The arrays of the certified interpreter: quantities that are known within bounds, and conditions that may hold."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar, Union

import torch
from torch import Tensor

from fly_theory.errors import NotReadable
from gpu.replaying.certified.cells import ROUNDING, Cells
from gpu.replaying.certified.lines import Lines
from gpu.replaying.certified.sums import sum_bounds

__all__ = ["Condition", "Enclosure", "Value", "joined"]

Value = Union["Enclosure", float, int]


class Enclosure:
    """A quantity within bounds, read through the Python array API: one value a token (R, V), or one a row.

    At the heads and in the sectors of `cells` a token's quantity lies between lines. In a sector it is a multiple of
    the token's weight p + q (`weighted`, as p, q and all that is linear in them), or a value in itself. Comparisons
    give a `Condition`. Entries cannot be inspected.
    """

    is_symbolic: ClassVar[bool] = True
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("cells", "head", "tail", "weighted")

    def __init__(self, cells: Cells | None, head: Lines, tail: Lines | None, *, weighted: bool = False) -> None:
        self.cells = cells
        self.head = head
        self.tail = tail
        self.weighted = weighted

    # -- shape and kind ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.head.low_left.shape) if self.tail is None else (self.cells.rows, self.cells.vocabulary)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.head.low_left.dtype

    @property
    def device(self) -> torch.device:
        return self.head.low_left.device

    @property
    def low(self) -> Tensor:
        """Lower bound of a quantity with one value a row."""
        return self.head.low

    @property
    def high(self) -> Tensor:
        """Upper bound of a quantity with one value a row."""
        return self.head.high

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from gpu.replaying.certified import namespace

        return namespace

    def __getitem__(self, index: Any) -> "Enclosure":
        if self.tail is None:
            return Enclosure(self.cells, self.head.rising(lambda end: end[index]), None)
        if isinstance(index, tuple) and len(index) == 2 and index[0] is Ellipsis and isinstance(index[1], int):
            low, high = self._least(), self._most()
            return Enclosure(self.cells, Lines.between(low[:, 0], high[:, 0]), None)
        msg = f"it asks for x[{index!r}], and unseen tokens are known by their mass only; allowed is x[..., 0]"
        raise NotReadable(msg)

    def __bool__(self) -> bool:
        msg = "a rule branches on a value, or uses `and`, `or` or `not`; write xp.where(condition, a, b), &, | and ~"
        raise NotReadable(msg)

    def __repr__(self) -> str:
        return f"Enclosure(shape={self.shape})"

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: Value) -> "Enclosure":
        return combine(Lines.__add__, self, other)

    def __radd__(self, other: Value) -> "Enclosure":
        return combine(Lines.__add__, other, self)

    def __sub__(self, other: Value) -> "Enclosure":
        return combine(Lines.__sub__, self, other)

    def __rsub__(self, other: Value) -> "Enclosure":
        return combine(Lines.__sub__, other, self)

    def __mul__(self, other: Value) -> "Enclosure":
        return _product(self, other)

    def __rmul__(self, other: Value) -> "Enclosure":
        return _product(self, other)

    def __truediv__(self, other: Value) -> "Enclosure":
        return _quotient(self, other)

    def __rtruediv__(self, other: Value) -> "Enclosure":
        return _quotient(constant(other, self), self)

    def __pow__(self, exponent: float) -> "Enclosure":
        """A power with a positive exponent of what is not negative."""
        if not (isinstance(exponent, int | float) and exponent > 0):
            msg = f"x ** {exponent!r} of what is known within bounds; allowed are positive exponents"
            raise NotReadable(msg)
        return monotone(lambda end: end.clamp(min=0) ** exponent, self)

    def __neg__(self) -> "Enclosure":
        return Enclosure(self.cells, -self.head, None if self.tail is None else -self.tail, weighted=self.weighted)

    def __abs__(self) -> "Enclosure":
        return combine(Lines.maximum, self, -self)

    def __lt__(self, other: Value) -> "Condition":
        return ~(self >= other)

    def __le__(self, other: Value) -> "Condition":
        return ~(self > other)

    def __gt__(self, other: Value) -> "Condition":
        return _compare(torch.gt, self, other)

    def __ge__(self, other: Value) -> "Condition":
        return _compare(torch.ge, self, other)

    def __eq__(self, other: Value) -> "Condition":  # type: ignore[override]
        return (self >= other) & (self <= other)

    def __ne__(self, other: Value) -> "Condition":  # type: ignore[override]
        return ~(self == other)

    # -- over all tokens -----------------------------------------------------------------------------------------------

    def total(self) -> "Enclosure":
        """The sum over all tokens (R, 1)."""
        assert self.tail is not None
        if self.weighted:
            low, high = sum_bounds(self.cells, self.head, self.tail)
        else:
            none = self.cells.unseen == 0
            low, high = (
                self._of_tokens(heads, 0).sum(-1, keepdim=True) + (self.cells.unseen * of_tail).masked_fill(none, 0)
                for heads, of_tail in (
                    (self._head_low(), self.tail.low.amin(-1, keepdim=True)),
                    (self._head_high(), self.tail.high.amax(-1, keepdim=True)),
                )
            )
        return Enclosure(self.cells, Lines.between(low, high), None)

    def at(self, cells: Cells, columns: Tensor) -> "Enclosure":
        """The same quantity at some of the heads only, which are those of `cells`."""
        return Enclosure(cells, self.head.at(columns), self.tail, weighted=self.weighted)

    def beside(self, heads: Lines | None) -> "Enclosure":
        """The same quantity with further heads (R, H), to be summed with the others; None: without."""
        if heads is None:
            return self
        return Enclosure(self.cells, self.head.beside(heads), self.tail, weighted=self.weighted)

    def largest(self) -> "Enclosure":
        """The maximum over all tokens (R, 1)."""
        heads = self._largest_of(self._head_low())
        most = torch.maximum(heads, self._most_unseen(-torch.inf)) if self.head.is_exact else self._most()
        return Enclosure(self.cells, Lines.between(heads, torch.maximum(heads, most)), None)

    def smallest(self) -> "Enclosure":
        """The minimum over all tokens (R, 1)."""
        return -(-self).largest()

    def order_statistic(self, k: int) -> "Enclosure":
        """The k-th largest value (R,) over all tokens, for values that are not negative."""
        low, high = (_kth_largest(self._of_tokens(heads, 0), k) for heads in (self._head_low(), self._head_high()))
        return Enclosure(None, Lines.between(low, torch.maximum(high, self._most_unseen(0.0)[:, 0])), None)

    def is_largest(self) -> "Condition":
        """Where the first of the largest values stands."""
        best = self.largest()
        unseen = (self.highest_unseen() >= best.low) & (self.cells.unseen > 0)
        alone = ~unseen.any(-1, keepdim=True)
        possible = self._of_tokens(self.head.high, -torch.inf) >= best.low
        # Tokens of which both p and q are known are in the order of ids: if only such ones are known to be the largest,
        # the first of them counts.
        in_order = ~possible[:, self.cells.known :].any(-1, keepdim=True)
        known = (self.head.low == self.head.high) & possible & (best.low == best.high) & alone & in_order
        possible = torch.where(known.any(-1, keepdim=True), known & (known.cumsum(-1) == 1), possible)
        tokens = self.cells.per_head(possible, torch.any).sum(-1, keepdim=True)
        sure = possible & alone & (tokens == 1)
        return Condition(self.cells, (sure, possible), (torch.zeros_like(unseen), unseen))

    def _head_low(self) -> Tensor:
        return self.cells.per_head(self.head.low, torch.amin)

    def _head_high(self) -> Tensor:
        return self.cells.per_head(self.head.high, torch.amax)

    def only_tokens(self) -> "Enclosure":
        """The same, but 0 in spare columns."""
        if not self.cells.spare or not any(bool(end[:, -1].any()) for end in self.head):
            return self
        head = self.head.rising(lambda end: self._of_tokens(end, 0))
        return Enclosure(self.cells, head, self.tail, weighted=self.weighted)

    def _of_tokens(self, x: Tensor, otherwise: float) -> Tensor:
        return x.masked_fill(~self.cells.held, otherwise) if self.cells.spare else x

    def _largest_of(self, x: Tensor) -> Tensor:
        """(R, 1) the maximum over columns (R, H) that hold a token; in spare ones a row has one value."""
        largest = x.amax(-1, keepdim=True)
        if self.cells.spare and bool((x[:, -1:] >= largest).any()):
            return self._of_tokens(x, -torch.inf).amax(-1, keepdim=True)
        return largest

    def _most_unseen(self, none: float) -> Tensor:
        """(R, 1) upper bound of the value at any unseen token; `none` where there is no such token."""
        return self.highest_unseen().amax(-1, keepdim=True).masked_fill(self.cells.unseen == 0, none)

    def _most(self) -> Tensor:
        """(R, 1) upper bound of the value at any token."""
        return torch.maximum(self._largest_of(self.head.high), self._most_unseen(-torch.inf))

    def _least(self) -> Tensor:
        return -(-self)._most()

    def highest_unseen(self) -> Tensor:
        """(R, G) upper bounds of the value at an unseen token of each sector."""
        assert self.tail is not None
        if not self.weighted:
            return self.tail.high
        return _value_cap(self.cells, self.tail.high_left, self.tail.high_right)

    def unweighted(self) -> "Enclosure":
        """The same quantity as a value in itself, from the bounds of p, of q and of the weight of an unseen token."""
        if self.tail is None or not self.weighted:
            return self
        high = self.highest_unseen()
        low = 0 - _value_cap(self.cells, 0 - self.tail.low_left, 0 - self.tail.low_right)
        return Enclosure(self.cells, self.head, Lines.between(low, high), weighted=False)

    def multiple(self) -> "Enclosure":
        """The same quantity as a multiple of the weight; of a value in itself only the sign is known so."""
        if self.tail is None or self.weighted:
            return self
        low = torch.zeros_like(self.tail.low).masked_fill(self.tail.low < 0, -torch.inf)
        high = torch.zeros_like(self.tail.high).masked_fill(self.tail.high > 0, torch.inf)
        return Enclosure(self.cells, self.head, Lines.between(low, high), weighted=True)


class Condition:
    """Where something holds: `sure` and `possible` masks of heads and sectors, or of rows.

    With `weighted`, what is said of a sector holds for tokens that have weight, and nothing is said of others.
    """

    is_symbolic: ClassVar[bool] = True
    __slots__ = ("cells", "head", "tail", "weighted")

    def __init__(
        self,
        cells: Cells,
        head: tuple[Tensor, Tensor],
        tail: tuple[Tensor, Tensor] | None,
        *,
        weighted: bool = False,
    ) -> None:
        self.cells = cells
        self.head = head
        self.tail = tail
        self.weighted = weighted

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from gpu.replaying.certified import namespace

        return namespace

    def __getitem__(self, index: Any) -> "Condition":
        if self.tail is not None:
            msg = f"condition[{index!r}] of single tokens; allowed is condition[..., None] of rows"
            raise NotReadable(msg)
        return Condition(self.cells, (self.head[0][index], self.head[1][index]), None)

    def __bool__(self) -> bool:
        return Enclosure.__bool__(self)  # type: ignore[arg-type]

    def __and__(self, other: "Condition") -> "Condition":
        return _both(torch.logical_and, self, other)

    def __or__(self, other: "Condition") -> "Condition":
        return _both(torch.logical_or, self, other)

    def __invert__(self) -> "Condition":
        tail = None if self.tail is None else (~self.tail[1], ~self.tail[0])
        return Condition(self.cells, (~self.head[1], ~self.head[0]), tail, weighted=self.weighted)

    def anywhere(self) -> "Condition":
        """Whether it holds at some token (R, 1)."""
        sure, possible = self.head
        if self.tail is not None:
            sure = self.cells.per_head(sure, torch.all)
            if self.cells.spare:
                sure, possible = sure & self.cells.held, possible & self.cells.held
        sure, possible = sure.any(-1, keepdim=True), possible.any(-1, keepdim=True)
        if self.tail is not None:
            unsaid = self.tail[1].any(-1, keepdim=True) | self.weighted
            possible = possible | (unsaid & (self.cells.unseen > 0))
        return Condition(self.cells, (sure, possible), None)


def joined(parts: Sequence[tuple[Enclosure, ...]]) -> tuple[Enclosure, ...]:
    """Quantities of several parts of rows, known at all heads, as quantities of all these rows, in order."""
    cells = Cells.joined([part[0].cells for part in parts])

    def together(parts: tuple[Enclosure, ...]) -> Enclosure:
        if not all(x.weighted for x in parts):
            parts = tuple(x.unweighted() for x in parts)
        tails = [x.tail for x in parts if x.tail is not None]
        return Enclosure(cells, Lines.joined([x.head for x in parts]), Lines.joined(tails), weighted=parts[0].weighted)

    return tuple(together(of_parts) for of_parts in zip(*parts, strict=True))


# -- how operations meet the two kinds of sectors --------------------------------------------------------------------


def constant(value: Value, like: Enclosure) -> Enclosure:
    """A number as a row quantity; an enclosure as it is."""
    if isinstance(value, Enclosure):
        return value
    return Enclosure(None, Lines.exact(torch.tensor(float(value), dtype=like.dtype, device=like.device)), None)


def combine(operation: Callable[[Lines, Lines], Lines], a: Value, b: Value) -> Enclosure:
    """An operation that treats multiples of one weight as it treats values: sums, minima, hulls."""
    like = a if isinstance(a, Enclosure) else b
    assert isinstance(like, Enclosure)
    a, b = constant(a, like), constant(b, like)
    head = operation(a.head, b.head)
    if a.tail is None and b.tail is None:
        return Enclosure(like.cells, head, None)
    (tail_a, tail_b), weighted = aligned(a, b)
    return Enclosure(_cells(a, b), head, operation(tail_a, tail_b), weighted=weighted)


def aligned(a: Enclosure, b: Enclosure) -> tuple[tuple[Lines, Lines], bool]:
    """Both tails as multiples of the weight, where each is one or zero, else both as values."""
    if (a.weighted or _is_zero(a)) and (b.weighted or _is_zero(b)):
        return (_tail(a), _tail(b)), True
    return (_tail(a.unweighted()), _tail(b.unweighted())), False


def monotone(function: Callable[[Tensor], Tensor], x: Enclosure) -> Enclosure:
    """A nondecreasing function of a quantity."""
    x = x.unweighted()
    flat = Lines.exact(x.head.low_left) if x.head.is_exact else Lines.between(x.head.low, x.head.high)
    return Enclosure(
        x.cells,
        flat.rising(function),
        None if x.tail is None else Lines.between(x.tail.low, x.tail.high).rising(function),
    )


def _product(a: Enclosure, b: Value) -> Enclosure:
    b = constant(b, a)
    if (a.tail is None and b.tail is not None) or b.weighted:
        a, b = b, a
    b = b.unweighted()
    factor = b.head if b.head.is_flat else Lines.between(b.head.low, b.head.high)
    head = a.head * factor
    if a.tail is None:
        return Enclosure(a.cells, head, None)
    tail = _tail(b)
    return Enclosure(
        a.cells, head, a.tail * (tail if tail.is_flat else Lines.between(tail.low, tail.high)), weighted=a.weighted
    )


def _quotient(a: Enclosure, b: Value) -> Enclosure:
    b = constant(b, a).unweighted()
    divisor = b.head if b.head.is_flat else Lines.between(b.head.low, b.head.high)
    head = a.head / divisor
    if a.tail is None and b.tail is None:
        return Enclosure(a.cells, head, None)
    tail = _tail(b)
    by = tail if tail.is_flat else Lines.between(tail.low, tail.high)
    return Enclosure(_cells(a, b), head, _tail(a) / by, weighted=a.weighted)


def _compare(holds: Callable[[Tensor, Tensor], Tensor], a: Enclosure, b: Value) -> Condition:
    b = constant(b, a)
    head = _judge(holds, a.head, b.head)
    if a.tail is None and b.tail is None:
        return Condition(a.cells, head, None)
    (tail_a, tail_b), weighted = aligned(a, b)
    if weighted:
        # A token at the border of two sectors is in either of them, by the last digit of q/p.
        low, high = tail_a[:2], tail_a[2:]
        tail_a = Lines(*(x - ROUNDING * x.abs() for x in low), *(x + ROUNDING * x.abs() for x in high))
    return Condition(_cells(a, b), head, _judge(holds, tail_a, tail_b), weighted=weighted)


def _judge(holds: Callable[[Tensor, Tensor], Tensor], a: Lines, b: Lines) -> tuple[Tensor, Tensor]:
    if a.is_exact and b.is_exact:
        known = holds(a.low_left, b.low_left)
        return known, known
    if a.is_flat and b.is_flat:
        sure = holds(a.low_left, b.high_left)
        if all(x.is_exact or torch.equal(x.low_left, x.high_left) for x in (b, a)):
            return sure, sure
        possible = holds(a.high_left, b.low_left)
    else:
        sure = holds(a.low_left, b.high_left) & holds(a.low_right, b.high_right)
        possible = holds(a.high_left, b.low_left) | holds(a.high_right, b.low_right)
    return (sure, sure) if torch.equal(sure, possible) else (sure, possible)


def _both(operation: Callable[[Tensor, Tensor], Tensor], a: Condition, b: Condition) -> Condition:
    def each(x: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        sure = operation(x[0], y[0])
        return sure, sure if x[0] is x[1] and y[0] is y[1] else operation(x[1], y[1])

    tail = None
    if a.tail is not None or b.tail is not None:
        tail = each(a.head if a.tail is None else a.tail, b.head if b.tail is None else b.tail)
    cells = a.cells if a.tail is not None else b.cells
    return Condition(cells, each(a.head, b.head), tail, weighted=a.weighted or b.weighted)


def _tail(x: Enclosure) -> Lines:
    return x.head if x.tail is None else x.tail


def _cells(a: Enclosure, b: Enclosure) -> Cells:
    return a.cells if a.tail is not None else b.cells


def _is_zero(x: Enclosure) -> bool:
    return x.tail is None and x.head.is_exact and not bool(x.head.low_left.any())


def _kth_largest(x: Tensor, k: int) -> Tensor:
    return x.topk(k, dim=-1).values[:, -1] if k <= x.shape[-1] else torch.zeros_like(x[:, 0])


def _value_cap(cells: Cells, left: Tensor, right: Tensor) -> Tensor:
    """(R, G) upper bound of w U(s) at an unseen token, U the line between these ends of each sector."""
    by_weight = (torch.maximum(left, right).clamp(min=0) * cells.weight_cap).nan_to_num(0.0, posinf=torch.inf)
    s_left, s_right = cells.nodes[:, :-1], cells.nodes[:, 1:]
    slope = (right - left) / (s_right - s_left)
    of_p = left - slope * s_left
    by_caps = of_p.clamp(min=0) * cells.cap_p + (of_p + slope).clamp(min=0) * cells.cap_q
    # Outwards, since ties with a threshold are decided by the last digit.
    return torch.minimum(by_weight, by_caps.nan_to_num(torch.inf, posinf=torch.inf)) * (1 + ROUNDING)
