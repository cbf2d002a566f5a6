"""One call of a verifier: its inputs, its answer read as token ids, and whatever goes wrong laid at its door."""

import contextlib
import operator
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from fly_theory.conformance.laws import Text
from fly_theory.errors import VerifierError

__all__ = ["CallFailed", "Inputs", "Random", "Verifier", "call", "guarded", "read_tokens", "time_limit"]

T = TypeVar("T")


class Random(Protocol):
    """The source of randomness a verifier is given."""

    def random(self) -> Any:
        """A uniform in [0, 1)."""

    def choice(self, weights: Any) -> int:
        """A token id, drawn in proportion to unnormalised weights (V,)."""


Verifier = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a verifier is called with.

    target_probs : (K+1, V), draft_probs : (K, V), draft_tokens : (K,) integers; or with a leading axis of candidates.
    """

    target_probs: Any
    draft_probs: Any
    draft_tokens: Any

    def copy(self) -> "Inputs":
        """Inputs that may be written to."""
        return Inputs(self.target_probs.copy(), self.draft_probs.copy(), self.draft_tokens.copy())

    def same_as(self, other: "Inputs") -> bool:
        """Whether nothing was written to either."""
        return all(np.array_equal(ours, getattr(other, name)) for name, ours in vars(self).items())

    def floats(self) -> "Inputs":
        """The same inputs as float64 rows."""
        return Inputs(self.target_probs.astype(np.float64), self.draft_probs.astype(np.float64), self.draft_tokens)

    def shown(self) -> Mapping[str, Any]:
        """The inputs as a witness shows them."""
        return {name: _nested(values.tolist()) for name, values in vars(self).items()}


class CallFailed(VerifierError):
    """A verifier threw, hung, or returned something that is no list of token ids.

    what : in words, as they follow "it"
    inputs : what it was called with, as a witness shows it
    raised : whether it was an exception that ended the call
    """

    def __init__(self, what: str, inputs: Mapping[str, Any], *, raised: bool = False) -> None:
        super().__init__(what)
        self.what, self.inputs, self.raised = what, inputs, raised


class _Hung(BaseException):
    """The time limit of a call ran out."""


def call(verifier: Verifier, inputs: Inputs, rng: Any, *, vocabulary: int, seconds: float) -> Text:
    """The token ids (of a vocabulary of V) that a verifier emits on `inputs`, which it may write to.

    Raises
    ------
    CallFailed
        When the verifier raises an exception, takes longer than `seconds`, or returns no list of token ids.
    """
    arguments = (inputs.target_probs, inputs.draft_probs, inputs.draft_tokens, rng)
    with np.errstate(all="ignore"):
        returned = guarded(lambda: verifier(*arguments), inputs.shown, seconds)
    return read_tokens(returned, vocabulary, inputs.shown)


def guarded(function: Callable[[], T], shown: Callable[[], Mapping[str, Any]], seconds: float) -> T:
    """What a function returns; `shown` is asked for what it was called with when it fails.

    Raises
    ------
    CallFailed
        When it raises an exception or takes longer than `seconds`.
    """
    try:
        with time_limit(seconds):
            return function()
    except _Hung:
        what = f"did not return within {seconds:g} s"
        raise CallFailed(what, shown()) from None
    except VerifierError as error:
        raise CallFailed(str(error), shown(), raised=True) from error
    except (Exception, SystemExit) as error:
        what = f"raised {type(error).__name__}: {error}"
        raise CallFailed(what, shown(), raised=True) from error


def read_tokens(returned: Any, vocabulary: int, shown: Callable[[], Mapping[str, Any]]) -> Text:
    """Token ids from what was returned.

    Raises
    ------
    CallFailed
        For something that is no sequence of integers, an empty one, and ids outside 0..V-1.
    """
    try:
        tokens = tuple(operator.index(token) for token in returned)
    except TypeError:
        what = f"returned {returned!r}, which is no list of token ids"
        raise CallFailed(what, shown()) from None
    if not tokens:
        what = "returned no token; every call emits at least one"
        raise CallFailed(what, shown())
    outside = [token for token in tokens if not 0 <= token < vocabulary]
    if outside:
        what = f"returned {list(tokens)}: id {outside[0]} is outside the vocabulary 0..{vocabulary - 1}"
        raise CallFailed(what, shown())
    return tokens


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block after `seconds`; an alarm that somebody else has set goes off when it would have.

    Only the main thread of a Unix process can be interrupted; elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    handler = signal.signal(signal.SIGALRM, _ring)
    started = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if remaining:
            left = remaining - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), interval)


def _ring(_signum: int, _frame: Any) -> None:
    raise _Hung


def _nested(values: Any) -> Any:
    return tuple(map(_nested, values)) if isinstance(values, list) else values
