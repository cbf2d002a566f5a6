"""Properties of block rules, one a file: each judges one rule on one toy pair, alone (`examine`) or inside `check`.

>>> import fly_theory as ft
>>> from fly_theory.invariants import block_level
>>> swapped = [["1/3", "2/3"]] * 2, [["2/3", "1/3"]] * 2
>>> block_level.Lossless().examine(ft.block_rule("block"), *swapped, draft_length=2)
>>> block_level.Lossless().examine(ft.block_rule("lenience:l=1/2"), *swapped, draft_length=1).quantity
'law of the text'
"""

from fly_theory import claims
from fly_theory.blocks import claims as block_claims
from fly_theory.invariants.block_level.answers import Answers
from fly_theory.invariants.block_level.case import BlockCase, BlockInvariant
from fly_theory.invariants.block_level.ceiling import Ceiling
from fly_theory.invariants.block_level.decides_by_law import DecidesByLaw
from fly_theory.invariants.block_level.fixed_point import FixedPoint
from fly_theory.invariants.block_level.keeps_at_least import KeepsAtLeast
from fly_theory.invariants.block_level.kept_monotone import KeptMonotoneIn
from fly_theory.invariants.block_level.lossless import Lossless
from fly_theory.invariants.block_level.reduces_to import ReducesTo
from fly_theory.invariants.look_up import look_up

__all__ = [
    "STRUCTURAL",
    "Answers",
    "BlockCase",
    "BlockInvariant",
    "Ceiling",
    "DecidesByLaw",
    "FixedPoint",
    "KeepsAtLeast",
    "KeptMonotoneIn",
    "Lossless",
    "ReducesTo",
    "of_claim",
]

STRUCTURAL: tuple[BlockInvariant, ...] = (Answers(), DecidesByLaw())
"""What every block rule owes, whatever it claims."""

_OF_CLAIM: dict[type[claims.Claim], type[BlockInvariant]] = {
    claims.Lossless: Lossless,
    claims.Ceiling: Ceiling,
    claims.FixedPoint: FixedPoint,
    claims.ReducesTo: ReducesTo,
    block_claims.KeepsAtLeast: KeepsAtLeast,
    block_claims.KeptMonotoneIn: KeptMonotoneIn,
}


def of_claim(claim: claims.Claim) -> BlockInvariant:
    """The invariant that refutes a claim of a block rule.

    Raises
    ------
    InvalidInput
        For a claim that no invariant judges.
    """
    return look_up(claim, _OF_CLAIM, level="block")
