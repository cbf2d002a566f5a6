"""A draft gets more than one chance to match a draw from the target."""

from fractions import Fraction

import pytest

import fly_theory as ft
from tests.quality.verifiers import first_rejection, fractions, point_mass, refute


def failed_draw_thrown_away(p, q, x, rng):
    return rng.choice(p) == x


def test_a_failed_draw_is_thrown_away():
    verifier = first_rejection(failed_draw_thrown_away, lambda p, q, x, rng: rng.choice(p))
    report = refute(
        verifier,
        drafter=point_mass(0, 3),
        target=fractions("1/2 1/4 1/4"),
        wrong="3/4 1/8 1/8",
        right="1/2 1/4 1/4",
        tv="1/4",
    )
    assert report.max_ratio == Fraction(3, 2)


def either_of_two(target_probs, draft_probs, draft_tokens, rng):
    for i, x in enumerate(draft_tokens):
        first, second = rng.choice(target_probs[i]), rng.choice(target_probs[i])
        if x not in (first, second):
            return [*draft_tokens[:i], first]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def test_either_of_two_draws_may_match():
    refute(
        either_of_two,
        drafter=point_mass(0, 3),
        target=fractions("1/2 1/4 1/4"),
        wrong="3/4 1/8 1/8",
        right="1/2 1/4 1/4",
        tv="1/4",
    )


@pytest.mark.parametrize(("bound", "outcome"), [(Fraction(3, 2), "held"), (Fraction(7, 5), "refuted")])
def test_two_draws_keep_the_ceiling_two_minus_p(bound, outcome):
    claim = ft.claims.Ceiling(bound)
    report = ft.conformance(either_of_two, point_mass(0, 3), target=fractions("1/2 1/4 1/4"), claims=[claim], length=3)
    assert report[str(claim)].outcome == outcome
    assert report.ok is (outcome == "held")


def a_draw_for_each_row(target_probs, draft_probs, draft_tokens, rng):
    """Each path draws its own target tokens; the longest match wins, the first among equals, and a new draw follows."""
    matches = []
    for row, path in enumerate(draft_tokens):
        length = 0
        while length < len(path) and rng.choice(target_probs[row, length]) == path[length]:
            length += 1
        matches.append(length)
    best = max(range(len(matches)), key=matches.__getitem__)
    return [*draft_tokens[best][: matches[best]], rng.choice(target_probs[best, matches[best]])]


def test_every_path_draws_for_the_node_it_shares():
    report = refute(
        a_draw_for_each_row,
        drafter=fractions("1/2 1/4 1/4"),
        candidates=[[0], [1]],
        target=fractions("1/2 1/4 1/4"),
        wrong="11/16 7/32 3/32",
        right="1/2 1/4 1/4",
        tv="3/16",
    )
    assert report["repeated candidate"].outcome == "refuted"


def own_draws_survive(target_probs, draft_probs, draft_tokens, rng):
    """Every row keeps its own draw; the first row whose draw matches wins, else the first row's draw is emitted."""
    drawn = [rng.choice(rows[0]) for rows in target_probs]
    for token, path in zip(drawn, draft_tokens, strict=True):
        if token == path[0]:
            return [token]
    return [drawn[0]]


def one_draw_a_prefix(target_probs, draft_probs, draft_tokens, rng):
    """Rows with equal prefixes share one draw."""
    drawn: dict[tuple[int, ...], int] = {}
    best: tuple[int, ...] = ()
    for rows, path in zip(target_probs, draft_tokens.tolist(), strict=True):
        prefix: tuple[int, ...] = ()
        while True:
            if prefix not in drawn:
                drawn[prefix] = rng.choice(rows[len(prefix)])
            if len(prefix) == len(path) or drawn[prefix] != path[len(prefix)]:
                break
            prefix = (*prefix, path[len(prefix)])
        best = max(best, (*prefix, drawn[prefix]), key=len)
    return list(best)


def test_a_row_survives_once_for_every_copy_of_its_prefix():
    paths, p = [[0], [0], [0], [1]], fractions("1/2 1/2")
    refute(own_draws_survive, drafter=p, candidates=paths, target=p, wrong="7/8 1/8", right="1/2 1/2", tv="3/8")


def test_one_draw_a_prefix_is_the_repair():
    a, b, c, d, e, f = range(6)
    target = [fractions("1/2 0 0 0 1/2 0"), *[fractions("0 1/4 1/4 1/4 0 1/4")] * 5]
    report = ft.conformance(
        one_draw_a_prefix,
        fractions("1/6 1/6 1/6 1/6 1/6 1/6"),
        target=target,
        candidates=[[a, b], [a, c], [a, d], [e, f]],
    )
    assert report.verdict == "lossless"
    assert report["repeated candidate"].outcome == "held"
