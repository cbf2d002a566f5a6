"""What only block-level rules promise; the other claims are those of `fly_theory.claims`, read for text.

Lossless: the joint law of the text is the target's. Ceiling: the law of each next token, given the text before it,
stays under factor * p. FixedPoint: p = q means that every draft is kept and the text follows p. ReducesTo: with the
parameters set to `at`, length law and next-token laws are those of the named rule on every block.
"""

from dataclasses import dataclass
from typing import Literal

from fly_theory.claims import Claim


@dataclass(frozen=True)
class KeepsAtLeast(Claim):
    """On every pair, at least as many drafts are kept on average as by the named rule."""

    rule: str

    def __str__(self) -> str:
        return f"keeps at least as many drafts as {self.rule}"


@dataclass(frozen=True)
class KeptMonotoneIn(Claim):
    """On every block and the same uniforms, moving `parameter` in its looser direction never keeps fewer drafts."""

    parameter: str
    looser: Literal["smaller", "larger"]

    def __str__(self) -> str:
        return f"keeps more drafts as {self.parameter} gets {self.looser}"
