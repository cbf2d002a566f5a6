"""The sequential test keeps its budget, and finds what it says it finds."""

import math

import numpy as np
import pytest

from fly_theory.conformance.sequential import Tally, detectable_tv, log_evidence, samples_for

LAW = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.2, (1, 1): 0.3}
TEXTS = list(LAW)


def evidence_along(rng, masses, chunks, size):
    tally = Tally(LAW, 2)
    largest = -math.inf
    for _ in range(chunks):
        tally.add([TEXTS[i] for i in rng.choice(len(TEXTS), size, p=masses)])
        largest = max(largest, tally.log_evidence)
    return largest


def test_evidence_exceeds_its_threshold_no_more_often_than_allowed():
    """Ville: P(sup evidence >= 20) <= 1/20; 150 runs give at most 7.5 on average, more than 20 with P < 1e-4."""
    rng = np.random.default_rng(1)
    crossings = sum(evidence_along(rng, list(LAW.values()), 20, 25) >= math.log(20) for _ in range(150))
    assert crossings <= 20


def test_expected_evidence_is_one():
    """Exactly, over all outcomes of six samples from a law of three tokens."""
    law = np.array([0.5, 0.3, 0.2])
    total = 0.0
    for a in range(7):
        for b in range(7 - a):
            counts = np.array([a, b, 6 - a - b], dtype=float)
            ways = math.factorial(6) / math.prod(math.factorial(int(c)) for c in counts)
            total += ways * np.prod(law**counts) * math.exp(log_evidence(counts, law))
    assert total == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("tv", [0.03, 0.1])
def test_detectable_deviations_are_found(tv):
    """Half of the runs move mass in the balanced direction, half in a random one; at 95 % power 12 misses are rare."""
    chance, rng = 1e-6, np.random.default_rng(2)
    tally = Tally(LAW, 2)
    samples = samples_for(tally, tv, chance)
    assert detectable_tv(tally, samples, chance) <= tv + 2e-3
    misses = 0
    for run in range(60):
        law = np.array(list(LAW.values()))
        direction = np.array([1, -1, -1, 1.0]) * law if run % 2 else rng.normal(size=4) * law
        direction -= law * direction.sum()
        deviating = law + direction * tv / (abs(direction).sum() / 2)
        assert (deviating >= 0).all()
        misses += evidence_along(rng, deviating, 8, samples // 8 + 1) < math.log(1 / chance)
    assert misses <= 12


def test_an_impossible_text_is_certain_evidence():
    tally = Tally({(0,): 1.0}, 1)
    tally.add([(0,)] * 10)
    assert tally.log_evidence == pytest.approx(0)
    tally.add([(1,)])
    assert tally.log_evidence == math.inf
    assert tally.frequencies() == {(0,): 10 / 11, (1,): 1 / 11}


def test_a_deviation_in_the_first_token_is_found_by_looking_at_it_alone():
    rng = np.random.default_rng(0)
    law = {(a, b, c): 1 / 64 for a in range(4) for b in range(4) for c in range(4)}
    joint, first = Tally(law, 3), Tally({(a,): 1 / 4 for a in range(4)}, 1)
    drawn = rng.choice(4, 1500, p=[0.33, 0.25, 0.21, 0.21])
    joint.add([(int(a), int(b), int(c)) for a, b, c in zip(drawn, *rng.integers(0, 4, (2, 1500)), strict=True)])
    first.add([(int(a),) for a in drawn])
    assert joint.log_evidence > first.log_evidence - math.log(3) - 1e-9


def test_intervals_hold_what_they_should():
    rng = np.random.default_rng(3)
    outside = 0
    for _ in range(300):
        tally = Tally(LAW, 2)
        tally.add([TEXTS[i] for i in rng.choice(4, 200, p=list(LAW.values()))])
        off = sum(abs(tally.frequencies().get(text, 0) - mass) for text, mass in LAW.items()) / 2
        outside += off > tally.radius(0.05)
    assert outside <= 15
