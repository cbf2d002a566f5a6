"""Random numbers that are missing, shared, or drawn from elsewhere."""

import random

import numpy as np
import pytest

import fly_theory as ft
from tests.quality.verifiers import first_rejection, fractions, point_mass, ratio_rule, ratio_test, refute


def noise_of_zeros(p, q, x, rng):
    """Argmax of the residual over noise that was never drawn: 0/0 is NaN, which argmax prefers."""
    left = np.maximum(np.asarray(p - q, dtype=float), 0)
    return int(np.argmax(left / np.zeros(len(left))))


never_filled = first_rejection(ratio_test, noise_of_zeros)


def test_noise_was_never_drawn():
    refute(
        never_filled,
        drafter=fractions("3/4 1/4"),
        target=fractions("1/4 3/4"),
        wrong="3/4 1/4",
        right="1/4 3/4",
        tv="1/2",
    )


class FirstRequestOnly:
    """A batch in which only the first request, the seeded one, gets its noise."""

    def __call__(self, *arguments):
        return ratio_rule(*arguments)

    def batch(self, target_probs, draft_probs, draft_tokens, rng):
        rows = zip(
            [ratio_rule, *[never_filled] * (len(draft_tokens) - 1)],
            target_probs,
            draft_probs,
            draft_tokens,
            strict=True,
        )
        return [verifier(p, q, tokens, rng) for verifier, p, q, tokens in rows]


def test_noise_is_drawn_for_one_request_of_the_batch():
    report = ft.conformance(FirstRequestOnly(), fractions("3/4 1/4"), target=fractions("1/4 3/4"), length=1)
    assert report["requests in a batch"].outcome == "refuted"
    assert report.verdict == "lossy"
    # The second request is the first with its ids in reverse order: it emits its draft law as well.
    found = report["requests in a batch"].witness.got
    assert {token: sum(mass for text, mass in found.items() if text[1] == token) for token in (2, 3)} == {
        2: fractions("1/4")[0],
        3: fractions("3/4")[0],
    }


class OneCoinForTheBatch:
    """A batch whose requests share their uniforms: each is right alone, together they are not independent."""

    def __call__(self, *arguments):
        return self.batch(*(argument[None] for argument in arguments[:3]), arguments[3])[0]

    def batch(self, target_probs, draft_probs, draft_tokens, rng):
        coins = [rng.random() for _ in range(draft_tokens.shape[1])]
        emitted = []
        for p, q, tokens in zip(target_probs, draft_probs, draft_tokens, strict=True):
            kept = 0
            while kept < len(tokens) and coins[kept] * q[kept, tokens[kept]] < p[kept, tokens[kept]]:
                kept += 1
            row = p[kept] if kept == len(tokens) else np.maximum(p[kept] - q[kept], 0)
            emitted.append([*tokens[:kept], rng.choice(row)])
        return emitted


def test_requests_share_their_uniforms():
    report = ft.conformance(OneCoinForTheBatch(), length=2)
    assert report["lossless"].outcome == "refuted"
    assert report["requests in a batch"].outcome == "refuted"
    assert all(
        report[name].outcome == "held" for name in ("K = 0 agrees with K > 0", "padded vocabulary", "renamed ids")
    )


def test_seed_of_the_request_is_ignored():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        class Elsewhere:
            random = staticmethod(random.random)
            choice = staticmethod(lambda weights: random.choices(range(len(weights)), list(map(float, weights)))[0])

        return ratio_rule(target_probs, draft_probs, draft_tokens, Elsewhere)

    report = ft.conformance(verifier, point_mass(0, 2), target=fractions("1/2 1/2"), length=1, resolution=0.1)
    assert report["same seed, same answer"].outcome == "refuted"
    assert report.settings["method"] == "samples"
    assert report.verdict == "lossless"


def test_test_and_redraw_share_a_uniform():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        for i, x in enumerate(draft_tokens):
            p, q, u = target_probs[i], draft_probs[i], rng.random()
            if u * q[x] >= p[x]:
                left = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
                cumulative = 0
                for v, mass in enumerate(left):
                    cumulative += mass
                    if u * sum(left) < cumulative:
                        return [*draft_tokens[:i], v]
        return [*draft_tokens, rng.choice(target_probs[-1])]

    report = ft.conformance(verifier)
    assert report.verdict == "lossy"
    assert report["one uniform a decision"].outcome == "refuted"
    assert report["one uniform a decision"].detail.startswith("uniform 0 is read by lines")


def test_positions_share_a_uniform():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        class OneCoin:
            coin = rng.random()
            choice = rng.choice

            def random(self):
                return self.coin

        return ratio_rule(target_probs, draft_probs, draft_tokens, OneCoin())

    assert ft.conformance(verifier, length=1).verdict == "lossless"
    report = ft.conformance(verifier)
    assert report.verdict == "lossy"
    assert report["one uniform a decision"].detail == "uniform 0 decides on draft tokens 1 and 2"


def by_inverse_cdf(target_probs, draft_probs, draft_tokens, rng):
    """Draws the target's token with one uniform, several comparisons a draw, and goes on while it is the draft."""
    for i, row in enumerate(target_probs):
        u, reached, drawn = rng.random(), row[0], 0
        while u >= reached:
            drawn += 1
            reached += row[drawn]
        if i == len(draft_tokens) or drawn != draft_tokens[i]:
            return [*draft_tokens[:i], drawn]
    raise AssertionError


@pytest.mark.parametrize("verifier", [ratio_rule, by_inverse_cdf])
def test_separate_uniforms_are_not_called_shared(verifier):
    report = ft.conformance(verifier, length=2)
    assert report["one uniform a decision"].outcome == "held"
    assert report.ok
