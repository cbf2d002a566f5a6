"""Exact execution: a verifier is run once for every outcome of its random decisions, so its law comes out as fractions.

A uniform is an unknown in [0, 1) whose comparisons with numbers split its interval; a choice splits by its weights. The
verifier is run again from the start for each branch, along a script of the branches taken so far.
"""

import functools
import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from fly_theory.conformance.numbers import Exact, as_rational, is_rounded, read_number
from fly_theory.errors import VerifierError

__all__ = ["Branch", "Draws", "Leaf", "Opaque", "Uniform", "explore", "read_weights"]

T = TypeVar("T")
_MOST_CELLS = 64
_MOST_LEAVES = 4096


class Opaque(BaseException):
    """A uniform was used in a way that only samples can follow; passes through a verifier's `except Exception`."""


@dataclass(frozen=True)
class Branch:
    """One decision that could have gone otherwise: the draw it read, the line that read it, the option taken."""

    label: str
    line: tuple[str, int]
    taken: int
    options: int


@dataclass(frozen=True)
class Leaf(Generic[T]):
    """One way a run can go: its probability, what came of it, the branches on the way.

    coins, choices : a value of each uniform, and the option of each choice, that lead here
    edges : of each uniform, the numbers it was compared with
    """

    probability: Fraction
    value: T
    branches: tuple[Branch, ...]
    rounded: bool
    coins: tuple[float, ...]
    choices: tuple[int, ...]
    edges: tuple[tuple[Fraction, ...], ...]

    @property
    def script(self) -> tuple[int, ...]:
        """The option taken at each branch."""
        return tuple(branch.taken for branch in self.branches)


class Draws:
    """The random source of one run along a script of branches; past its end the first option is taken.

    With `coin_bits`, uniforms are on the grid of multiples of 2^-coin_bits, as some samplers draw them.
    """

    def __init__(self, script: tuple[int, ...], coin_bits: int | None = None) -> None:
        self._script = script
        self._coin_bits = coin_bits
        self._intervals: list[tuple[Fraction, Fraction]] = []
        self._edges: list[list[Fraction]] = []
        self._choices: list[int] = []
        self._probability = Fraction(1)
        self._branches: list[Branch] = []
        self._rounded = False

    def random(self) -> "Uniform":
        """A uniform in [0, 1), as an unknown."""
        self._intervals.append((Fraction(0), Fraction(1)))
        self._edges.append([])
        return Uniform(self, len(self._intervals) - 1, Fraction(1), Fraction(0))

    def choice(self, weights: Any) -> int:
        """A token id, drawn in proportion to unnormalised weights (V,).

        Raises
        ------
        VerifierError
            For weights without mass, negative, NaN or infinite ones.
        """
        masses = [self.read(entry) for entry in read_weights(weights)]
        options = [token for token, mass in enumerate(masses) if mass]
        taken = self._branch(f"choice {len(self._choices)}", [masses[token] for token in options], sum(masses))
        token = options[taken]
        self._choices.append(token)
        return token

    def below(self, index: int, edge: Any, inclusive: bool) -> bool:
        """Whether uniform `index` is below `edge` (or at it, if inclusive): decided by the script where both can be."""
        if edge != edge:
            return False
        if edge in (math.inf, -math.inf):
            return bool(edge > 0)
        cut = self.read(edge)
        if 0 <= cut < 1:
            self._edges[index].append(cut)
        cut = self._on_grid(cut, inclusive)
        low, high = self._intervals[index]
        return self._split(index, [(low, min(cut, high)), (max(cut, low), high)]) == 0

    def floor(self, index: int, scale: Fraction, offset: Fraction) -> int:
        """Integer part of scale * uniform + offset."""
        low, high = self._intervals[index]
        reach = sorted((scale * low + offset, scale * high + offset))
        first, last = math.floor(reach[0]), math.ceil(reach[1])
        if last - first > _MOST_CELLS:
            msg = f"the integer part of a uniform, one of {last - first} values"
            raise Opaque(msg)
        cells = []
        for whole in range(first, last):
            start, end = sorted(((whole - offset) / scale, (whole + 1 - offset) / scale))
            cells.append((max(low, self._on_grid(start, False)), min(high, self._on_grid(end, False))))
        return first + self._split(index, cells)

    def read(self, number: Any) -> Fraction:
        """The rational a finite number means, remembering whether it was rounded."""
        self._rounded |= is_rounded(number)
        return as_rational(number)

    def leaf(self, value: T) -> Leaf[T]:
        """This run as a leaf, with what came of it."""
        return Leaf(
            self._probability,
            value,
            tuple(self._branches),
            self._rounded,
            tuple(float((low + high) / 2) for low, high in self._intervals),
            tuple(self._choices),
            tuple(map(tuple, self._edges)),
        )

    def _on_grid(self, cut: Fraction, inclusive: bool) -> Fraction:
        """Where uniforms below `cut` (and at it, if inclusive) end; a grid point stands for the cell it starts."""
        if self._coin_bits is None:
            return cut
        points = cut * 2**self._coin_bits
        return Fraction(math.floor(points) + 1 if inclusive else math.ceil(points), 2**self._coin_bits)

    def _split(self, index: int, cells: list[tuple[Fraction, Fraction]]) -> int:
        low, high = self._intervals[index]
        possible = [(i, cell) for i, cell in enumerate(cells) if cell[0] < cell[1]]
        taken = self._branch(f"uniform {index}", [end - start for _, (start, end) in possible], high - low)
        which, self._intervals[index] = possible[taken]
        return which

    def _branch(self, label: str, masses: list[Fraction], total: Fraction | int) -> int:
        if len(masses) == 1:
            return 0
        depth = len(self._branches)
        taken = self._script[depth] if depth < len(self._script) else 0
        if taken >= len(masses):
            msg = "a run that cannot be repeated: the verifier draws from elsewhere, or remembers"
            raise Opaque(msg)
        self._branches.append(Branch(label, _verifier_line(), taken, len(masses)))
        self._probability *= masses[taken] / total
        return taken


def _of_number(operate: Callable[["Uniform", Any], Any]) -> Callable[["Uniform", Any], Any]:
    """Read the other operand as a number; arrays come back to us entry by entry."""

    @functools.wraps(operate)
    def operation(self: "Uniform", other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        number = read_number(other)
        if number is None:
            scalar = getattr(other, "ndim", None) in (None, 0) and hasattr(other, "__float__")
            if isinstance(other, Uniform) or not scalar:
                msg = f"a uniform combined with a {type(other).__name__}"
                raise Opaque(msg)
            number = read_number(float(other))
        return operate(self, number)

    return operation


def _of_itself(compare: Callable[["Uniform", Any], Any]) -> Callable[["Uniform", Any], Any]:
    """Compare multiples of one uniform by their difference; numpy compares what it looks up with itself."""

    @functools.wraps(compare)
    def comparison(self: "Uniform", other: Any) -> Any:
        if not (isinstance(other, Uniform) and self._index == other._index):
            return compare(self, other)
        scale, offset = self._scale - other._scale, self._offset - other._offset
        if scale:
            return compare(Uniform(self._draws, self._index, scale, offset), 0)
        return getattr(operator, compare.__name__)(offset, 0)

    return comparison


class Uniform:
    """scale * u + offset for an unknown u: ordinary arithmetic with numbers, comparisons with numbers, integer part.

    Anything else (a logarithm, the product of two uniforms, a conversion to float) raises `Opaque`.
    """

    __slots__ = ("_draws", "_index", "_offset", "_scale")

    def __init__(self, draws: Draws, index: int, scale: Fraction, offset: Fraction) -> None:
        self._draws, self._index, self._scale, self._offset = draws, index, scale, offset

    def _map(self, scale: Any, offset: Any) -> Any:
        """scale * self + offset."""
        try:
            factor, shift = self._draws.read(scale), self._draws.read(offset)
        except (ValueError, OverflowError):
            msg = "a uniform combined with inf or nan"
            raise Opaque(msg) from None
        if factor == 0:
            return Exact(shift)
        return Uniform(self._draws, self._index, factor * self._scale, factor * self._offset + shift)

    @_of_number
    def __add__(self, number: Any) -> Any:
        return self._map(1, number)

    @_of_number
    def __sub__(self, number: Any) -> Any:
        return self._map(1, -number)

    @_of_number
    def __rsub__(self, number: Any) -> Any:
        return self._map(-1, number)

    @_of_number
    def __mul__(self, number: Any) -> Any:
        return self._map(number, 0)

    @_of_number
    def __truediv__(self, number: Any) -> Any:
        return self._map(1 / number if number else math.inf, 0)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self._map(-1, 0)

    def __pos__(self) -> Any:
        return self

    @_of_itself
    @_of_number
    def __lt__(self, number: Any) -> bool:
        return self._below(number, inclusive=False)

    @_of_itself
    @_of_number
    def __le__(self, number: Any) -> bool:
        return self._below(number, inclusive=True)

    @_of_itself
    @_of_number
    def __gt__(self, number: Any) -> bool:
        return number == number and not self._below(number, inclusive=True)

    @_of_itself
    @_of_number
    def __ge__(self, number: Any) -> bool:
        return number == number and not self._below(number, inclusive=False)

    # Equality with a number has probability zero.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __bool__(self) -> bool:
        return True

    def __floor__(self) -> int:
        return self._draws.floor(self._index, self._scale, self._offset)

    def __int__(self) -> int:
        whole = self.__floor__()
        return whole if whole >= 0 else whole + 1

    __trunc__ = __int__

    def __float__(self) -> float:
        msg = "a uniform turned into a float"
        raise Opaque(msg)

    def log(self) -> Any:
        """Refused: see the class. numpy calls this for arrays of uniforms."""
        msg = "the logarithm of a uniform"
        raise Opaque(msg)

    def _below(self, number: Any, *, inclusive: bool) -> bool:
        edge = (number - self._offset) / self._scale
        if self._scale > 0:
            return self._draws.below(self._index, edge, inclusive)
        return edge == edge and not self._draws.below(self._index, edge, not inclusive)


def explore(run: Callable[[Draws], T], *, coin_bits: int | None = None) -> list[Leaf[T]]:
    """Every way `run` can go, with probabilities that sum to one.

    Raises
    ------
    Opaque
        Where a uniform is used in a way that only samples can follow, or there are too many ways.
    """
    pending: list[tuple[int, ...]] = [()]
    leaves: list[Leaf[T]] = []
    while pending:
        script = pending.pop()
        draws = Draws(script, coin_bits)
        leaf = draws.leaf(run(draws))
        leaves.append(leaf)
        if len(leaves) > _MOST_LEAVES:
            msg = f"more than {_MOST_LEAVES} outcomes of one call"
            raise Opaque(msg)
        for depth in range(len(script), len(leaf.branches)):
            pending.extend((*leaf.script[:depth], other) for other in range(1, leaf.branches[depth].options))
    return leaves


def read_weights(weights: Any) -> list[Any]:
    """The entries of unnormalised weights (V,).

    Raises
    ------
    VerifierError
        For weights without mass, negative, NaN or infinite ones.
    """
    entries = weights.tolist() if hasattr(weights, "tolist") else list(weights)
    floats = list(map(float, entries))
    if not 0 < sum(floats) < math.inf or min(floats) < 0:
        shown = ", ".join(map(str, entries))
        msg = f"gave rng.choice the weights ({shown}); they must be finite and >= 0, with some mass"
        raise VerifierError(msg)
    return entries


def _verifier_line() -> tuple[str, int]:
    """Where the code outside this module is that read the draw."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
