"""Block verification and hierarchical verification.

Statement.  Two drafts verified as a block are followed by the target: the first two emitted tokens have the target's
joint law, over every vocabulary. Hierarchical verification, with its ratios restarted after the best prefix, is block
verification: the prefix factors coincide, and with them every test and every redraw.

Proof.  Given the first draft x let b = min(1, p(x)/q(x)), and let y be the second draft with rows p', q' after x.
sum_y min(q', b p') = b - s with s = sum (b p' - q')+, so that x alone is kept with probability h (1 - b + s) = s, and
the redraw then adds (b p' - q')+ to min(q', b p'): together b p'. Nothing is kept with probability sum q (1 - b) =
sum (p - q)+, and the redraw adds (p - q)+ to q b = min(q, p).
"""

import numpy as np

import fly_theory as ft
from fly_theory.arrays import array_namespace
from fly_theory.blocks.block import joint_acceptance
from proofs.derivation import Derivation
from proofs.symbolic import SymbolicArray
from proofs.symbolic.terms import Term
from proofs.theorem import theorem


def block_of_symbols(d: Derivation, draft_length: int) -> tuple[ft.Block, list[Term]]:
    """Any block of drafted tokens x1, x2, ...: the rows after i drafts depend on all of them."""
    tokens = [d.token(f"x{i + 1}") for i in range(draft_length)]
    target = [d.row(f"p{i}", *tokens[:i]) for i in range(draft_length + 1)]
    draft = [d.row(f"q{i}", *tokens[:i]) for i in range(draft_length)]
    xp = array_namespace(target[0])
    ids = np.empty(draft_length, dtype=object)
    ids[:] = tokens
    return ft.Block(xp.stack(target, axis=-2), xp.stack(draft, axis=-2), SymbolicArray(d.world, ids)), tokens


@theorem(
    "block-lossless",
    "two drafts verified as a block leave the joint law of the first two tokens to the target",
    r"P(\text{emit } x\,z) = p(x)\,p(z \mid x)",
)
def block_lossless(d: Derivation) -> None:
    block, (x, y) = block_of_symbols(d, 2)
    emitted, second = d.token("u"), d.token("z")
    rule = d.block_rule("block")
    xp = array_namespace(block.target)
    none_kept, one_kept, both_kept = (rule.length_law(block)[i] for i in range(3))
    after_none, after_one, after_both = (rule.next_token(block)[i, :] for i in range(3))
    passes, b = rule.passes(block), joint_acceptance(block)[1]
    p, q = block.target_at_tokens[0], block.draft_at_tokens[0]
    p_next, q_next = block.target_at_tokens[1], block.draft_at_tokens[1]
    then, filled = p_next.at(second, place=y), xp.clip(b * p_next - q_next, min=0)
    fill = filled.at(second, place=y)

    d.lemma("the first factor is a probability", b >= 0, b <= 1, q * b == xp.minimum(q, p))
    s = d.mass("what a second token is filled with is nowhere negative", fill, over=second)
    d.lemma("the first test passes what can be filled", passes[0] * (1 - b + s) == s)
    d.lemma("the second test passes what both laws allow", q_next * passes[1] == b * p_next - filled)
    d.name(b=b, first=passes[0], second=passes[1])
    d.sum_lemma("both drafts are kept", q_next * both_kept == b * p_next - filled, over=y)
    first_alone = d.total(q_next * one_kept, over=y)
    d.lemma("the first draft alone is kept", first_alone == s)
    d.lemma("and then filled up", s * after_one.at(second) == fill)
    nothing = d.total(q_next * none_kept, over=y)
    d.lemma("nothing is kept", nothing == 1 - b)
    excess = d.mass("what a first token is filled with is nowhere negative", xp.clip(p - q, min=0), over=x)
    d.sum_lemma("nothing is kept of any draft", q * nothing == xp.clip(p - q, min=0) - (p - q), over=x)
    d.lemma("and then filled up from the start", excess * after_none.at(x) == xp.clip(p - q, min=0))

    both = (q * q_next * both_kept).at(second, place=y)
    one = d.total(q_next * one_kept * after_one.at(second), over=y)
    none = d.total(q * d.total(q_next * none_kept * after_none.at(emitted), over=y), over=x).at(x, place=emitted)
    d.lemma("both drafts are emitted", both == q * (b * then - fill))
    d.lemma("a second token is filled in", one == fill)
    d.lemma("a first token is filled in", none == xp.clip(p - q, min=0))
    d.name(both=both, one=one, none=none, fill=fill, then=then)
    d.lemma("a kept first draft is followed by the target", both + q * one == q * b * then)
    d.name(kept=xp.minimum(q, p), excess=xp.clip(p - q, min=0))
    d.lemma("the first token is kept or filled in", xp.minimum(q, p) + xp.clip(p - q, min=0) == p)
    d.goal("the first two tokens have the target's law", both + q * one + none * then == p * then)
    d.goal("and the bonus token too", after_both == block.target[2, :])


@theorem(
    "hierarchical-is-block",
    "hierarchical verification is block verification: the same prefix factors, tests and redraws",
    r"\frac{r_t}{\max(1, \max_{i \le t} r_i)} = b_t",
)
def hierarchical_is_block(d: Derivation) -> None:
    """Factors for up to four drafts; tests and redraws, which treat every position alike, for two."""
    for draft_length in (1, 2, 3, 4):
        d.begin(f"K = {draft_length}")
        block, _ = block_of_symbols(d, draft_length)
        b, (weight, other) = joint_acceptance(block), d.block_rule("hierarchical").weights(block)
        for i in range(draft_length + 1):
            d.goal(f"prefix factor {i}", b[i] >= 0, b[i] <= 1, weight[i] == b[i], other[i] == 1)
            d.name(**{f"b_{i}": b[i], f"weight_{i}": weight[i]})
        if draft_length == 2:
            _same_decisions(d, block, b, weight)


def _same_decisions(d: Derivation, block: ft.Block, b: SymbolicArray, weight: SymbolicArray) -> None:
    hierarchical, verification = d.block_rule("hierarchical"), d.block_rule("block")
    xp = array_namespace(b)
    for i in range(block.draft_length):
        p, q = block.target[i, :], block.draft[i, :]
        excess, shortfall = xp.clip(b[i] * p - q, min=0), xp.clip(q - b[i] * p, min=0)
        d.mass(f"excess after {i} drafts", excess)
        d.mass(f"shortfall after {i} drafts", shortfall)
        d.sum_lemma(f"the same excess after {i} drafts", xp.clip(weight[i] * p - q, min=0) == excess)
        d.sum_lemma(f"the same shortfall after {i} drafts", xp.clip(-(weight[i] * p - q), min=0) == shortfall)
        d.sum_lemma(f"excess less shortfall after {i} drafts", excess - shortfall == b[i] * p - q)
    d.goal("every test", hierarchical.passes(block) == verification.passes(block))
    d.goal("every redraw", hierarchical.next_token(block) == verification.next_token(block))
