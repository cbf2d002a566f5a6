"""A tree rule at one position with a fixed number of candidates, seen from outside as a rule of one token."""

from dataclasses import dataclass

from fly_theory.arrays import Array
from fly_theory.claims import Claim, Lossless
from fly_theory.trees.base import TreeRule
from fly_theory.trees.laws import position_law
from fly_theory.trees.tree import Drawing

__all__ = ["AtPosition"]


@dataclass(frozen=True)
class AtPosition:
    """What figures and tables ask of a rule, for `drafts` candidates from q (V,) under the target p (V,)."""

    rule: TreeRule
    drafts: int
    drawing: Drawing

    @property
    def spec(self) -> str:
        """The SPEC of the tree rule."""
        return self.rule.spec

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Those claims of the rule that hold for the emitted token."""
        return tuple(claim for claim in self.rule.claims if isinstance(claim, Lossless))

    def acceptance(self, p: Array, q: Array) -> Array:
        """Probability () that a candidate is kept."""
        return position_law(self.rule, p, q, self.drafts, drawing=self.drawing).acceptance

    def induced(self, p: Array, q: Array) -> Array:
        """Law (V,) of the emitted token."""
        return position_law(self.rule, p, q, self.drafts, drawing=self.drawing).induced
