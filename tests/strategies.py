"""Float64 (p, q) pairs and rule parameters for property tests, in the regimes where verifiers go wrong."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fly_theory.parameters import Choice, Flag, Integers, Interval, parameters
from fly_theory.registry import rule_class, rules


@st.composite
def simplex_points(draw: st.DrawFn, size: int) -> np.ndarray:
    """A distribution over `size` tokens: integer weights (zeros, ties, point masses) or heavily skewed reals."""
    if draw(st.booleans()):
        weights = np.array(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)), dtype=float)
    else:
        logits = np.array(draw(st.lists(st.floats(-30, 30), min_size=size, max_size=size)))
        weights = np.exp(logits - logits.max())
    if not weights.any():
        weights[draw(st.integers(0, size - 1))] = 1.0
    return weights / weights.sum()


@st.composite
def pairs(draw: st.DrawFn, max_size: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """A target p and a draft q (V,): independent, equal, near-duplicates, disjoint supports, or one a point mass."""
    size = draw(st.integers(2, 8) | st.integers(2, max_size))
    p = draw(simplex_points(size))
    regime = draw(st.sampled_from(["independent", "equal", "near", "disjoint", "point mass"]))
    if regime == "equal":
        return p, p.copy()
    if regime == "near":
        noise = np.array(draw(st.lists(st.floats(-1e-9, 1e-9), min_size=size, max_size=size)))
        q = np.abs(p * (1 + noise))
        return p, q / q.sum()
    q = draw(simplex_points(size))
    if regime == "disjoint":
        cut = draw(st.integers(1, size - 1))
        p, q = p.copy(), q.copy()
        p[cut:], q[:cut] = 0, 0
        p[0] += not p.any()
        q[-1] += not q.any()
        return p / p.sum(), q / q.sum()
    if regime == "point mass":
        q = np.eye(size)[draw(st.integers(0, size - 1))]
    return p, q


def values(domain: Any, typical: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """Values of a declared domain, its typical ones among them."""
    match domain:
        case Interval(low=low, high=high, low_open=low_open):
            low, high = float(-2 if low is None else low), float(2 if high is None else high)
            reals = st.floats(low, high, exclude_min=low_open).filter(
                lambda x: abs(x) > 1e-3 or (x == 0 and not low_open)
            )
            return st.sampled_from(typical) | reals if typical else reals
        case Integers(low=low, high=high):
            return st.integers(low, low + 5 if high is None else high)
        case Choice(options=options):
            return st.sampled_from(options)
        case Flag():
            return st.booleans()
    raise AssertionError(domain)


@st.composite
def rule_objects(draw: st.DrawFn, names: tuple[str, ...] | None = None) -> Any:
    """A registered token-level rule with parameters from their declared domains."""
    cls = rule_class(draw(st.sampled_from(names or rules(level="token"))))
    return cls(**{p.name: draw(values(p.domain, p.typical)) for p in parameters(cls)})
