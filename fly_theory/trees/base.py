"""The tree-level rule: a draft tree is judged at once, and one more token is emitted after the path that is kept.

Notation everywhere: target p and draft q, both rows (..., V) of a `DraftTree`; the round stops at one of its nodes.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from fly_theory.any_rule import AnyRule
from fly_theory.arrays import Array, array_namespace, one_hot
from fly_theory.errors import InvalidInput
from fly_theory.interpreters import Interpreter
from fly_theory.rules.base import check_uniforms
from fly_theory.trees.tree import DRAWINGS, DraftTree, Drawing, Siblings

__all__ = ["TreeLaw", "TreeRule", "Verdicts", "Walk", "expected_kept", "first_token_law"]


NO_SYMBOLIC_TREES = {Interpreter.SYMBOLIC: "a drafted tree has token ids, and symbols have none"}


class TreeLaw(NamedTuple):
    """What a rule does with one drafted tree.

    stops : (..., N+1)
        Probability that the round stops at each node: the path to it is kept, and nothing below.
    next_token : N+1 arrays (..., V)
        Law of the token emitted after stopping at each node; all zero is allowed where that is impossible.
    """

    stops: Array
    next_token: tuple[Array, ...]


class TreeRule(AnyRule):
    """Base of every tree-level rule: a frozen dataclass with pure methods over a `DraftTree`.

    No backend import, no random generator, no branch on array values: the methods run over any batch shape, on numpy,
    torch, jax (inside `jit` and `vmap`) and exact arrays. The topology of a tree is no array, and may be looped over.
    """

    unreadable_by: ClassVar[Mapping[Interpreter, str]] = NO_SYMBOLIC_TREES
    # The trees that the rule is made for (and its claim to be lossless), the usual ones first; others are refused.
    drawings: ClassVar[tuple[Drawing, ...]] = DRAWINGS

    def law(self, tree: DraftTree) -> TreeLaw:
        """Where the round stops on this tree, and what is emitted there.

        Raises
        ------
        InvalidInput
            For a tree whose siblings were drawn in a way that the rule is not made for.
        """
        self._check_drawing(tree)
        return self._law(tree)

    def decide(self, tree: DraftTree, uniforms: Array) -> Array:
        """The node (...,) at which the round stops, given uniforms (..., N) in [0, 1), one a drafted node.

        On average over the uniforms, `law(tree).stops`.

        Raises
        ------
        ShapeError, InvalidInput
            For uniforms of another length, or outside [0, 1); also as `law`.
        """
        self._check_drawing(tree)
        check_uniforms(uniforms, tree.nodes)
        return self._decide(tree, uniforms)

    def _law(self, tree: DraftTree) -> TreeLaw:
        raise NotImplementedError

    def _decide(self, tree: DraftTree, uniforms: Array) -> Array:
        raise NotImplementedError

    def _check_drawing(self, tree: DraftTree) -> None:
        if tree.drawing not in self.drawings:
            allowed = " or ".join(self.drawings)
            msg = f"{self.spec} verifies siblings drawn {allowed}; those of this tree are {tree.drawing}"
            raise InvalidInput(msg)


class Verdicts(NamedTuple):
    """What a rule decides about the children of one node.

    passes : n arrays (...,)
        Probability that each child passes its test, given that those before it failed.
    next_token : (..., V)
        Law of the token emitted when all fail.
    """

    passes: tuple[Array, ...]
    next_token: Array


class Walk(TreeRule):
    """Rules that test the children of a node in turn, go down to the first that passes, and stop when all fail.

    A child passes when its uniform is below its probability to pass.
    """

    def verdicts(self, p: Array, siblings: Siblings) -> Verdicts:
        """What is decided about the children of a node with target row p (..., V)."""
        raise NotImplementedError

    def _verdicts(self, tree: DraftTree) -> Iterator[Verdicts]:
        for node, children in enumerate(tree.children):
            p = tree.target[..., node, :]
            yield self.verdicts(p, tree.siblings(node)) if children else Verdicts((), p)

    def _law(self, tree: DraftTree) -> TreeLaw:
        xp = array_namespace(tree.target)
        reached = {0: xp.ones_like(tree.target[..., 0, 0])}
        stops, next_token = [], []
        for node, verdicts in enumerate(self._verdicts(tree)):
            here = reached.pop(node)
            for child, passes in zip(tree.children[node], verdicts.passes, strict=True):
                reached[child] = here * passes
                here = here * (1 - passes)
            stops.append(here)
            next_token.append(verdicts.next_token)
        return TreeLaw(xp.stack(stops, axis=-1), tuple(next_token))

    def _decide(self, tree: DraftTree, uniforms: Array) -> Array:
        xp = array_namespace(uniforms)
        reached = {0: uniforms[..., 0] >= 0}
        stop = xp.zeros_like(tree.tokens[..., 0])
        for node, verdicts in enumerate(self._verdicts(tree)):
            here = reached.pop(node)
            for child, passes in zip(tree.children[node], verdicts.passes, strict=True):
                passed = uniforms[..., child - 1] < passes
                reached[child] = here & passed
                here = here & ~passed
            stop = xp.where(here, xp.full_like(stop, node), stop)
        return stop


def expected_kept(law: TreeLaw, tree: DraftTree) -> Array:
    """Expected number (...,) of drafted tokens kept; one more token is emitted."""
    return sum(law.stops[..., node] * depth for node, depth in enumerate(tree.depths) if depth)


def first_token_law(law: TreeLaw, tree: DraftTree) -> Array:
    """Law (..., V) of the first token that is emitted on a tree: a kept child of the root, or what is drawn there."""
    below = [law.stops[..., node] for node in range(tree.nodes + 1)]
    for node in range(tree.nodes, 0, -1):
        parent = tree.parents[node - 1]
        if parent:
            below[parent] = below[parent] + below[node]
    first = below[0][..., None] * law.next_token[0]
    return sum((below[child][..., None] * one_hot(tree.token(child), first) for child in tree.children[0]), first)
