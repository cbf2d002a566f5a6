"""Counter-based draws: known answers, uniformity, and counts that do not depend on how trials are batched.

False-alarm budget: seeds are fixed; under fresh seeds each statistical assertion fails with probability 1e-6.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import fly_theory as ft
import simulators
from fly_theory.errors import InvalidInput
from simulators.tally import _draw, looks, tally

P, Q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.1, 0.3, 0.4]


@dataclass(frozen=True)
class Digits:
    """Record which of 16 equal parts of [0, 1) each of the uniforms of two parts falls in."""

    uniforms: int = 3

    def outcomes(self, inputs):
        return {f"{part}.{i}": 16 for part in range(2) for i in range(self.uniforms)} | {"first two": 256}

    def numbers(self, inputs):
        return 8

    def trials(self, inputs, draw):
        digits = [jnp.floor(16 * draw(part)).astype(jnp.int64) for part in range(2)]
        recorded = {f"{part}.{i}": digits[part][i] for part in range(2) for i in range(self.uniforms)}
        return recorded | {"first two": 16 * digits[0][0] + digits[0][1]}


def test_words_are_those_of_threefry():
    # Salmon et al. 2011, Random123 known-answer file: threefry2x32, 20 rounds
    with jax.enable_x64(True):
        zero = _draw(jnp.zeros(2, jnp.uint32), jnp.zeros(1, jnp.int64), 2, 0)[:, 0] * 2.0**32
        assert [int(x) for x in zero] == [0x6B200159, 0x99BA4EFE]


def test_uniforms_are_uniform_and_independent():
    counts = tally(Digits(), (), trials=200_000, seed=3)
    for name, observed in counts.items():
        assert observed.sum() == 200_000
        assert stats.chisquare(observed).pvalue > 1e-6, name


def test_parts_and_places_do_not_share_uniforms():
    with jax.enable_x64(True):
        key, numbers = jnp.array([0, 7], jnp.uint32), jnp.arange(1000)
        drawn = np.concatenate([np.asarray(_draw(key, numbers, 3, part)) for part in range(4)])
    assert len(np.unique(drawn[[0, 1, 3, 4, 6, 7, 9, 10]])) > 7990  # 8,000 of 2**32: under 0.01 expected to coincide
    assert abs(np.corrcoef(drawn) - np.eye(12)).max() < 0.2


def test_counts_are_the_same_for_any_batch():
    reference = tally(Digits(), (), trials=100_000, seed=1, batch=100_000)
    for batch in (1_000, 777, 8_192, 99_999):
        counts = tally(Digits(), (), trials=100_000, seed=1, batch=batch)
        for name in reference:
            np.testing.assert_array_equal(counts[name], reference[name])


def test_more_trials_extend_fewer_and_seeds_differ():
    short, long = (tally(Digits(), (), trials=n, seed=1)["0.0"] for n in (5_000, 6_000))
    assert (long >= short).all()
    assert (tally(Digits(), (), trials=5_000, seed=2)["0.0"] != short).any()
    assert (tally(Digits(), (), trials=5_000, seed=1 + 2**32)["0.0"] != short).any()


def test_progress_is_told_and_ends_at_all_trials():
    told = []
    tally(Digits(), (), trials=2_500, seed=1, batch=1_000, progress=lambda done, of: told.append((done, of)))
    assert told == [(1_000, 2_500), (2_000, 2_500), (2_500, 2_500)]


def test_looks_double():
    assert looks(500) == [500]
    assert looks(9_000) == [1_000, 2_000, 4_000, 8_000, 9_000]
    assert looks(4_000) == [1_000, 2_000, 4_000]


def test_until_stops_at_the_first_look_that_is_tight_enough_whatever_the_batch():
    rule = ft.rule("lenience:l=0.5")
    found = [simulators.simulate(rule, (P, Q), 100_000, 0, until=0.03, batch=batch) for batch in (300, 50_000)]
    assert found[0].trials == found[1].trials
    assert found[0].estimates == found[1].estimates
    stopped = found[0]
    assert stopped.trials in looks(100_000)[:-1]
    assert stopped["acceptance"].width <= 0.03
    assert stopped["acceptance"].confidence == pytest.approx(1 - 0.01 / len(looks(100_000)))
    before = simulators.simulate(rule, (P, Q), stopped.trials // 2, 0, confidence=stopped["acceptance"].confidence)
    assert before["acceptance"].width > 0.03


def test_nothing_global_changes():
    with jax.enable_x64(False):
        narrow = simulators.simulate(ft.rule("lossless"), (P, Q), 2_000, 0)
        assert not jax.config.jax_enable_x64
    with jax.enable_x64(True):
        wide = simulators.simulate(ft.rule("lossless"), (P, Q), 2_000, 0)
        assert jax.config.jax_enable_x64
    assert narrow.estimates == wide.estimates


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trials": 1}, "trials=1 is not an integer from 2"),
        ({"trials": 10.0}, r"trials=10\.0"),
        ({"trials": 2**33}, "trials=8589934592"),
        ({"seed": -1}, "seed=-1"),
        ({"batch": 0}, "batch=0"),
        ({"confidence": 1.0}, r"confidence=1\.0"),
        ({"until": 0}, "until=0"),
        ({"mean_interval": "normal"}, "mean_interval='normal'"),
    ],
)
def test_bad_settings_are_named(change, says):
    settings = {"trials": 100, "seed": 0} | change
    with pytest.raises(InvalidInput, match=says):
        simulators.simulate(ft.rule("lossless"), (P, Q), **settings)
