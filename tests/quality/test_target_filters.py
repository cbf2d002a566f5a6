"""The target rows that drafts are judged by are not the law that was asked for."""

from fractions import Fraction

import pytest

import fly_theory as ft
from tests.quality.verifiers import fractions, ratio_rule, refute


def filtered(row, keep):
    kept = [mass if keep(mass) else Fraction(0) for mass in row]
    return [mass / sum(kept) for mass in kept]


def greedy(target_probs, draft_probs, draft_tokens, rng):
    """Builds the law asked for, then takes its argmax."""
    return [max(range(len(target_probs[0])), key=target_probs[0].__getitem__)]


@pytest.mark.parametrize(("target", "tv"), [("1/2 1/3 1/6", "1/2"), ("2/5 3/10 3/10", "3/5")])
def test_sampling_or_temperature_is_forgotten(target, tv):
    wrong = " ".join(str(v) for v in [1, *[0] * (len(target.split()) - 1)])
    report = refute(greedy, drafter=fractions(target), target=fractions(target), wrong=wrong, right=target, tv=tv)
    assert report.tv == 1 - max(fractions(target))


def test_target_scored_with_default_parameters():
    raw, asked = fractions("1/2 1/4 1/4"), "2/3 1/3 0"
    report = refute(
        ratio_rule,
        drafter=fractions(asked),
        target=raw,
        goal=lambda p, q: fractions(asked),
        wrong="1/2 1/4 1/4",
        right=asked,
        tv="1/4",
    )
    support = report["support within the target"]
    assert support.outcome == "refuted"
    assert support.witness.got == {(2,): Fraction(1, 4)}
    assert report.max_ratio == float("inf")
    assert report.measures["kept"] == Fraction(3, 4)


def test_min_p_on_the_bonus_position_only():
    def min_p(row):
        return filtered(row, lambda mass: mass >= max(row) / 4)

    def verifier(target_probs, draft_probs, draft_tokens, rng):
        emitted = ratio_rule(target_probs, draft_probs, draft_tokens, rng)
        if len(emitted) <= len(draft_tokens):
            return emitted
        return [*draft_tokens, rng.choice(min_p(target_probs[-1]))]

    report = refute(
        verifier,
        drafter=fractions("1/3 1/3 1/3"),
        target=fractions("6/10 3/10 1/10"),
        goal=lambda p, q: min_p(p),
        wrong="6/10 3/10 1/10",
        right="2/3 1/3 0",
        tv="1/10",
    )
    without_drafts = report["K = 0 agrees with K > 0"]
    assert without_drafts.outcome == "refuted"
    assert without_drafts.witness.got == fractions("2/3 1/3 0")
    assert without_drafts.witness.expected == fractions("6/10 3/10 1/10")


@pytest.mark.parametrize(
    ("order", "right"),
    [("one after the other", "1 0 0 0"), ("on the raw row", "4/7 3/7 0 0")],
)
def test_the_order_of_filters_is_part_of_the_law_asked_for(order, right):
    def top_2(row):
        return filtered(row, lambda mass: mass >= sorted(row)[-2])

    def top_p(row, base):
        kept, reached = [], Fraction(0)
        for v in sorted(range(len(row)), key=lambda v: -base[v]):
            if reached < Fraction(1, 2):
                kept.append(v)
                reached += base[v]
        return [mass if v in kept else Fraction(0) for v, mass in enumerate(row)]

    def goal(p, q):
        row = top_2(p)
        left = top_p(row, row if order == "one after the other" else p)
        return [mass / sum(left) for mass in left]

    def verifier(target_probs, draft_probs, draft_tokens, rng):
        rows = [goal(row, None) for row in target_probs]
        return ratio_rule(rows, draft_probs, draft_tokens, rng)

    p, q = fractions("2/5 3/10 1/5 1/10"), fractions("1/4 1/4 1/4 1/4")
    assert ft.conformance(verifier, q, target=p, goal=goal).verdict == "lossless"
    other = fractions("4/7 3/7 0 0" if right == "1 0 0 0" else "1 0 0 0")
    report = ft.conformance(verifier, q, target=p, goal=lambda p, q: other, length=1)
    assert report["lossless"].witness.got == fractions(right)
