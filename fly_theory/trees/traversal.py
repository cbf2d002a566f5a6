"""Traversal verification."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from fly_theory.arrays import Array, array_namespace, positive_part, take
from fly_theory.blocks.base import share
from fly_theory.claims import Claim, Lossless
from fly_theory.trees.base import TreeLaw, TreeRule
from fly_theory.trees.tree import DraftTree, Drawing

__all__ = ["Traversal"]


class _Test(NamedTuple):
    """The test of one node: its probability to pass given that all before failed, and what would be emitted there."""

    node: int
    passes: Array
    next_token: Array


@dataclass(frozen=True, kw_only=True)
class Traversal(TreeRule):
    """Test the leaves first, a node only after all below it have failed, and stop at the first that passes.

    Statement
    ---------
    At the root w = 1. Children x_1, x_2, ... of a node with target p and weight w, drawn from q_1, q_2, ..., are
    visited in turn: child x_k gets the weight min(1, w p(x_k) / q_k(x_k)); when it and all below it have failed,
    s = sum (w p - q_k)+, then p becomes (w p - q_k)+ / s and w becomes s / (s + 1 - w) (0/0 = 1). When no child is
    left, the node itself passes with probability w, and the token is emitted from its p.

    Guarantee
    ---------
    Lossless. On a chain it is block verification.

    Reference
    ---------
    Traversal verification (arXiv 2505.12398), Theorems 3.3 and 3.4, for draws without replacement; q_k is q without the
    tokens drawn before, renormalised. Here q_k is the law of the k-th sibling however siblings are drawn.

    Examples
    --------
    >>> import fly_theory as ft
    >>> pair = ft.ContextTreePair.random(3, depth=2, seed=0)
    >>> for spec in ("lossless", "traversal"):
    ...     rule = ft.tree_rule(spec)
    ...     lengths = ft.trees.expected_lengths(rule, pair, [0, 0, 1, 1, 2], drawing="without-replacement")
    ...     print(spec, round(float(lengths.kept), 4))
    lossless 1.4628
    traversal 1.5433
    """

    name: ClassVar[str] = "traversal"
    drawings: ClassVar[tuple[Drawing, ...]] = ("without-replacement", "with-replacement", "deterministic")

    def _law(self, tree: DraftTree) -> TreeLaw:
        xp = array_namespace(tree.target)
        found: dict[int, tuple[Array, Array]] = {}
        failed = xp.ones_like(tree.target[..., 0, 0])
        for node, passes, next_token in self._tests(tree):
            found[node] = (failed * passes, next_token)
            failed = failed * (1 - passes)
        stops, emitted = zip(*(found[node] for node in range(tree.nodes + 1)), strict=True)
        return TreeLaw(xp.stack(stops, axis=-1), emitted)

    def _decide(self, tree: DraftTree, uniforms: Array) -> Array:
        xp = array_namespace(uniforms)
        failed = uniforms[..., 0] >= 0
        stop = xp.zeros_like(tree.tokens[..., 0])
        for node, passes, _ in self._tests(tree):
            if node:
                passed = uniforms[..., node - 1] < passes
                stop = xp.where(failed & passed, xp.full_like(stop, node), stop)
                failed = failed & ~passed
        return stop

    def _tests(self, tree: DraftTree) -> Iterator[_Test]:
        """The tests in the order in which they are made, the root's last."""
        return self._below(tree, 0, array_namespace(tree.target).ones_like(tree.target[..., 0, 0]))

    def _below(self, tree: DraftTree, node: int, w: Array) -> Iterator[_Test]:
        xp, p, siblings = array_namespace(w), tree.target[..., node, :], tree.siblings(node)
        for k, (child, q) in enumerate(zip(tree.children[node], siblings.laws(p), strict=True)):
            at_q = take(q, siblings.tokens[k])
            weight = share(xp.minimum(at_q, w * take(p, siblings.tokens[k])), at_q)
            present = None if siblings.present is None else siblings.present[k]
            yield from self._below(tree, child, weight if present is None else xp.where(present, weight, 0 * weight))
            excess = positive_part(w[..., None] * p - q)
            s = xp.sum(excess, axis=-1)
            left, raised = share(excess, s[..., None]), xp.where(w < 1, share(s, s + (1 - w)), xp.ones_like(w))
            p = left if present is None else xp.where(present[..., None], left, p)
            w = raised if present is None else xp.where(present, raised, w)
        yield _Test(node, w, p)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless(),)
