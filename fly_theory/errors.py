"""Errors of our own type: each names the argument, shows the value and says what is allowed."""

from collections.abc import Iterable
from difflib import get_close_matches


class FlyTheoryError(Exception):
    """Base class of every error this project raises on purpose."""


class InvalidInput(FlyTheoryError, ValueError):
    """An argument is outside what is allowed."""


class DistributionError(InvalidInput):
    """An array is not a (batch of) probability distribution(s)."""


class ShapeError(InvalidInput):
    """Shapes do not fit together."""


class ParameterError(InvalidInput):
    """A rule's parameter is outside its declared domain, missing, or unknown."""


class UnknownName(InvalidInput, LookupError):
    """A name is not registered."""


class ZeroResidualError(FlyTheoryError, ArithmeticError):
    """A draft token is rejected with positive probability but the residual has no mass to redraw from."""


class ExactnessError(FlyTheoryError, TypeError):
    """A float, or an operation with irrational results, met exact arithmetic."""


class UndecidableError(FlyTheoryError, ArithmeticError):
    """A comparison could not be decided at the working precision."""


class SymbolicError(FlyTheoryError, TypeError):
    """A symbol was asked for something only a number has."""


class NotReadable(FlyTheoryError, TypeError):
    """A rule declares that an interpreter cannot read it; the message gives its reason."""


class VerifierError(FlyTheoryError, RuntimeError):
    """A verifier under test threw, hung, or returned something that is no list of token ids."""


class TraceError(FlyTheoryError):
    """A trace folder is missing, incomplete or altered."""


class CaptureError(FlyTheoryError, RuntimeError):
    """Logits could not be captured; what was written so far is kept and capture resumes from it."""


class WorkerLost(FlyTheoryError, RuntimeError):
    """Processes that were given the same work were lost again and again; what was finished is kept."""


class MissingExtra(FlyTheoryError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


def unknown_name(name: str, *, kind: str, known: Iterable[str]) -> UnknownName:
    """Build the error for an unregistered name: what was asked for, the nearest names, and all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3)
    hint = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    return UnknownName(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}.")
