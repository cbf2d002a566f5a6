"""Every invariant of block rules, alone: a rule that breaks it, and one that does not."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.blocks.base import FirstRejection, LongestPass, count_until_false
from fly_theory.errors import InvalidInput
from fly_theory.invariants import Violation, block_level
from fly_theory.invariants.block_level import STRUCTURAL, BlockInvariant, of_claim
from fly_theory.parameters import Interval, parameter
from fly_theory.registry import rule_class

SWAPPED = [["1/3", "2/3"]] * 2, [["2/3", "1/3"]] * 2
THREE = (
    [["1/2", "1/3", "1/6"], ["1/4", "1/4", "1/2"], [0, "1/2", "1/2"]],
    [["1/3", "1/3", "1/3"], ["1/2", "1/2", 0], ["1/6", "1/3", "1/2"]],
)


@dataclass(frozen=True)
class KeepsAll(FirstRejection):
    """Keeps every draft."""

    def passes(self, block):
        return array_namespace(block.target).ones_like(block.target_at_tokens)

    def next_token(self, block):
        return block.target


class Overconfident(KeepsAll):
    """A length law with more than one unit of mass."""

    def length_law(self, block):
        return super().length_law(block) * 2


class Speechless(KeepsAll):
    """No token to go on with."""

    def next_token(self, block):
        return block.target * 0


class Stutters(KeepsAll):
    """A law of the next token with half of its mass."""

    def next_token(self, block):
        return block.target / 2


class ForgetsTheBonus(KeepsAll):
    """No law of the token after the last draft."""

    def next_token(self, block):
        return block.judging


class Crashes(KeepsAll):
    def length_law(self, block):
        msg = "no luck"
        raise RuntimeError(msg)


class DecidesOtherwise(LongestPass):
    """Block verification whose decisions stop at the first failure, as a token rule's do."""

    block = ft.block_rule("block")

    def passes(self, block):
        return self.block.passes(block)

    def next_token(self, block):
        return self.block.next_token(block)

    def _decide(self, block, uniforms):
        return count_until_false(uniforms < self.passes(block))


@dataclass(frozen=True)
class Hesitant(KeepsAll):
    """Keeps a draft when its uniform is below `bar`."""

    bar: Fraction = parameter(Interval(0, 1), "bar", default=Fraction(1, 2), typical=(Fraction(1, 4), Fraction(1, 2)))

    def passes(self, block):
        return super().passes(block) * self.exact("bar")


def near(p, q):
    return 2


FORGOTTEN = "next token has shape (2, 1, 2), not (2, 2, 2)"
BROKEN = [
    (block_level.Answers(), Overconfident(), SWAPPED, 1, ("sum of the length law", (2, 2), (1, 1))),
    (block_level.Answers(), Speechless(), SWAPPED, 1, None),
    (block_level.Answers(), Stutters(), SWAPPED, 1, None),
    (block_level.Answers(), ForgetsTheBonus(), SWAPPED, 1, ("the answer", FORGOTTEN, "laws")),
    (block_level.Answers(), Crashes(), SWAPPED, 1, ("the answer", "RuntimeError: no luck", "laws")),
    (block_level.DecidesByLaw(), DecidesOtherwise(), SWAPPED, 2, None),
    (
        block_level.Lossless(),
        KeepsAll(),
        SWAPPED,
        1,
        (
            "law of the text",
            ((Fraction(2, 9), Fraction(4, 9)), (Fraction(1, 9), Fraction(2, 9))),
            ((Fraction(1, 9), Fraction(2, 9)), (Fraction(2, 9), Fraction(4, 9))),
        ),
    ),
    (block_level.Ceiling(Fraction(3, 2)), KeepsAll(), SWAPPED, 1, None),
    (block_level.FixedPoint(), Hesitant(), SWAPPED, 1, ("expected drafts kept", Fraction(1, 2), 1)),
    (block_level.ReducesTo("lossless", {"bar": 1}), Hesitant(), SWAPPED, 1, None),
    (
        block_level.KeepsAtLeast("lossless"),
        Hesitant(),
        SWAPPED,
        1,
        ("expected drafts kept", Fraction(1, 2), Fraction(2, 3)),
    ),
    (block_level.KeptMonotoneIn("bar", "smaller"), Hesitant(), SWAPPED, 1, None),
]
BROKEN_IDS = [f"{rule.spec} breaks {invariant.name}" for invariant, rule, *_ in BROKEN]


@pytest.mark.parametrize(("invariant", "rule", "pair", "draft_length", "found"), BROKEN, ids=BROKEN_IDS)
def test_a_faulty_rule_is_caught(invariant, rule, pair, draft_length, found):
    violation = invariant.examine(rule, *pair, draft_length)
    assert isinstance(violation, Violation)
    if found is not None:
        assert (violation.quantity, violation.got, violation.expected) == found


SOUND = [
    *((invariant, ft.block_rule("block")) for invariant in STRUCTURAL),
    (block_level.DecidesByLaw(), ft.block_rule("lenience:l=1/2")),
    (block_level.DecidesByLaw(), ft.block_rule("fly:theta=0.3,window=2")),
    (block_level.Lossless(), ft.block_rule("block")),
    (block_level.Lossless(), ft.block_rule("sample-match")),
    (block_level.Ceiling(near, "2"), ft.block_rule("lenience:l=1/2")),
    (block_level.Ceiling(2), ft.block_rule("sample-match:n=2")),
    (block_level.FixedPoint(), ft.block_rule("hierarchical-mincap")),
    (block_level.ReducesTo("block", {}), ft.block_rule("hierarchical")),
    (block_level.KeepsAtLeast("lossless"), ft.block_rule("block")),
    (block_level.KeptMonotoneIn("theta", "smaller"), ft.block_rule("fly:theta=0.3,window=2")),
]


@pytest.mark.parametrize(("invariant", "rule"), SOUND, ids=[f"{rule.spec}: {i.name}" for i, rule in SOUND])
@pytest.mark.parametrize("draft_length", [1, 2])
def test_a_sound_rule_passes_exactly_and_in_float64(invariant, rule, draft_length):
    for pair in (SWAPPED, THREE):
        assert invariant.examine(rule, *pair, draft_length) is None
        floats = (np.array([[float(Fraction(x)) for x in row] for row in rows]) for rows in pair)
        assert invariant.examine(rule, *floats, draft_length) is None


def test_every_invariant_is_covered_on_both_sides():
    kinds = {getattr(block_level, name) for name in block_level.__all__ if name[0].isupper()}
    kinds = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BlockInvariant)} - {BlockInvariant}
    assert {type(invariant) for invariant, *_ in BROKEN} == kinds
    assert {type(invariant) for invariant, _ in SOUND} == kinds


def test_every_claim_of_every_block_rule_has_an_invariant_of_the_same_name():
    from fly_theory.cli.catalogue import Entry

    for name in ft.rules(level="block"):
        for claim in Entry(name, "block", rule_class(name, level="block")).typical().claims:
            assert of_claim(claim).name == str(claim)


def test_claims_of_the_other_level_are_refused():
    with pytest.raises(InvalidInput, match="OnTheLine"):
        of_claim(ft.claims.OnTheLine())
