"""Two decisions that share one uniform, seen in how the runs of a verifier branch.

A uniform is shared when two lines of code branch on it, or when its branches settle the fate of two drafted tokens: a
single line in a loop over positions that compares the same uniform each time round. The steps of one inverse-CDF draw,
all on one line and about one token, are one decision.
"""

import itertools
from collections.abc import Sequence

from fly_theory.conformance.exploration import Leaf
from fly_theory.conformance.laws import Text

__all__ = ["shared_uniform"]

Script = tuple[int, ...]


def shared_uniform(leaves: Sequence[Leaf[Text]]) -> str | None:
    """A uniform that two decisions read, described in a phrase; None if there is none."""
    kept = _kept_by_branch(leaves)
    for leaf in leaves:
        lines: dict[str, set[tuple[str, int]]] = {}
        fates: dict[str, set[int]] = {}
        for depth, branch in enumerate(leaf.branches):
            lines.setdefault(branch.label, set()).add(branch.line)
            position = _settled(kept[leaf.script[:depth]])
            if position is not None:
                fates.setdefault(branch.label, set()).add(position)
        for label, where in lines.items():
            if len(where) > 1:
                return f"{label} is read by lines {' and '.join(str(line) for _, line in sorted(where))}"
            if len(fates.get(label, ())) > 1:
                return f"{label} decides on draft tokens {' and '.join(map(str, sorted(fates[label])))}"
    return None


def _kept_by_branch(leaves: Sequence[Leaf[Text]]) -> dict[Script, dict[int, list[int]]]:
    """For each branching point, by option taken: how many drafts are kept in the end."""
    kept: dict[Script, dict[int, list[int]]] = {}
    for leaf in leaves:
        for depth, branch in enumerate(leaf.branches):
            options = kept.setdefault(leaf.script[:depth], {})
            options.setdefault(branch.taken, []).append(len(leaf.value) - 1)
    return kept


def _settled(kept: dict[int, list[int]]) -> int | None:
    """The draft token whose fate these options settle: kept in all runs of some, in none of the others."""
    ranges = sorted((min(counts), max(counts)) for counts in kept.values())
    for (_, most), (fewest, _) in itertools.pairwise(ranges):
        if most < fewest:
            return most + 1
    return None
