"""Theorems by name: what they state, what they are about, and how they are shown."""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fly_theory.claims import Claim
from fly_theory.errors import MissingExtra, unknown_name
from fly_theory.registry import rule_class

if TYPE_CHECKING:
    from proofs.search import Witness

__all__ = ["Subject", "Theorem", "find", "theorem", "theorems"]


@dataclass(frozen=True)
class Subject:
    """One claim of one rule: claims of a kind that the rule itself declares, or the claim that a function makes of it.

    `settings` fixes parameters; the others stay symbols in a proof and take typical values in a search.
    """

    rule: str
    claim: type[Claim] | Callable[[Any], Claim]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def claims(self, rule: Any) -> list[Claim]:
        """The claims, for a rule at its present parameters."""
        if isinstance(self.claim, type):
            return [claim for claim in rule.claims if isinstance(claim, self.claim)]
        return [self.claim(rule)]

    def refute(self, substitute: Any = None) -> "Witness | None":
        """The smallest counterexample found for the registered rule, or for a class or rule in its place."""
        from proofs import finite, search

        subject = substitute or rule_class(self.rule)
        found = search.refute(subject, self.settings, self.claims)
        for size in (2, 3):
            if found is None:
                _, model = finite.ask(self, size, substitute=subject)
                found = model and search.judged(subject, model)
        return found


@dataclass(frozen=True)
class Theorem:
    """A statement, what it is about, and how it is shown.

    `about` holds the claims that the theorem covers, and that a search tries to refute when the proof fails. A
    statement with no proof is known to be false: it is kept with its counterexample. `chapter` is what the file of
    the proof says.
    """

    name: str
    statement: str
    latex: str
    about: Sequence[Subject]
    proof: Callable[..., None] | None
    explanation: str
    chapter: str = ""

    @property
    def expected(self) -> Literal["proved", "refuted"]:
        """What it should come out as."""
        return "proved" if self.proof else "refuted"


_known: dict[str, Theorem] = {}


def theorem(
    name: str, statement: str, latex: str, *about: Subject
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the decorated function `proof(d)`, d a `Derivation`, as the proof of a theorem."""

    def register(proof: Callable[..., None]) -> Callable[..., None]:
        explanation, chapter = inspect.getdoc(proof) or "", inspect.getmodule(proof).__doc__ or ""
        _known[name] = Theorem(name, statement, latex, about, proof, explanation, chapter)
        return proof

    return register


def false_statement(name: str, statement: str, latex: str, about: Subject, explanation: str) -> None:
    """Register a statement that is kept because it is false."""
    _known[name] = Theorem(name, statement, latex, (about,), None, explanation)


def theorems() -> tuple[str, ...]:
    """Names of all theorems and of all statements known to be false, in the order of the book.

    Raises
    ------
    MissingExtra
        When the solvers are not installed.
    """
    from proofs.book import CHAPTERS

    try:
        for chapter in CHAPTERS:
            importlib.import_module(f"proofs.book.{chapter}")
    except ModuleNotFoundError as error:
        msg = f"proofs need the package {error.name!r}; install it with: pip install 'fly-theory[prove]'"
        raise MissingExtra(msg) from error
    return tuple(_known)


def find(name: str) -> Theorem:
    """The theorem of that name.

    Raises
    ------
    UnknownName
        With the nearest names.
    """
    names = theorems()
    if name not in names:
        raise unknown_name(name, kind="theorem", known=names)
    return _known[name]
