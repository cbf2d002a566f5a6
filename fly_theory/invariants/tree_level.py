"""Properties of tree rules: each judges one rule on one toy pair and topology, alone (`examine`) or inside `check`.

>>> import fly_theory as ft
>>> from fly_theory.invariants import tree_level
>>> swapped = [["1/3", "2/3"]] * 2, [["2/3", "1/3"]] * 2
>>> tree_level.Lossless().examine(ft.tree_rule("traversal"), *swapped, (0, 0, 1), "with-replacement")
>>> tree_level.Lossless().examine(ft.tree_rule("lenience:l=1/2"), *swapped, (0, 0), "deterministic").quantity
'law of the text'
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fly_theory import claims
from fly_theory.arrays import Array, array_namespace
from fly_theory.exact import exact
from fly_theory.invariants.base import Asked, RuleFailure, Violation, values
from fly_theory.invariants.look_up import look_up
from fly_theory.joint_law import target_law
from fly_theory.pairs import MarkovPair
from fly_theory.trees.base import TreeLaw, TreeRule
from fly_theory.trees.enumeration import all_trees, assignments, drafted_weights
from fly_theory.trees.laws import joint_law
from fly_theory.trees.tree import DraftTree, Drawing, Parents

__all__ = ["STRUCTURAL", "Answers", "DecidesByLaw", "Lossless", "TreeCase", "TreeInvariant", "of_claim"]


class TreeCase(Asked):
    """A tree rule with a topology and a drawing, on a pair whose next-token laws depend on the last token.

    target, draft : (V, V), row v after token v; exact arrays, or lists that `ft.exact` reads, or numpy float64 arrays

    Text starts after token 0, and is compared over one token more than the tree is deep.
    """

    def __init__(self, rule: TreeRule, target: Any, draft: Any, parents: Parents, drawing: Drawing) -> None:
        target, draft = (exact(x) if isinstance(x, list | tuple) else x for x in (target, draft))
        self.rule = rule
        self.parents, self.drawing = parents, drawing
        self.xp = array_namespace(target, draft)
        self.is_exact = bool(getattr(target, "is_exact", False))
        self.pair = MarkovPair(target, draft, self.array([int(token == 0) for token in range(target.shape[-1])]))

    @property
    def length(self) -> int:
        """How many tokens of text are compared."""
        return max(self.trees.depths) + 1

    @cached_property
    def text_law(self) -> Array:
        """Joint law (V,) * length of the emitted text."""
        return self.ask(lambda: joint_law(self.rule, self.pair, self.parents, self.length, drawing=self.drawing))

    @cached_property
    def target_text_law(self) -> Array:
        """Joint law (V,) * length of the target's text."""
        return target_law(self.pair, self.length)

    @cached_property
    def trees(self) -> DraftTree:
        """The B trees that the first round can draft, one a row."""
        tokens = assignments(len(self.parents), self.pair.vocabulary)
        before = np.concat([np.zeros_like(tokens[:, :1]), tokens], axis=-1)
        target, draft = self.pair.target[before], self.pair.draft[before]
        weights = drafted_weights(all_trees(target, draft, self.parents, self.drawing))
        possible = np.asarray(weights > self.tolerance)
        return DraftTree(target[possible], draft[possible], tokens[possible], self.parents, self.drawing)

    @cached_property
    def law(self) -> TreeLaw:
        """What the rule does with each of `trees`."""
        found: TreeLaw = self.ask(lambda: self.rule.law(self.trees))
        return found


class TreeInvariant:
    """A property of tree rules that one pair, topology and drawing can refute."""

    stride: ClassVar[int] = 1
    name: ClassVar[str]

    def applies(self, case: TreeCase) -> bool:
        """Whether the case says anything about this invariant."""
        return True

    def judge(self, case: TreeCase) -> Violation | None:
        """How the case breaks the invariant, or None where it holds."""
        raise NotImplementedError

    def examine(self, rule: TreeRule, target: Any, draft: Any, parents: Parents, drawing: Drawing) -> Violation | None:
        """Judge a rule on one pair, target (V, V) and draft (V, V), row v after token v, and one kind of tree."""
        case = TreeCase(rule, target, draft, parents, drawing)
        return self.judge(case) if self.applies(case) else None


@dataclass(frozen=True)
class Lossless(TreeInvariant):
    """The joint law of the emitted text, over repeated rounds, is the target's."""

    name: ClassVar[str] = "lossless"

    def judge(self, case: TreeCase) -> Violation | None:
        if case.differ(case.text_law, case.target_text_law):
            return Violation("law of the text", values(case.text_law), values(case.target_text_law))
        return None


@dataclass(frozen=True)
class Answers(TreeInvariant):
    """On every tree the round stops somewhere, and what is emitted there has a law."""

    name: ClassVar[str] = "answers with laws"

    def judge(self, case: TreeCase) -> Violation | None:
        try:
            stops, following = case.law
            _ = case.text_law
        except RuleFailure as failure:
            return Violation("the answer", str(failure), "laws")
        shape = (*case.trees.tokens.shape[:-1], len(case.parents) + 1)
        if tuple(stops.shape) != shape:
            return Violation("shape of the law of stops", tuple(stops.shape), shape)
        total = case.xp.sum(stops, axis=-1)
        if case.differ(total, case.xp.ones_like(total)) or bool(case.xp.any(stops < -case.tolerance)):
            return Violation("law of stops", values(stops), "a law")
        for node, rows in enumerate(following):
            mass = case.xp.sum(rows, axis=-1)
            reached = stops[..., node] > case.tolerance
            if case.differ(case.xp.where(reached, mass, 1), case.xp.ones_like(mass)):
                return Violation(f"sum of the next token's law at node {node}", values(mass), "1 where rounds stop")
        return None


@dataclass(frozen=True)
class DecidesByLaw(TreeInvariant):
    """`decide` stops at each node as often as its law says, over a grid of uniforms.

    A test that is passed below a threshold is right on all cells of the grid but those that the threshold cuts.
    """

    name: ClassVar[str] = "decisions follow the law"
    stride: ClassVar[int] = 3

    def applies(self, case: TreeCase) -> bool:
        return len(case.parents) <= 2

    def judge(self, case: TreeCase) -> Violation | None:
        cells = 24
        nodes = len(case.parents)
        middles = [2 * i + 1 for i in range(cells)]
        coins = case.array(list(itertools.product(middles, repeat=nodes))) / (2 * cells)
        decided = np.asarray(case.ask(lambda: case.rule.decide(case.trees, coins[:, None, :])))
        law = np.asarray(case.law.stops, dtype=float)
        found = np.stack([(decided == node).mean(axis=0) for node in range(nodes + 1)], axis=-1)
        if (np.abs(found - law) > nodes / cells).any():
            return Violation("how often decide stops at each node", found.tolist(), law.tolist(), relation="close to")
        return None


STRUCTURAL: tuple[TreeInvariant, ...] = (Answers(), DecidesByLaw())
"""What every tree rule owes, whatever it claims."""


def of_claim(claim: claims.Claim) -> TreeInvariant:
    """The invariant that refutes a claim of a tree rule.

    Raises
    ------
    InvalidInput
        For a claim that no invariant judges.
    """
    return look_up(claim, {claims.Lossless: Lossless}, level="tree")
