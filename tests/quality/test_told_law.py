"""The verifier is told a draft law q^ that drafts are not drawn from."""

from fractions import Fraction

import pytest

import fly_theory as ft
from tests.quality.verifiers import fractions, point_mass, ratio_rule, refute

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("told", "drawn", "target", "wrong", "tv"),
    [
        ("1/2 1/4 1/4", "2/3 1/3 0", "1/2 1/2 0", "2/3 1/3 0", "1/6"),
        ("2/5 1/5 2/5", "2/3 1/3 0", "1/5 4/5 0", "1/3 2/3 0", "2/15"),
    ],
)
def test_drafts_from_filtered_logits_are_judged_by_raw_ones(told, drawn, target, wrong, tv):
    report = refute(
        ratio_rule,
        drafter=fractions(drawn),
        told=fractions(told),
        target=fractions(target),
        wrong=wrong,
        right=target,
        tv=tv,
    )
    lost = fractions(told)[2]
    assert report["q^ has mass only where drafts are drawn"].detail.startswith(f"q^ gives mass {lost} to tokens")


def test_the_drafters_own_sampler_gives_it_away():
    def draw_from_top_two(row, rng):
        cut = sorted(row)[-2]
        return rng.choice([mass if mass >= cut else 0 for mass in row])

    report = ft.conformance(
        ratio_rule, draw_from_top_two, told=fractions("2/5 1/5 2/5"), target=fractions("1/5 4/5 0"), length=1
    )
    assert report["q^ has mass only where drafts are drawn"].witness.inputs["q"] == fractions("1/2 0 1/2")
    assert report.verdict == "lossy"


@pytest.mark.parametrize(
    ("told", "target", "wrong", "tv"),
    [
        ("3/4 1/4", "1/2 1/2", "2/3 1/3", "1/6"),
        ("3/5 1/5 1/5", "2/5 2/5 1/5", "2/3 1/3 0", "4/15"),
    ],
)
def test_draft_is_an_argmax_but_told_as_a_softmax(told, target, wrong, tv):
    def argmax(row, rng):
        return max(range(len(row)), key=row.__getitem__)

    report = refute(
        ratio_rule, drafter=argmax, told=fractions(told), target=fractions(target), wrong=wrong, right=target, tv=tv
    )
    finding = report["q^ is a point mass if the draft is one"]
    assert (finding.outcome, finding.detail) == ("refuted", "the draft is an argmax, q^ is not")


def test_both_repairs_of_the_argmax_draft_are_lossless():
    target = fractions("2/5 2/5 1/5")
    declared = ft.conformance(ratio_rule, point_mass(0, 3), target=target)
    sampled = ft.conformance(ratio_rule, fractions("3/5 1/5 1/5"), target=target)
    assert (declared.verdict, sampled.verdict) == ("lossless", "lossless")
    assert declared.measures["kept"] == Fraction(2, 5)


def test_draft_drawn_in_bfloat16_but_told_in_float32():
    drawn = torch.tensor([129 / 256, 127 / 256], dtype=torch.bfloat16)
    told = torch.tensor([0.5, 0.5], dtype=torch.float32)
    report = refute(
        ratio_rule,
        drafter=drawn,
        told=told,
        target=["1/4", "3/4"],
        wrong="129/512 383/512",
        right="1/4 3/4",
        tv="1/512",
    )
    finding = report["q^ has the dtype drafts are drawn in"]
    assert (finding.outcome, finding.detail) == ("refuted", "q^ is float32, drafts are drawn in bfloat16")


def test_draft_ids_mapped_to_one_target_id_overwrite_each_other():
    report = refute(
        ratio_rule,
        drafter=fractions("3/4 1/4"),
        told=fractions("1/4 1/4"),
        target=fractions("1/2 1/2"),
        wrong="3/4 1/4",
        right="1/2 1/2",
        tv="1/4",
    )
    assert report["q^ is normalised"].detail == "q^ sums to 1/2"
