"""The constants c for which f <= g + sum_j c_j n_j holds at every token, found by guessing and learning from failures.

When the n_j sum to zero, such constants show sum f <= sum g.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import z3

Multipliers = tuple[Fraction, ...]
Failure = tuple[Fraction, Sequence[Fraction]]

_SIMPLE = ([0, 1, -1], [0, 1, -1, Fraction(1, 2), Fraction(-1, 2), 2, -2])
_GUESSES = 25


def search(
    count: int, works: Callable[[Multipliers], Failure | None], *, equation: bool
) -> tuple[Multipliers | None, Multipliers]:
    """Multipliers that work, or None after too many guesses, and the last ones tried.

    `works(c)` returns None for success, else where c fails: the gap f - g and the values n_j at some token.
    """
    failures: list[Failure] = []
    guess: Multipliers = (Fraction(0),) * count
    for _ in range(_GUESSES):
        failure = works(guess)
        if failure is None:
            return guess, guess
        failures.append(failure)
        better = next(_guesses(count, failures, equation), None)
        if better is None or better == guess:
            return None, guess
        guess = better
    return None, guess


def _guesses(count: int, failures: Sequence[Failure], equation: bool) -> Iterator[Multipliers]:
    """Multipliers that would have worked at every failure so far, the simplest kind first."""
    unknown = [z3.Real(f"c{j}") for j in range(count)]
    solver = z3.Solver()
    for gap, values in failures:
        reached = z3.Sum([c * z3.Q(n.numerator, n.denominator) for c, n in zip(unknown, values, strict=True)])
        needed = z3.Q(gap.numerator, gap.denominator)
        solver.add(reached == needed if equation else reached >= needed)
    for allowed in (*_SIMPLE, None):
        solver.push()
        if allowed is not None:
            solver.add(*(z3.Or([c == z3.Q(*Fraction(a).as_integer_ratio()) for a in allowed]) for c in unknown))
        if solver.check() == z3.sat:
            model = solver.model()
            yield tuple(Fraction(model.eval(c, model_completion=True).as_fraction()) for c in unknown)
        solver.pop()
