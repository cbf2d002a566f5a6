"""Tree level: the first round of a tree rule on a pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from fly_theory.arrays import inverse_cdf
from fly_theory.errors import InvalidInput
from fly_theory.pairs import Pair
from fly_theory.trees import DraftTree, Drawing, TreeRule, expected_lengths, joint_law
from fly_theory.trees.enumeration import table_size
from fly_theory.trees.tree import Parents, check_drawing, next_sibling
from simulators.estimates import Counts, Estimate, mean, rates
from simulators.rounds import PairInputs, first_context
from simulators.simulation import Run, Simulation
from simulators.tally import Draw

__all__ = ["OneTree", "simulate_tree"]

# Exact values are found by enumeration while its tables hold at most so many probabilities: a second or so.
_ENUMERABLE = 2**22


@dataclass(frozen=True)
class OneTree:
    """Draft a tree and run one round on it: drafts kept, the first token, and whether the rule got stuck."""

    rule: TreeRule
    parents: Parents
    drawing: Drawing

    @property
    def uniforms(self) -> int:
        return 2 + 2 * len(self.parents)

    def outcomes(self, inputs: PairInputs) -> dict[str, int]:
        return {"kept": len(set(_depths(self.parents))), "first token": inputs.target.shape[-1], "stuck": 2}

    def numbers(self, inputs: PairInputs) -> int:
        return 6 * (len(self.parents) + 1) * inputs.target.shape[-1]

    def trials(self, inputs: PairInputs, draw: Draw) -> dict[str, jax.Array]:
        return jax.vmap(self._trial, (None, 1))(inputs, draw(0))

    def _trial(self, inputs: PairInputs, uniforms: jax.Array) -> dict[str, jax.Array]:
        nodes = len(self.parents)
        starting, drafting, deciding, emitting = jnp.split(uniforms, [1, 1 + nodes, 1 + 2 * nodes])
        tree = self._drafted(inputs, first_context(inputs, starting[0]), drafting)
        stop = self.rule.decide(tree, deciding)
        weights = jnp.stack(self.rule.law(tree).next_token)[stop]
        firsts = jnp.asarray([0, *(tree.path(node)[0] for node in range(1, nodes + 1))])[stop]
        following = inverse_cdf(weights, emitting[0])
        return {
            "kept": jnp.asarray(tree.depths)[stop],
            "first token": jnp.where(stop > 0, tree.tokens[firsts - 1], following),
            "stuck": (jnp.sum(weights) <= 0).astype(jnp.int64),
        }

    def _drafted(self, inputs: PairInputs, context: jax.Array, uniforms: jax.Array) -> DraftTree:
        contexts, tokens = [context], []
        for node, parent in enumerate(self.parents, start=1):
            earlier = tuple(tokens[j - 1] for j in range(1, node) if self.parents[j - 1] == parent)
            law = next_sibling(inputs.draft[contexts[parent]], earlier, self.drawing)
            tokens.append(inverse_cdf(law, uniforms[node - 1]))
            contexts.append(inputs.successor[contexts[parent], tokens[-1]])
        along = jnp.stack(contexts)
        return DraftTree(inputs.target[along], inputs.draft[along], jnp.stack(tokens), self.parents, self.drawing)


def simulate_tree(rule: TreeRule, pair: Pair, parents: Sequence[int], drawing: Drawing, run: Run) -> Simulation:
    """Drafts kept and tokens per call in the first round of a tree rule on a pair, and the law of the first token.

    Raises
    ------
    InvalidInput
        For parents that make no tree, a drawing that the rule is not made for, or more siblings than can differ.
    """
    parents = tuple(parents)
    _check(rule, pair, parents, drawing)
    law, kept, first = None, None, None
    if pair.contexts * table_size(parents, pair.vocabulary) <= _ENUMERABLE:
        lengths = expected_lengths(rule, pair, parents, drawing=drawing)
        law, kept = lengths.law, float(lengths.kept)
        first = joint_law(rule, pair, parents, 1, drawing=drawing)
    possible = range(len(set(_depths(parents))))

    def summary(counts: Mapping[str, Counts], confidence: float) -> list[Estimate]:
        drafts = mean("drafts kept", possible, counts["kept"], confidence, interval=run.mean_interval, exact=kept)
        per_call = drafts.mapped("tokens per call", lambda kept: kept + 1, exact=None if kept is None else kept + 1)
        found = [per_call, drafts, *rates("kept", counts["kept"], confidence, exact=law)]
        return found + rates("first token", counts["first token"], confidence, exact=first)

    return run.of(rule.spec, OneTree(rule, parents, drawing), PairInputs.of(pair), summary)


def _depths(parents: Parents) -> list[int]:
    depths = [0]
    for parent in parents:
        depths.append(depths[parent] + 1)
    return depths


def _check(rule: TreeRule, pair: Pair, parents: Parents, drawing: Drawing) -> None:
    check_drawing(drawing)
    # One tree on the host says whatever is wrong with the topology, or with such trees for this rule.
    row = np.eye(1, pair.vocabulary).repeat(len(parents) + 1, axis=0)
    rule.law(DraftTree(row, row, np.zeros(len(parents), dtype=int), parents, drawing))
    most = max(parents.count(parent) for parent in parents)
    fewest = int(np.count_nonzero(np.asarray(pair.draft, dtype=np.float64), axis=-1).min())
    fewest = fewest if drawing == "without-replacement" else pair.vocabulary
    if drawing != "with-replacement" and most > fewest:
        msg = f"{most} siblings cannot all differ where the draft has {fewest} tokens; draw fewer, or with replacement"
        raise InvalidInput(msg)
