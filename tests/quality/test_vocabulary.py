"""Ids and rows of the wrong size, rows of NaN, rows that carry no probabilities."""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from tests.quality.verifiers import fractions, point_mass, ratio_rule, refute


def argmax_of_padded_scores(row, sentinel):
    """What a kernel's argmax over padded scores gives: the sentinel, where no comparison holds."""
    best, found = -np.inf, sentinel
    for v, score in enumerate(row):
        if score > best:
            best, found = score, v
    return found


@pytest.mark.parametrize(("repair", "said"), [(None, "id 2 is outside the vocabulary 0..1"), (0, "emits [0]")])
def test_nan_rows_give_an_id_instead_of_an_error(repair, said):
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        if np.isnan(target_probs.astype(float)).any():
            return [argmax_of_padded_scores(target_probs[0], len(target_probs[0]) if repair is None else repair)]
        return ratio_rule(target_probs, draft_probs, draft_tokens, rng)

    report = ft.conformance(verifier, fractions("3/4 1/4"), target=fractions("1/4 3/4"))
    assert report.verdict == "lossless"
    assert report["NaN in, error out"].outcome == "refuted"
    assert said in report["NaN in, error out"].detail


def test_nan_rows_give_an_error():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        if np.isnan(target_probs.astype(float)).any():
            msg = "target row holds NaN"
            raise ValueError(msg)
        return ratio_rule(target_probs, draft_probs, draft_tokens, rng)

    result = ft.conformance(verifier, length=1)["NaN in, error out"]
    assert (result.outcome, result.detail) == ("held", "raised ValueError: target row holds NaN")


def cut_to_the_smaller(target_probs, draft_probs, draft_tokens, rng):
    rows = target_probs[:, : draft_probs.shape[1]]
    return ratio_rule([row / row.sum() for row in rows], draft_probs, draft_tokens, rng)


def extended_with_zeros(target_probs, draft_probs, draft_tokens, rng):
    missing = target_probs.shape[1] - draft_probs.shape[1]
    rows = [[*row, *[0] * missing] for row in draft_probs]
    return ratio_rule(target_probs, rows, draft_tokens, rng)


def test_target_row_cut_to_the_draft_vocabulary():
    drafter, target = fractions("1/4 1/4 1/4 1/4"), fractions("1/2 1/4 1/8 0 1/8")
    report = refute(
        cut_to_the_smaller, drafter=drafter, target=target, wrong="4/7 2/7 1/7 0 0", right="1/2 1/4 1/8 0 1/8", tv="1/8"
    )
    assert report["support within the target"].outcome == "held"
    assert ft.conformance(extended_with_zeros, drafter, target=target, length=2).verdict == "lossless"


def test_rows_of_different_widths_crash_a_verifier():
    report = ft.conformance(ratio_rule, fractions("1/4 1/4 1/4 1/4"), target=fractions("1/2 1/4 1/8 0 1/8"), length=1)
    assert report.verdict == "invalid"
    assert "ValueError: zip()" in report["runs"].detail


def test_padded_ids_come_out():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        """Mixes in a little of the uniform law over the whole width."""
        rows = target_probs * Fraction(99, 100) + Fraction(1, 100 * target_probs.shape[1])
        return ratio_rule(rows, draft_probs, draft_tokens, rng)

    report = ft.conformance(verifier, fractions("1/2 1/2"), target=fractions("1/2 1/2"), length=1)
    assert report["lossless"].outcome == "refuted"
    padded = report["padded vocabulary"]
    assert padded.outcome == "refuted"
    assert padded.witness.got == fractions("199/400 199/400 1/400 1/400")


def test_greedy_candidates_carry_no_probabilities():
    """The ratio is 0/0 and nothing is accepted: the law is right, every draft is lost."""
    report = ft.conformance(ratio_rule, point_mass(0, 2), told=[0, 0], target=point_mass(0, 2), length=1)
    assert report["q^ is normalised"].detail == "q^ sums to 0"
    assert report.verdict == "lossless"
    rejecting = ft.conformance(rejects_nan, point_mass(0, 2), told=[0, 0], target=point_mass(0, 2), length=1)
    assert rejecting.verdict == "lossless but slower"
    assert (rejecting.measures["kept"], rejecting.measures["sum min(p, q)"]) == (0, 1)


def rejects_nan(target_probs, draft_probs, draft_tokens, rng):
    for i, x in enumerate(draft_tokens):
        p, q = target_probs[i], draft_probs[i]
        if not rng.random() < p[x] / q[x] or q[x] == 0:
            return [*draft_tokens[:i], rng.choice(np.maximum(p - q, 0))]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def test_padded_ids_come_out_in_the_middle_of_a_text():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        """Emits the last id of the whole width now and then, and goes on."""
        emitted = ratio_rule(target_probs, draft_probs, draft_tokens, rng)
        return [target_probs.shape[1] - 1, *emitted[1:]] if rng.random() < Fraction(1, 10) else emitted

    report = ft.conformance(verifier, fractions("1/2 1/2 0"), target=fractions("1/2 1/2 0"), length=3)
    assert report.verdict == "lossy"
    assert report["padded vocabulary"].outcome == "refuted"
    assert report["smallest ceiling kept"].outcome == "not applicable"
