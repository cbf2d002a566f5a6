"""Several candidates a position: rows and residuals that belong to another sibling."""

from fractions import Fraction

import fly_theory as ft
from tests.quality.verifiers import fractions, refute

TARGET = [fractions("1/4 1/4 1/2"), fractions("0 1/2 1/2"), fractions("1/5 1/5 3/5")]


def walk(*, bonus_row=lambda tried: tried, counted_again=False):
    """Try one-token candidates in turn, each a point mass: accept with what p still has of it, then take it out of p.

    `bonus_row` picks the candidate whose row the bonus token is drawn from; `counted_again` takes the probability of a
    repeated candidate out of what is left once more.
    """

    def verifier(target_probs, draft_probs, draft_tokens, rng):
        p = list(target_probs[0, 0])
        mass, removed = Fraction(1), []
        for tried, (token,) in enumerate(draft_tokens.tolist()):
            if rng.random() * mass < p[token]:
                return [token, rng.choice(target_probs[bonus_row(tried), 1])]
            if token not in removed or counted_again:
                mass -= target_probs[0, 0][token]
            removed.append(token)
            p[token] = Fraction(0)
        return [rng.choice(p)]

    return verifier


def test_the_walk_itself_is_lossless():
    for candidates in ([[0]], [[0], [1]], [[1], [0], [2]], [[0], [0], [1]]):
        report = ft.conformance(walk(), TARGET[0], target=TARGET, candidates=candidates)
        assert report.verdict == "lossless", candidates


def test_bonus_from_the_row_of_the_first_sibling():
    """After the second sibling is accepted, the bonus token comes from the row below the first."""
    report = ft.conformance(walk(bonus_row=lambda tried: 0), TARGET[0], target=TARGET, candidates=[[0], [1]], length=2)
    assert report.verdict == "lossy"
    assert report.settings["method"] == "exact execution"
    # Token 1 is emitted with 1/4, and then (1/4, 1/4, 1/2) below 0 takes the place of (0, 1/2, 1/2) below 1.
    assert report.tv == Fraction(1, 4) * Fraction(1, 4)
    first_row_only = ft.conformance(
        walk(bonus_row=lambda tried: 0), TARGET[0], target=TARGET, candidates=[[0]], length=2
    )
    assert first_row_only.verdict == "lossless"


def test_residual_subtracted_twice_for_a_repeated_sibling():
    report = refute(
        walk(counted_again=True),
        drafter=TARGET[0],
        target=TARGET[0],
        candidates=[[0], [0], [1]],
        wrong="1/4 3/8 3/8",
        right="1/4 1/4 1/2",
        tv="1/8",
    )
    assert report["repeated candidate"].outcome == "refuted"


def test_a_repeat_is_found_even_where_no_candidate_is_repeated():
    report = ft.conformance(walk(counted_again=True), TARGET[0], target=TARGET[0], candidates=[[0], [1]], length=1)
    assert report["repeated candidate"].outcome == "refuted"


def one_coin(target_probs, draft_probs, draft_tokens, rng):
    """One coin for all siblings, which sums the target's probabilities up: a repeated one counts twice."""
    p, coin, total = target_probs[0, 0], rng.random(), Fraction(0)
    for (token,) in draft_tokens.tolist():
        total += p[token]
        if coin < total:
            return [token]
    tried = {token for (token,) in draft_tokens.tolist()}
    return [rng.choice([Fraction(0) if token in tried else x for token, x in enumerate(p)])]


def test_one_coin_counts_a_repeated_sibling_twice():
    repeated = {"drafter": TARGET[0], "target": TARGET[0], "wrong": "1/2 1/6 1/3", "right": "1/4 1/4 1/2", "tv": "1/4"}
    refute(one_coin, candidates=[[0], [0]], **repeated)
    report = ft.conformance(one_coin, TARGET[0], target=TARGET[0], candidates=[[0], [1]], length=1)
    assert report["repeated candidate"].outcome == "refuted"


def own_target_draw(target_probs, draft_probs, draft_tokens, rng):
    """Each candidate is compared with a target draw of its own."""
    drawn = 0
    for (token,) in draft_tokens.tolist():
        drawn = rng.choice(target_probs[0, 0])
        if drawn == token:
            return [token]
    return [drawn]


def test_a_repeated_candidate_gets_a_target_draw_of_its_own():
    refute(
        own_target_draw,
        drafter=TARGET[0],
        target=TARGET[0],
        candidates=[[0], [0]],
        wrong="7/16 3/16 3/8",
        right="1/4 1/4 1/2",
        tv="3/16",
    )
