"""What the faulty verifiers of this folder are put together from, and how they are held against the log of faults."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import fly_theory as ft


def fractions(text: str) -> tuple[Fraction, ...]:
    """A row written as "1/2 1/4 1/4"."""
    return tuple(map(Fraction, text.split()))


def ratio_test(p: Any, q: Any, x: int, rng: Any) -> bool:
    """Accept with probability min(1, p(x)/q(x))."""
    return rng.random() * q[x] < p[x]


def residual(p: Any, q: Any, x: int, rng: Any) -> int:
    """Redraw from (p - q)+."""
    return rng.choice([max(a - b, 0) for a, b in zip(p, q, strict=True)])


def first_rejection(accept: Callable[..., bool], redraw: Callable[..., int]) -> Callable[..., list[int]]:
    """A verifier that tests drafts in order, redraws at the first that fails, and adds a bonus token if none does."""

    def verifier(target_probs: Any, draft_probs: Any, draft_tokens: Any, rng: Any) -> list[int]:
        for i, x in enumerate(draft_tokens):
            p, q = target_probs[i], draft_probs[i]
            if not accept(p, q, x, rng):
                return [*draft_tokens[:i], redraw(p, q, x, rng)]
        return [*draft_tokens, rng.choice(target_probs[-1])]

    return verifier


ratio_rule = first_rejection(ratio_test, residual)


def point_mass(x: int, size: int) -> list[int]:
    """The law of a draft that is always x."""
    return [int(v == x) for v in range(size)]


def refute(verifier: Any, *, target: Sequence[Any], wrong: str, right: str, tv: str, **settings: Any) -> ft.Report:
    """Find a verifier lossy with just this law of one emitted token in place of the right one."""
    report = ft.conformance(verifier, target=target, length=1, **settings)
    assert report.verdict == "lossy"
    assert not report.ok
    witness = report["lossless"].witness
    assert witness.got == fractions(wrong)
    assert witness.expected == fractions(right)
    assert report.tv == Fraction(tv)
    assert report.settings["method"] == "exact execution"
    return report
