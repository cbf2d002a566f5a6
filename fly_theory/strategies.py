"""Hypothesis strategies over rational simplex pairs: what `check` searches, and what a rule's own tests can draw from.

Distributions are tuples of Fractions that sum to one. They shrink towards few tokens and small denominators.
"""

from fractions import Fraction

from hypothesis import strategies as st

__all__ = ["Chain", "Distribution", "Pair", "chains", "distributions", "pairs"]

Distribution = tuple[Fraction, ...]
Pair = tuple[Distribution, Distribution]
Chain = tuple[int, tuple[Distribution, ...], tuple[Distribution, ...]]


def distributions(size: int, *, max_weight: int = 9) -> st.SearchStrategy[Distribution]:
    """Distributions over `size` tokens: integer weights up to `max_weight`, normalised; zeros and ties are common."""
    return st.lists(st.integers(0, max_weight), min_size=size, max_size=size).map(_normalised)


@st.composite
def pairs(draw: st.DrawFn, *, max_size: int = 5, max_weight: int = 9) -> Pair:
    """A target p and a draft q over one vocabulary: unrelated, equal, rearranged, of disjoint supports, or close."""
    size = draw(st.integers(1, max_size))
    p = draw(distributions(size, max_weight=max_weight))
    relation = draw(st.sampled_from(["unrelated", "unrelated", "equal", "rearranged", "disjoint", "close"]))
    match relation:
        case "equal":
            return p, p
        case "rearranged":
            return p, tuple(draw(st.permutations(p)))
        case "disjoint":
            q = draw(distributions(size, max_weight=max_weight))
            return p, _normalised([0 if a else b.numerator for a, b in zip(p, q, strict=True)], at=p.index(min(p)))
        case "close":
            moved = draw(distributions(size, max_weight=max_weight))
            return p, tuple((3 * a + b) / 4 for a, b in zip(p, moved, strict=True))
    return p, draw(distributions(size, max_weight=max_weight))


@st.composite
def chains(draw: st.DrawFn, *, max_size: int = 3, max_draft_length: int = 3, max_weight: int = 4) -> Chain:
    """A draft length K, and the rows of a target and a draft whose next-token laws depend on the last token."""
    draft_length, size = draw(st.integers(1, max_draft_length)), draw(st.integers(1, max_size))
    rows = st.lists(distributions(size, max_weight=max_weight), min_size=size, max_size=size).map(tuple)
    return draft_length, draw(rows), draw(rows)


def _normalised(weights: list[int], *, at: int = 0) -> Distribution:
    """Weights as a distribution; where all are zero, the point mass `at` one token."""
    total = sum(weights)
    if total == 0:
        return tuple(Fraction(i == at) for i in range(len(weights)))
    return tuple(Fraction(weight, total) for weight in weights)
