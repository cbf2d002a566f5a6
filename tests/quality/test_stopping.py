"""A text goes on after its end."""

from fractions import Fraction

import fly_theory as ft
from fly_theory.conformance.metrics import check_stopping
from tests.quality.verifiers import ratio_rule

EOS, B = 1, 2
# The draft is EOS then B, always; the target ends the text with probability 1/2, and is sure of B after an end.
DRAFT = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
TARGET = [["1/4", "1/2", "1/4"], [0, 0, 1], ["1/2", 0, "1/2"]]


def stops(target_probs, draft_probs, draft_tokens, rng):
    emitted = ratio_rule(target_probs, draft_probs, draft_tokens, rng)
    return emitted[: emitted.index(EOS) + 1] if EOS in emitted else emitted


def looks_at_the_last_token_only(target_probs, draft_probs, draft_tokens, rng):
    return ratio_rule(target_probs, draft_probs, draft_tokens, rng)


def test_end_accepted_in_mid_block_does_not_stop():
    report = ft.conformance(looks_at_the_last_token_only, DRAFT, target=TARGET, eos=EOS, length=2)
    assert report.verdict == "lossy"
    after_the_end = report["support within the target"].witness.got
    assert after_the_end == {(EOS, B): Fraction(1, 2)}
    assert report.tv == Fraction(1, 2)


def test_a_text_cut_at_its_end_is_lossless():
    report = ft.conformance(stops, DRAFT, target=TARGET, eos=EOS, length=3)
    assert report.verdict == "lossless"
    assert report["lossless"].cases > 3


def test_without_an_end_the_same_text_is_right():
    assert ft.conformance(looks_at_the_last_token_only, DRAFT, target=TARGET, length=3).verdict == "lossless"


def test_texts_are_checked_for_what_follows_their_end():
    assert check_stopping([[0, 2, EOS], [0, EOS, EOS], [0, 2]], EOS).outcome == "held"
    result = check_stopping([[0, EOS], [0, EOS, B]], EOS)
    assert (result.outcome, result.witness.got) == ("refuted", (EOS, B))
