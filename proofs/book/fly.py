"""FLy's deferred window, as a statement about tapes of hits and misses.

Statement.  For every block of K <= 12 drafts, every pattern of matches, every gate and every window W: FLy keeps at
least as many drafts as strict verification, keeps no more with a longer window, and forgives at most ceil((K - W) /
(W + 1)) mismatches. It has no ceiling: it emits, for certain, a token of probability 0 under the target.

Proof.  All tapes are tried: at each position a match, a mismatch where the gate is open, or one where it is shut.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import fly_theory as ft
from fly_theory.registry import rule_class
from proofs.derivation import Derivation
from proofs.search import Witness, distributions
from proofs.theorem import Subject, false_statement, theorem

LONGEST = 12
_HIT, _OPEN, _SHUT = 0, 1, 2


@theorem(
    "fly-window",
    "FLy keeps no less than strict verification, less with a longer window, and forgives at most ceil((K-W)/(W+1))",
    r"n_{\mathrm{FLy}} \ge n_{\mathrm{strict}},\; n_{W+1} \le n_W,\; "
    r"\#\mathrm{forgiven} \le \left\lceil \tfrac{K-W}{W+1} \right\rceil",
)
def fly_window(d: Derivation) -> None:
    for draft_length in range(1, LONGEST + 1):
        tapes = _tapes(draft_length)
        strict, _ = _decided(d, tapes, gate=np.zeros_like(tapes, dtype=bool), window=0)
        looser = None
        for window in range(draft_length + 1):
            kept, forgiven = _decided(d, tapes, gate=tapes == _OPEN, window=window)
            most = -((window - draft_length) // (window + 1))
            where = f"K = {draft_length}, W = {window}"
            d.cases(f"{where}: keeps at least what strict verification keeps", kept >= strict)
            d.cases(f"{where}: forgives at most {most}", forgiven <= most)
            if looser is not None:
                d.cases(f"{where}: keeps no more than with W = {window - 1}", kept <= looser)
            looser = kept


def _tapes(draft_length: int) -> Any:
    """Every tape of hits, misses at an open gate and misses at a shut one, (3^K, K)."""
    return np.arange(3**draft_length)[:, None] // 3 ** np.arange(draft_length) % 3


def _decided(d: Derivation, tapes: Any, *, gate: Any, window: int) -> tuple[Any, Any]:
    """How many drafts the rule keeps, and how many mismatches among them it forgives, on every tape."""
    match = (tapes == _HIT).astype(np.float32)
    rule = d.block_rule(
        "fly", theta=1, window=window, gate_open=lambda block: gate, match_probability=lambda block: match
    )
    length = tapes.shape[-1]
    row = [1.0, 0.0]
    trace = rule.trace(ft.Block([row] * (length + 1), [row] * length, [0] * length))
    return trace.kept.sum(axis=-1), trace.forgiven.sum(axis=-1)


class _NoCeiling(Subject):
    """A token of probability 0 that FLy emits for certain, in a block of two drafts whose rows are all the same."""

    def refute(self, substitute: Any = None) -> Witness | None:
        rule = (substitute or rule_class(self.rule, level="block"))(**self.settings)
        for p, tokens in _blocks():
            rows = ft.exact([p] * 3)
            kept = tuple(rule.length_law(ft.Block(rows, rows[:2], np.asarray(tokens))).tolist())
            if kept[2] == 1 and p[tokens[0]] == 0:
                return Witness(rule.spec, "out <= B p for some B", {"p": tuple(p), "drafted": tokens}, {"kept": kept})
        return None


def _blocks() -> Iterator[tuple[list[Fraction], tuple[int, int]]]:
    for size, denominator in ((2, 2), (3, 2), (3, 3), (4, 3)):
        for p in distributions(size, denominator):
            for tokens in np.ndindex(size, size):
                yield p, tokens


false_statement(
    "fly-ceiling",
    "FLy emits each token with at most some fixed multiple of its target probability",
    r"\mathrm{out} \le B\,p",
    _NoCeiling("fly", lambda rule: None, {"theta": 0.3, "window": 1}),
    "The gate reads the entropy of the row, not the probability of the token: a forgiven token may have probability 0.",
)
