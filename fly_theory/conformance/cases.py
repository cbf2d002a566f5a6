"""What a verifier is tried on: the rows it is handed, the drafts it meets, the law it must emit."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from fly_theory.conformance.guard import Inputs
from fly_theory.conformance.laws import Law, Row, Text, text_law
from fly_theory.conformance.numbers import exact_array

__all__ = ["Case", "Drafts"]

# Draft tokens (K,), or M candidate paths of K draft tokens each.
Drafts = Text | tuple[Text, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """One experiment, asked for a text of `positions` tokens.

    given : the target rows p that the verifier is handed
    told : the draft rows q^ that the verifier is handed
    drawn : the law q that drafted tokens are drawn from
    goal : the law that the emitted text must follow; `given`, unless the verifier warps its rows itself
    vocabulary : V
    draft_length : K
    positions : how many tokens of the emitted text are compared; a shorter emission is completed with the goal law
    eos : the token that ends a text
    candidates : fixed paths of K tokens that are handed over together, instead of one path drawn from `drawn`
    rounding : how far in TV the law may be off because the numbers given here are rounded
    drafted_goal : whether the goal depends on what was drafted, so that K = 0 has another one
    """

    given: Law
    told: Law
    drawn: Law
    goal: Law
    vocabulary: int
    draft_length: int
    positions: int
    eos: int | None = None
    candidates: tuple[Text, ...] | None = None
    rounding: Fraction = Fraction(0)
    drafted_goal: bool = False

    def drafts(self) -> Iterator[tuple[Fraction, Drafts]]:
        """The drafts that can occur, each with its probability."""
        if self.candidates is not None:
            yield Fraction(1), self.candidates
        else:
            for tokens, probability in text_law(self.drawn, self.draft_length).items():
                yield probability, tokens

    def inputs(self, drafts: Drafts) -> Inputs:
        """What the verifier is handed for these drafts, its rows as arrays of `Exact`."""
        if self.candidates is None:
            return self._path(drafts)  # type: ignore[arg-type]
        paths = [self._path(path) for path in drafts]  # type: ignore[arg-type]
        names = [field.name for field in dataclasses.fields(Inputs)]
        return Inputs(*(np.stack([getattr(path, name) for path in paths]) for name in names))

    def _path(self, tokens: Text) -> Inputs:
        prefixes = [tokens[:i] for i in range(len(tokens) + 1)]
        target = [self.given(prefix) for prefix in prefixes]
        draft = [self.told(prefix) for prefix in prefixes[:-1]]
        width = len(self.told(())) if self.draft_length else self.vocabulary
        return Inputs(_rows(target, self.vocabulary), _rows(draft, width), np.array(tokens, dtype=np.int64))

    @functools.cached_property
    def goal_law(self) -> Mapping[Text, Fraction]:
        """Law of the text that should be emitted."""
        return text_law(self.goal, self.positions, self.eos)

    def completed(self, emitted: Text) -> Mapping[Text, Fraction]:
        """Law of the text that starts with an emission: its first tokens, or the emission followed by the goal law.

        What the goal law cannot emit is not continued.
        """
        text = emitted[: self.positions]
        return text_law(self.goal, self.positions, self.eos, text) if self.is_possible(text) else {text: Fraction(1)}

    def is_possible(self, text: Text) -> bool:
        """Whether the goal law can emit a text that starts with these tokens."""
        return text in self._beginnings

    @functools.cached_property
    def _beginnings(self) -> frozenset[Text]:
        return frozenset(text[:i] for text in self.goal_law for i in range(len(text) + 1))

    def shown(self) -> Mapping[str, Any]:
        """This case as a witness shows it: p, q and, where it is another, q^ as one row, or one a prefix; and K."""
        laws = {"p": self.given, "q": self.drawn, "q^": self.told}
        rows = {name: self._rows_by_prefix(law, self.draft_length + (name == "p")) for name, law in laws.items()}
        if rows["q^"] == rows["q"] or self.draft_length == 0:
            del rows["q^"]
        shown: dict[str, Any] = {name: _one_or_all(found) for name, found in rows.items() if found}
        return {**shown, "K": self.draft_length}

    def _rows_by_prefix(self, law: Law, length: int) -> dict[Text, Row]:
        return {prefix: law(prefix) for size in range(length) for prefix in text_law(self.drawn, size)}


def _one_or_all(rows: Mapping[Text, Row]) -> Row | Mapping[Text, Row]:
    return next(iter(rows.values())) if len(set(rows.values())) == 1 else rows


def _rows(rows: list[Row], width: int) -> npt.NDArray[Any]:
    return exact_array((value for row in rows for value in row), (len(rows), width))
