"""What a proof consists of: parts, and in each the steps that were taken, with the obligations that show them."""

from dataclasses import dataclass
from typing import Literal

from proofs.obligation import Answer, Obligation
from proofs.symbolic import World
from proofs.symbolic.terms import Term

__all__ = ["Part", "Role", "Step", "Unproved"]

Role = Literal["hypothesis", "lemma", "sum", "goal", "cases"]


@dataclass(frozen=True, eq=False)
class Part:
    """The symbols of one part of a proof, and the names that were given to terms."""

    title: str
    world: World
    names: list[tuple[str, Term]]


@dataclass(frozen=True, eq=False)
class Step:
    """One line of a proof: its words, what it says, and for a sum what was shown at each token.

    For a statement about finitely many cases it says how many there are. `obligations` counts those that show it,
    from 1.
    """

    part: Part
    role: Role
    text: str
    says: Term | int
    at_each_token: Term | None
    obligations: range


class Unproved(Exception):
    """A lemma or goal that could not be shown."""

    def __init__(self, text: str, obligation: Obligation | None, answer: Answer) -> None:
        self.text, self.obligation, self.answer = text, obligation, answer
        reason = "the solver found no proof" if answer == "unknown" else "it does not follow from what is known"
        super().__init__(f"{text}: {reason}")
