"""The exact interpreter: rules read over rationals, counterexamples as fractions."""

from typing import Any

from fly_theory.exact.array import ExactArray, rational

__all__ = ["ExactArray", "exact", "rational"]


def exact(values: Any) -> ExactArray:
    """An exact array from numbers, or (nested) lists of them: ints, Fractions, or texts such as "3/10" or "0.3".

    Raises
    ------
    ExactnessError
        For a float, saying what to write instead.

    Examples
    --------
    >>> import fly_theory as ft
    >>> p = ft.exact(["1/2", "3/10", "3/20", "1/20"])
    >>> q = ft.exact(["1/5", "1/10", "3/10", "2/5"])
    >>> ft.rule("lenience:l=0.5").induced(p, q)
    exact([19/50, 11/50, 3/10, 1/10])
    """
    from fly_theory.exact import namespace

    made: ExactArray = namespace.asarray(values, dtype=rational)
    return made
