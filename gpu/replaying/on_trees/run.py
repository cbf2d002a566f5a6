"""Replay on draft trees: every rule on every captured tree, in one pass and bounded memory."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fly_theory.distributions import trusted_inputs
from fly_theory.errors import FlyTheoryError, InvalidInput, NotReadable
from fly_theory.interpreters import Interpreter
from fly_theory.registry import tree_rule
from fly_theory.rules.base import Rule
from fly_theory.trees import TreeRule, siblingwise
from gpu.replaying.on_trees.measures import allowed_set_rule, distances, measure_baseline, measure_tree
from gpu.replaying.on_trees.result import TreeReplay
from gpu.replaying.on_trees.rows import draft_at_root, drafted_tree
from gpu.replaying.on_trees.summary import summarise
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tally import Tally
from gpu.trace import TreeTrace
from gpu.trace.tree import TraceTree

__all__ = ["replay_trees", "tree_rules"]


def replay_trees(
    trace: TreeTrace,
    rules: Sequence[TreeRule],
    settings: ReplaySettings,
    *,
    provenance: dict[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> TreeReplay:
    """Evaluate tree rules on the captured trees of a trace; see `gpu.replay`, which calls this for such a trace.

    One tree is held at a time, and of its rows (N+1, V) no more than those of the target and of the draft.

    Raises
    ------
    TraceError, ZeroResidualError
        An altered trace; a rule that stops where it has no token to emit.
    """
    draft, tallies = Tally(), [Tally() for _ in rules]
    for done, tree in enumerate(trace):
        if progress:
            progress(done, len(trace))
        try:
            _tally(tree, trace, rules, settings, draft, tallies)
        except FlyTheoryError as error:
            msg = f"tree {tree.index}: {error}"
            raise type(error)(msg) from error
    if progress:
        progress(len(trace), len(trace))
    return summarise(trace, settings, rules, draft, tallies, provenance)


@torch.inference_mode()
def _tally(
    captured: TraceTree,
    trace: TreeTrace,
    rules: Sequence[TreeRule],
    settings: ReplaySettings,
    draft: Tally,
    tallies: Sequence[Tally],
) -> None:
    with trusted_inputs():
        tree, q = drafted_tree(captured, settings, trace.drawing), draft_at_root(captured, settings)
        p = tree.target[0].clone()
        draft.add(captured.prompt, captured.index, _values(distances(p, q)))
        measured = [measure_tree(rule, tree, q) for rule in rules]
        del tree  # before the rows of a truncated target take its place
        for rule, measures in zip(rules, measured, strict=True):
            token_rule = allowed_set_rule(rule)
            if token_rule is not None:
                matched = drafted_tree(captured, settings, trace.drawing, token_rule.matched_target)
                measures |= measure_baseline(p, matched)
                del matched
    for tally, measures in zip(tallies, measured, strict=True):
        tally.add(captured.prompt, captured.index, _values(measures))


def _values(measures: dict[str, Tensor]) -> dict[str, list[float]]:
    return {name: [float(value)] for name, value in measures.items()}


def tree_rules(rules: Sequence[TreeRule | Rule | str], trace: TreeTrace) -> list[TreeRule]:
    """The tree rules that are asked for; token-level ones are applied to the siblings of a node in turn.

    Raises
    ------
    InvalidInput
        No rule, a rule given twice or of whole blocks, or one that is not made for siblings drawn as these were.
    UnknownName, ParameterError, NotReadable
        A SPEC that names no rule, a parameter outside its domain, or a rule that torch cannot read.
    """
    resolved = [_tree_rule(rule) for rule in rules]
    if not resolved:
        msg = "rules is empty; give at least one rule or SPEC"
        raise InvalidInput(msg)
    for rule in resolved:
        if trace.drawing not in rule.drawings:
            allowed = " or ".join(rule.drawings)
            msg = f"{rule.spec} verifies siblings drawn {allowed}; those of this trace are {trace.drawing}"
            raise InvalidInput(msg)
        if Interpreter.TORCH in rule.unreadable:
            msg = f"{rule.spec} cannot be replayed: {rule.unreadable[Interpreter.TORCH]}"
            raise NotReadable(msg)
    specs = [rule.spec for rule in resolved]
    twice = next((spec for spec in specs if specs.count(spec) > 1), None)
    if twice:
        msg = f"rules contains {twice} twice; give each setting once"
        raise InvalidInput(msg)
    return resolved


def _tree_rule(rule: TreeRule | Rule | str) -> TreeRule:
    if isinstance(rule, str):
        return tree_rule(rule)
    if isinstance(rule, TreeRule):
        return rule
    if isinstance(rule, Rule):
        return siblingwise(rule)
    msg = f"rules contains {rule!r}; on a trace of draft trees, rules are tree rules, token-level rules and their SPECs"
    raise InvalidInput(msg)
