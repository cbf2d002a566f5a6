"""Changes to an experiment that must not change the answer, or must change it in a known way."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fly_theory.conformance.cases import Case, Drafts
from fly_theory.conformance.guard import Inputs, Verifier
from fly_theory.conformance.laws import Law, Row, Text
from fly_theory.errors import VerifierError

__all__ = ["Batch", "first_of_each", "renamed", "repeated", "reversed_ids", "undrafted", "widened"]

# batch(target_probs (B, K+1, V), draft_probs (B, K, V), draft_tokens (B, K), rng) -> B lists of token ids
BatchVerifier = Callable[[Any, Any, Any, Any], Any]


def undrafted(case: Case) -> Case:
    """The same request with nothing drafted, K = 0: its one token must have the same law."""
    return replace(case, draft_length=0, positions=1, candidates=None)


def widened(case: Case, extra: int) -> Case:
    """The vocabulary padded with ids that neither law gives any mass."""

    def pad(law: Law) -> Law:
        return lambda text: law(text) + (Fraction(0),) * extra

    return replace(_with_laws(case, pad), vocabulary=case.vocabulary + extra)


def reversed_ids(case: Case) -> Case:
    """The ids renamed in reverse order: id v becomes V-1-v."""
    last = case.vocabulary - 1

    def rename(law: Law) -> Law:
        return lambda text: law(tuple(last - token for token in text))[::-1]

    candidates = case.candidates and tuple(tuple(last - token for token in path) for path in case.candidates)
    return replace(_with_laws(case, rename), candidates=candidates)


def _with_laws(case: Case, change: Callable[[Law], Law]) -> Case:
    given, told, drawn, goal = map(change, (case.given, case.told, case.drawn, case.goal))
    return replace(case, given=given, told=told, drawn=drawn, goal=goal)


def renamed(law: Mapping[Text, Any], vocabulary: int) -> dict[Text, Any]:
    """A law of texts after the renaming of `reversed_ids`."""
    return {tuple(vocabulary - 1 - token for token in text): mass for text, mass in law.items()}


def repeated(case: Case) -> Iterator[Case]:
    """The candidates with one of them handed over twice."""
    paths = case.candidates or ()
    for path in paths:
        yield replace(case, candidates=(path, *paths))
        yield replace(case, candidates=(*paths, path))


@dataclass(frozen=True, eq=False)
class Batch(Case):
    """Two requests in one batch, seen by the first token of each; the second one's ids are shifted by V."""

    requests: tuple[Case, ...] = ()

    @classmethod
    def of(cls, first: Case, second: Case) -> "Batch":
        """The batch of these two, of one vocabulary."""
        vocabulary, nothing = first.vocabulary, (Fraction(0),) * first.vocabulary

        def goal(text: Text) -> Row:
            return nothing + second.goal(()) if text else first.goal(()) + nothing

        rounding = first.rounding + second.rounding
        return cls(
            *(first.given, first.told, first.drawn, goal),
            vocabulary=2 * vocabulary,
            draft_length=first.draft_length,
            positions=2,
            rounding=rounding,
            requests=(first, second),
        )

    def drafts(self) -> Iterator[tuple[Fraction, Drafts]]:
        """The drafts of both requests, drawn independently."""
        for (weight, drafts), (other_weight, other) in itertools.product(*(case.drafts() for case in self.requests)):
            yield weight * other_weight, (drafts, other)  # type: ignore[misc]

    def inputs(self, drafts: Drafts) -> Inputs:
        """The inputs of both requests, stacked."""
        handed = [case.inputs(tokens) for case, tokens in zip(self.requests, drafts, strict=True)]  # type: ignore[arg-type]
        return Inputs(
            np.stack([each.target_probs for each in handed]),
            np.stack([each.draft_probs for each in handed]),
            np.stack([each.draft_tokens for each in handed]),
        )


def first_of_each(batch: BatchVerifier) -> Verifier:
    """A verifier of a `Batch` of two: the first token of each request."""

    def verifier(target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[Any]:
        rows = list(batch(target_probs, draft_probs, draft_tokens, rng))
        if len(rows) != len(target_probs) or not all(len(row) for row in rows):
            msg = f"returned {rows!r} for a batch of {len(target_probs)} requests"
            raise VerifierError(msg)
        vocabulary = target_probs.shape[-1]
        return [row[0] + i * vocabulary for i, row in enumerate(rows)]

    return verifier
