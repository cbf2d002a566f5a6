"""After a rejection, the token is redrawn from the wrong law."""

from fractions import Fraction

import fly_theory as ft
from tests.quality.verifiers import first_rejection, fractions, point_mass, ratio_rule, ratio_test, refute


def test_redraw_from_the_target():
    verifier = first_rejection(ratio_test, lambda p, q, x, rng: rng.choice(p))
    report = refute(
        verifier, drafter=fractions("3/4 1/4"), target=fractions("1/2 1/2"), wrong="5/8 3/8", right="1/2 1/2", tv="1/8"
    )
    assert report.max_ratio == Fraction(5, 4)


def test_residual_reduced_at_the_rejected_token_only():
    def redraw(p, q, x, rng):
        return rng.choice([max(mass - q[x], 0) if v == x else mass for v, mass in enumerate(p)])

    refute(
        first_rejection(ratio_test, redraw),
        drafter=fractions("3/4 1/8 1/8"),
        target=fractions("1/4 1/2 1/4"),
        wrong="1/4 11/24 7/24",
        right="1/4 1/2 1/4",
        tv="1/24",
    )


def by_index(p, q, x, rng):
    """Pairs the two filtered lists, sorted by id, slot by slot."""
    kept = [v for v, mass in enumerate(p) if mass > 0]
    drafted = [v for v, mass in enumerate(q) if mass > 0]
    left = [max(p[v] - q[w], 0) for v, w in zip(kept, drafted, strict=True)]
    return kept[rng.choice([mass / sum(left) for mass in left])]


def test_residual_pairs_filtered_lists_by_index():
    refute(
        first_rejection(ratio_test, by_index),
        drafter=fractions("1/4 3/4 0 0"),
        target=fractions("1/2 0 0 1/2"),
        wrong="1 0 0 0",
        right="1/2 0 0 1/2",
        tv="1/2",
    )


def test_residual_by_index_without_mass_is_the_verifiers_error():
    verifier = first_rejection(ratio_test, by_index)
    report = ft.conformance(verifier, fractions("0 1/2 1/2"), target=fractions("1/2 0 1/2"), length=1)
    assert report.verdict == "invalid"
    assert not report.ok
    runs = report["runs"]
    assert "weights (nan, nan)" in runs.detail
    assert runs.witness.inputs["draft_tokens"] == (1,)


def test_recovery_zeroes_the_drafted_token_before_the_test():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        for i, x in enumerate(draft_tokens):
            target_probs[i, x] = 0
        return ratio_rule(target_probs, draft_probs, draft_tokens, rng)

    report = refute(
        verifier,
        drafter=point_mass(0, 3),
        target=fractions("1/2 1/4 1/4"),
        wrong="0 1/2 1/2",
        right="1/2 1/4 1/4",
        tv="1/2",
    )
    assert report["inputs left as they were"].detail == "writes to its inputs"
