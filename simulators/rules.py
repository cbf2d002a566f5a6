"""Simulate a rule: the level follows from the rule, from what it runs on, and from the lengths that are given."""

from collections.abc import Sequence
from typing import Unpack

from fly_theory.arrays import Array
from fly_theory.blocks import BlockRule, tokenwise
from fly_theory.distributions import as_pair
from fly_theory.errors import InvalidInput, NotReadable, ShapeError
from fly_theory.interpreters import Interpreter
from fly_theory.pairs import ContextTreePair, Pair
from fly_theory.rules import Rule
from fly_theory.trees import Drawing, TreeRule, siblingwise
from simulators.block_level import simulate_round
from simulators.sequence_level import simulate_text
from simulators.simulation import Run, Settings, Simulation
from simulators.tally import check_integer
from simulators.token_level import simulate_token
from simulators.tree_level import simulate_tree

__all__ = ["simulate"]

_LONGEST_DRAFT, _LONGEST_TEXT = 2**10, 2**20


def simulate(
    rule: Rule | BlockRule | TreeRule,
    on: Pair | tuple[Array, Array],
    trials: int,
    seed: int,
    *,
    draft_length: int | None = None,
    length: int | None = None,
    parents: Sequence[int] | None = None,
    drawing: Drawing = "with-replacement",
    **settings: Unpack[Settings],
) -> Simulation:
    """Monte-Carlo estimates of what a rule does on a toy pair, or on one target p (V,) and draft q (V,).

    - A token rule on (p, q), without `draft_length`: its acceptance, and the probability of every emitted token.
    - With `draft_length` K: tokens per call and the law of the number of drafts kept in the first round, and the law of
      the first token. A token rule is lifted by first rejection; (p, q) is a pair with the same laws everywhere.
    - With `length` as well: tokens per call over a text of that length, and the joint law of its tokens while there are
      at most 65,536 texts.

    - With `parents` instead, the topology of a draft tree: tokens per call and the law of the number of drafts kept in
      the first round, and the law of the first token. A token rule is applied to siblings in turn; `drawing` says how
      siblings are drawn.

    Exact values stand beside the estimates where enumeration gives them quickly. `Settings` says what else can be set.

    Raises
    ------
    InvalidInput
        For arguments outside what is allowed, or that do not fit together.
    DistributionError, ShapeError
        For p and q that are no distributions over one vocabulary.
    NotReadable
        For a rule that declares that jax cannot read it.
    ZeroResidualError
        When a rule has to emit a token where it has none to emit.

    Examples
    --------
    >>> import fly_theory as ft, simulators
    >>> found = simulators.simulate(ft.rule("lossless"), ([0.5, 0.5], [0.2, 0.8]), 10_000, seed=1)
    >>> acceptance = found["acceptance"]
    >>> acceptance.covers(0.7), acceptance.method, round(acceptance.exact, 12)
    (True, 'Clopper-Pearson', 0.7)
    """
    run = Run(trials=trials, seed=seed, **settings)
    if isinstance(rule, Rule | BlockRule | TreeRule) and Interpreter.JAX in rule.unreadable:
        msg = f"{rule.spec} cannot be simulated: {rule.unreadable[Interpreter.JAX]}"
        raise NotReadable(msg)
    if parents is not None:
        return _on_tree(rule, on, parents, drawing, draft_length, length, run)
    if isinstance(rule, Rule) and not isinstance(on, Pair) and draft_length is None and length is None:
        return simulate_token(rule, *_vectors(on), run)
    br = tokenwise(rule) if isinstance(rule, Rule) else rule
    if not isinstance(br, BlockRule):
        msg = f"rule={rule!r} is neither a token-level nor a block-level rule"
        raise InvalidInput(msg)
    if draft_length is None:
        msg = f"draft_length is missing: {br.spec} is to judge blocks of K drafts"
        raise InvalidInput(msg)
    check_integer("draft_length", draft_length, 1, _LONGEST_DRAFT)
    pair = _pair(on)
    if length is None:
        return simulate_round(br, pair, draft_length, run)
    check_integer("length", length, 1, _LONGEST_TEXT)
    return simulate_text(br, pair, draft_length, length, run)


def _on_tree(
    rule: Rule | BlockRule | TreeRule,
    on: Pair | tuple[Array, Array],
    parents: Sequence[int],
    drawing: Drawing,
    draft_length: int | None,
    length: int | None,
    run: Run,
) -> Simulation:
    if (draft_length, length) != (None, None):
        msg = "draft_length and length are for chains of drafts; give either them or parents"
        raise InvalidInput(msg)
    tree_rule = siblingwise(rule) if isinstance(rule, Rule) else rule
    if not isinstance(tree_rule, TreeRule):
        msg = f"rule={rule!r} is neither a token-level nor a tree-level rule"
        raise InvalidInput(msg)
    return simulate_tree(tree_rule, _pair(on), parents, drawing, run)


def _pair(on: Pair | tuple[Array, Array]) -> Pair:
    return on if isinstance(on, Pair) else ContextTreePair(*(row[None, :] for row in _vectors(on)), depth=0)


def _vectors(on: tuple[Array, Array]) -> tuple[Array, Array]:
    if not isinstance(on, tuple | list) or len(on) != 2:
        msg = f"on={on!r} is neither a toy pair nor two distributions (p, q)"
        raise InvalidInput(msg)
    p, q = as_pair(*on)
    if p.ndim != 1 or q.ndim != 1:
        msg = (
            f"p {tuple(p.shape)} and q {tuple(q.shape)} are batches; a simulation takes one target (V,) and draft (V,)"
        )
        raise ShapeError(msg)
    return p, q
