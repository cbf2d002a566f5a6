"""What replay measures of a rule on one captured tree."""

from fly_theory import divergence
from fly_theory.arrays import Array, array_namespace, take
from fly_theory.rules.accept_set import AllowedSetRule
from fly_theory.rules.lossless import Lossless
from fly_theory.trees import (
    DraftTree,
    TreeRule,
    expected_kept,
    first_token_law,
    independent_law,
    siblingwise,
)
from fly_theory.trees.siblingwise import Siblingwise, redraw_depends_on_token
from gpu.replaying.measures import BASELINE, MATCHED, MEASURES, Measure

__all__ = ["TREE_MEASURES", "allowed_set_rule", "distances", "measure_baseline", "measure_tree", "why_no_first_law"]

_LOSSLESS = siblingwise(Lossless())

# What counts as one: float32 cannot tell such a mass from it.
_ALL = 1 - 1e-5

TREE_MEASURES = {
    name: MEASURES[name]
    for name in ("tokens_per_call", "accepted_per_call", "gain_over_lossless", "tv", "kl", "reverse_kl", "js")
} | {
    "max_ratio": MEASURES["max_ratio"],
    "argmax_flip": MEASURES["argmax_flip"],
    "outside_support": MEASURES["outside_support"],
    "first_kept": Measure(
        "first kept", "probability that one of the candidates for the first position of a tree is kept", high=1
    ),
    "collapsed": Measure(
        "point mass", "share of first positions at which the output is a single token, whatever the target says", high=1
    ),
    "children_allowed": Measure("allowed", "how many of the candidates for the first position are in the allowed set"),
    "any_allowed": Measure(
        "any allowed", "share of first positions at which at least one candidate is in the allowed set", high=1
    ),
}


def measure_tree(rule: TreeRule, tree: DraftTree, q: Array) -> dict[str, Array]:
    """Every measure () of a rule on one tree, rows known to be valid; q (V,) is the draft's law at the root.

    Divergences are those of the law of the first emitted token, of which the tree says all when its siblings were
    chosen without chance; drawn siblings are integrated out in closed form, and where there is none, no divergence is
    among the measures. A rule with an allowed set A is also measured against the target truncated to A (`matched_`).

    Raises
    ------
    ZeroResidualError
        The rule stops where it has no token to emit.
    """
    xp, p = array_namespace(tree.target), tree.target[0]
    law = rule.law(tree)
    kept = expected_kept(law, tree)
    measures = {"accepted_per_call": kept, "first_kept": 1 - law.stops[0]}
    out = None
    if why_no_first_law(rule, tree.drawing, len(tree.children[0])) is None:
        if tree.drawing == "deterministic":
            out = first_token_law(law, tree)
        else:
            out = independent_law(rule.rule, p, q, len(tree.children[0])).induced
        measures |= distances(p, out)
        measures["collapsed"] = xp.astype(xp.max(out, axis=-1) >= _ALL, out.dtype)
    token_rule = allowed_set_rule(rule)
    if token_rule is not None:
        allowed = token_rule.allowed_set(p)
        inside = sum(xp.astype(take(allowed, tree.token(child)), p.dtype) for child in tree.children[0])
        measures |= {"children_allowed": inside, "any_allowed": xp.astype(inside > 0, p.dtype)}
        if out is not None:
            matched = distances(token_rule.matched_target(p), out)
            measures |= {f"{MATCHED}{name}": value for name, value in matched.items()}
    return measures


def measure_baseline(p: Array, matched: DraftTree) -> dict[str, Array]:
    """Lossless verification of a tree whose target rows are truncated to A; p (V,) is the whole target at the root."""
    law = _LOSSLESS.law(matched)
    measures = {
        "accepted_per_call": expected_kept(law, matched),
        "first_kept": 1 - law.stops[0],
        "tv": divergence.total_variation(p, matched.target[0]),
    }
    return {f"{BASELINE}{name}": value for name, value in measures.items()}


def allowed_set_rule(rule: TreeRule) -> AllowedSetRule | None:
    """The token-level rule with an allowed set that a tree rule applies to siblings in turn, if it is one."""
    token_rule = rule.rule if isinstance(rule, Siblingwise) else None
    return token_rule if isinstance(token_rule, AllowedSetRule) else None


def why_no_first_law(rule: TreeRule, drawing: str, candidates: int) -> str | None:
    """Why the law of the first token is not identified by trees of drawn siblings, or None when it is."""
    if drawing == "deterministic":
        return None
    if not isinstance(rule, Siblingwise):
        return "the law of its first token is a mean over the draws of siblings that has no closed form"
    if candidates == 1 or (drawing == "with-replacement" and not redraw_depends_on_token(rule.rule)):
        return None
    return f"with siblings drawn {drawing}, the law of its first token has no closed form"


def distances(target: Array, out: Array) -> dict[str, Array]:
    """How far an output law (V,) is from a target (V,)."""
    xp = array_namespace(target, out)
    flipped = take(target, xp.argmax(out, axis=-1)) < xp.max(target, axis=-1)
    return {
        "tv": divergence.total_variation(target, out),
        "kl": divergence.kl(target, out),
        "reverse_kl": divergence.reverse_kl(target, out),
        "js": divergence.js(target, out),
        "max_ratio": divergence.max_ratio(target, out),
        "argmax_flip": xp.astype(flipped, out.dtype),
        "outside_support": xp.sum(xp.where(target > 0, xp.zeros_like(out), out), axis=-1),
    }
