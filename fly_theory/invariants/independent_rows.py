"""Rows of a batch do not touch each other, and tokens without mass change nothing."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array
from fly_theory.invariants.base import Case, Invariant, RuleFailure, Violation, values

__all__ = ["IndependentRows"]


@dataclass(frozen=True)
class IndependentRows(Invariant):
    """out is the same alone as in a batch, in any order of its rows, over axes that broadcast, and with padded tokens.

    The batch holds the targets p, q, p with the drafts q, p, p; the padding is one token without mass in p and q.
    """

    stride: ClassVar[int] = 3

    @property
    def name(self) -> str:
        return "independent of batch and padding"

    def judge(self, case: Case) -> Violation | None:
        xp, p, q = case.xp, case.p, case.q
        alone = xp.stack([case.out, case.at(q, p).out, case.at(p, p).out])
        targets, drafts = xp.stack([p, q, p]), xp.stack([q, p, p])
        batches = {
            "a batch": (targets, drafts, alone),
            "the batch backwards": (xp.flip(targets, axis=0), xp.flip(drafts, axis=0), xp.flip(alone, axis=0)),
            "one target for a batch of drafts": (p, drafts[::2, :], alone[::2, :]),
            "a padded vocabulary": (_padded(case, p), _padded(case, q), _padded(case, case.out)),
        }
        for arrangement, (target, draft, expected) in batches.items():
            try:
                got = case.at(target, draft).out
            except RuleFailure as failure:
                return Violation("the answer", str(failure), values(expected), inputs={"arranged as": arrangement})
            if tuple(got.shape) != tuple(expected.shape) or case.differ(got, expected):
                return Violation("out", values(got), values(expected), inputs={"arranged as": arrangement})
        return None


def _padded(case: Case, x: Array) -> Array:
    return case.xp.concat([x, case.xp.zeros_like(x[:1])], axis=-1)
