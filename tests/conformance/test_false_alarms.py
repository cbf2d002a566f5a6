"""Two hundred seeded runs over lossless verifiers raise no alarm."""

import math
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.conformance.adapters import block_rule_verifier
from tests.quality.test_false_alarms import (
    distinct_children,
    exact_match,
    first_rejection,
    one_hot,
    ratio_rule,
    without_the_draft,
)

LOSSLESS = ("lossless", "lossless but slower")


def opaque(verifier):
    """The same verifier, its uniforms used in a way that only samples can follow."""

    def sampled(target_probs, draft_probs, draft_tokens, rng):
        math.log(rng.random() or 1e-300)
        return verifier(target_probs, draft_probs, draft_tokens, rng)

    return sampled


def random_row(rng, size):
    weights = rng.integers(0, 6, size)
    weights[rng.integers(size)] += 1
    return [Fraction(int(w), int(weights.sum())) for w in weights]


ours = {spec: block_rule_verifier(ft.block_rule(spec)) for spec in ("lossless", "block", "sample-match:n=1")}
theirs = {"ratio": ratio_rule, "match": exact_match, "one-hot": first_rejection(one_hot, without_the_draft)}


@pytest.mark.parametrize("name", [*ours, *theirs])
def test_exact_runs(name):
    """20 pairs each, of a random size."""
    for seed in range(20):
        rng = np.random.default_rng([seed, 0])
        size = int(rng.integers(2, 5))
        target, draft = ([random_row(rng, size) for _ in range(size)] for _ in range(2))
        report = ft.conformance({**ours, **theirs}[name], draft, target=target, length=2, seed=seed)
        assert report.verdict in LOSSLESS
        assert report.ok


def test_exact_runs_with_children():
    """20 lists of children of a random target."""
    for seed in range(20):
        rng = np.random.default_rng([seed, 1])
        size = int(rng.integers(2, 6))
        target = random_row(rng, size)
        children = [[int(v)] for v in rng.permutation(size)[: int(rng.integers(1, size))]]
        report = ft.conformance(distinct_children, target, target=target, candidates=children, seed=seed)
        assert report.verdict == "lossless"
        assert report.ok


@pytest.mark.parametrize("name", [*ours, *theirs])
def test_sampled_runs(name):
    """10 pairs each."""
    for seed in range(10):
        rng = np.random.default_rng([seed, 2])
        size = int(rng.integers(2, 4))
        target, draft = (random_row(rng, size) for _ in range(2))
        verifier = opaque({**ours, **theirs}[name])
        report = ft.conformance(verifier, draft, target=target, length=1, seed=seed, resolution=0.3)
        assert report.settings["method"] == "samples"
        assert report.verdict in LOSSLESS
        assert report.ok
