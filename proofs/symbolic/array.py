"""`SymbolicArray`: the array a rule runs over when it is proved rather than evaluated."""

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from fly_theory.errors import SymbolicError
from proofs.symbolic import terms
from proofs.symbolic.terms import Term
from proofs.symbolic.world import World

__all__ = ["SymbolicArray", "VocabularySize", "elementwise"]

_WRITE_INSTEAD = (
    "a symbol has no value to inspect: write xp.where(condition, a, b) for a case distinction, xp.minimum, xp.maximum "
    "or xp.clip for a bound, and & | ~ for and, or, not"
)


class VocabularySize(int):
    """The length of the vocabulary axis: at least one, and otherwise unknown."""

    def __new__(cls) -> "VocabularySize":
        return super().__new__(cls, 2**31 - 1)  # only numpy's shape rules see the number

    def __repr__(self) -> str:
        return "V"

    __str__ = __repr__
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VocabularySize)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int) -> bool:
        if other <= 1:
            return False
        return self._refuse(other)

    def _refuse(self, *_: Any) -> Any:
        msg = "the size of the vocabulary is unknown in a proof; let the rule speak of tokens and sums, not of V"
        raise SymbolicError(msg)

    __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse  # type: ignore[assignment]
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __neg__ = __float__ = _refuse  # type: ignore[assignment]


class SymbolicArray:
    """Terms along batch axes and, when `per_token`, one generic token in place of the vocabulary axis.

    cells : object array of z3 terms over the batch axes
    per_token : whether a last axis (V,) follows, its entry at token v being the cell itself

    An array with an explicit vocabulary has that axis among its cells and is not `per_token`; so the same rule can be
    read for every vocabulary at once, or for one of two or three tokens.
    """

    is_symbolic = True
    is_exact = True
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, world: World, cells: Any, *, per_token: bool = False) -> None:
        if not isinstance(cells, np.ndarray):
            cells, term = np.empty((), dtype=object), cells
            cells[()] = term
        self.world, self.cells, self.per_token = world, cells, per_token

    # -- what an array has ---------------------------------------------------------------------------------------------

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        from proofs.symbolic import namespace

        return namespace

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch axes, then V for an array over tokens."""
        return (*self.cells.shape, VocabularySize()) if self.per_token else self.cells.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.cells.ndim + self.per_token

    @property
    def device(self) -> World:
        """The world its symbols belong to: where new symbols are put that are to meet these."""
        return self.world

    @property
    def dtype(self) -> str:
        """ "real", "bool", or "int" for token ids."""
        if not self.cells.size:
            return "real"
        sort = self.cells.flat[0].sort()
        return "int" if sort == terms.TOKEN else str(sort).lower()

    @property
    def term(self) -> Term:
        """The only cell."""
        return self.cells.reshape(-1)[0] if self.cells.size == 1 else self._refuse()

    def at(self, token: Term, *, place: Term | None = None) -> "SymbolicArray":
        """The entries at one token: put for the generic token, or for another that the entries depend on."""
        place = self.world.generic if place is None else place
        here = np.frompyfunc(lambda cell: terms.at(cell, [place], [token]), 1, 1)(self.cells)
        return SymbolicArray(self.world, here, per_token=self.per_token and not place.eq(self.world.generic))

    def __repr__(self) -> str:
        return f"SymbolicArray({self.cells.tolist()}, shape={self.shape})"

    def _refuse(self, *_: Any) -> Any:
        raise SymbolicError(_WRITE_INSTEAD)

    __bool__ = __float__ = __int__ = __index__ = __complex__ = _refuse

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return self.cells.shape[0] if self.cells.ndim else self._refuse()

    # -- elementwise ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.add, self, other)

    def __radd__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.add, other, self)

    def __sub__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.subtract, self, other)

    def __rsub__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.subtract, other, self)

    def __mul__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.multiply, self, other)

    def __rmul__(self, other: Any) -> "SymbolicArray":
        return elementwise(terms.multiply, other, self)

    def __truediv__(self, other: Any) -> "SymbolicArray":
        return elementwise(self._quotient, self, other)

    def __rtruediv__(self, other: Any) -> "SymbolicArray":
        return elementwise(self._quotient, other, self)

    def __pow__(self, exponent: Any) -> "SymbolicArray":
        if isinstance(exponent, int):
            power = elementwise(lambda base: terms.product([base] * abs(exponent)), self)
            return power if exponent >= 0 else 1 / power
        return elementwise(lambda base, e: self.world.defined("power", [base, e]), self, exponent)

    def __neg__(self) -> "SymbolicArray":
        return elementwise(terms.negate, self)

    def __pos__(self) -> "SymbolicArray":
        return self

    def __abs__(self) -> "SymbolicArray":
        return elementwise(lambda a: terms.choose(a >= 0, a, terms.negate(a)), self)

    def __lt__(self, other: Any) -> "SymbolicArray":
        return elementwise(operator.lt, self, other)

    def __le__(self, other: Any) -> "SymbolicArray":
        return elementwise(operator.le, self, other)

    def __gt__(self, other: Any) -> "SymbolicArray":
        return elementwise(operator.gt, self, other)

    def __ge__(self, other: Any) -> "SymbolicArray":
        return elementwise(operator.ge, self, other)

    def __eq__(self, other: object) -> "SymbolicArray":  # type: ignore[override]
        return elementwise(operator.eq, self, other)

    def __ne__(self, other: object) -> "SymbolicArray":  # type: ignore[override]
        return ~(self == other)

    def __and__(self, other: Any) -> "SymbolicArray":
        return elementwise(lambda a, b: terms.z3.And(a, b), self, other)

    def __or__(self, other: Any) -> "SymbolicArray":
        return elementwise(lambda a, b: terms.z3.Or(a, b), self, other)

    def __invert__(self) -> "SymbolicArray":
        return elementwise(lambda a: terms.z3.Not(a), self)

    def _quotient(self, a: Term, b: Term) -> Term:
        known = terms.value(b)
        if known is not None and known != 0:
            return terms.multiply(terms.number(1 / known), a)
        return terms.multiply(a, self.world.defined("reciprocal", [b]))

    # -- indexing ------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> "SymbolicArray":
        key = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, SymbolicArray) for k in key):
            self._refuse()
        if not self.per_token:
            return SymbolicArray(self.world, self.cells[key])
        batch, of_token = self._split(key)
        kept = SymbolicArray(self.world, self.cells[batch], per_token=True)
        if isinstance(of_token, slice) and of_token == slice(None):
            return kept
        if of_token == 0:
            return kept.at(terms.token("first"))
        msg = (
            f"index {of_token!r} on the vocabulary axis: a proof knows a generic token only; use where, sum, max or any"
        )
        raise SymbolicError(msg)

    def _split(self, key: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The part of an index that concerns the batch axes, and the part for the vocabulary axis."""
        if Ellipsis not in key:
            key = (*key, Ellipsis) if len([k for k in key if k is not None]) < self.ndim else (*key[:-1], ..., key[-1])
        dots = key.index(Ellipsis)
        head, tail = key[:dots], key[dots + 1 :]
        if not tail:
            return (*head, ...), slice(None)
        if tail[-1] is None:
            msg = "a new axis cannot follow the vocabulary axis"
            raise SymbolicError(msg)
        return (*head, ..., *tail[:-1]), tail[-1]


def elementwise(function: Callable[..., Term], *operands: Any, world: World | None = None) -> SymbolicArray:
    """`function` on the terms of the operands, broadcast against each other; the world is that of the first symbol."""
    world = world or next(o.world for o in operands if isinstance(o, SymbolicArray))
    arrays = [o if isinstance(o, SymbolicArray) else SymbolicArray(world, _constant(world, o)) for o in operands]
    per_token = any(a.per_token for a in arrays)
    cells = np.frompyfunc(function, len(arrays), 1)(*(_cells(a, per_token) for a in arrays))
    return SymbolicArray(world, cells, per_token=per_token)


def _cells(array: SymbolicArray, per_token: bool) -> np.ndarray:
    if not per_token or array.per_token or array.ndim == 0:
        return array.cells
    if array.shape[-1] != 1:
        msg = f"shapes (..., V) and {array.shape} do not broadcast"
        raise SymbolicError(msg)
    return array.cells[..., 0]


def _constant(world: World, x: Any) -> Term:
    if isinstance(x, bool | np.bool_):
        return terms.TRUE if x else terms.FALSE
    if isinstance(x, int | Fraction | np.integer):
        return terms.number(Fraction(int(x)) if isinstance(x, np.integer) else x)
    if isinstance(x, float) and x == float("inf"):
        return world.family("infinity", (), "infinite")
    msg = f"{x!r} met symbols; allowed are symbols, integers and fractions: write scalar(value, p) for a parameter"
    raise SymbolicError(msg)
