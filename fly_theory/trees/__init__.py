"""Draft trees and the rules that verify them: several candidates a position, judged at once."""

from fly_theory.trees.amplification import Amplification, accept_set_law, amplify, independent_law, text_law
from fly_theory.trees.base import TreeLaw, TreeRule, Verdicts, Walk, expected_kept, first_token_law
from fly_theory.trees.builders import Drafted, branching, chain, merge, stack
from fly_theory.trees.expansion import Expansion, expand
from fly_theory.trees.laws import PositionLaw, TreeLengths, expected_lengths, joint_law, position_law
from fly_theory.trees.limits import optimal_acceptance, transport_acceptance
from fly_theory.trees.position import AtPosition
from fly_theory.trees.siblingwise import Siblingwise, siblingwise
from fly_theory.trees.tree import DRAWINGS, DraftTree, Drawing, Siblings

__all__ = [
    "DRAWINGS",
    "Amplification",
    "AtPosition",
    "DraftTree",
    "Drafted",
    "Drawing",
    "Expansion",
    "PositionLaw",
    "Siblings",
    "Siblingwise",
    "TreeLaw",
    "TreeLengths",
    "TreeRule",
    "Verdicts",
    "Walk",
    "accept_set_law",
    "amplify",
    "branching",
    "chain",
    "expand",
    "expected_kept",
    "expected_lengths",
    "first_token_law",
    "independent_law",
    "joint_law",
    "merge",
    "optimal_acceptance",
    "position_law",
    "siblingwise",
    "stack",
    "text_law",
    "transport_acceptance",
]
