"""Hierarchical speculative decoding: the paper's rule, its naive form, and what released code makes of it.

All test prefixes of the draft from the longest to the shortest. They differ in the weights that the target's and the
draft's next-token laws get at the branch below a prefix x_1..x_t:

    D+(t) = sum_x (P_t p_t(x) - Q_t q_t(x))+ ,   D-(t) = sum_x (Q_t q_t(x) - P_t p_t(x))+

where P_t / Q_t stands for the likelihood ratio r_t = prod_{i <= t} p(x_i)/q(x_i) of the prefix, capped in one way or
another.
"""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, Number, array_namespace, normalise, positive_part, scalar
from fly_theory.blocks.base import Block, LongestPass, share
from fly_theory.blocks.claims import KeepsAtLeast
from fly_theory.claims import Claim, FixedPoint, Lossless, ReducesTo
from fly_theory.parameters import Interval, parameter


class _BranchTest(LongestPass):
    """Prefix t passes with probability D+(t) / max(D+(t), D-(t)) (0/0 = 1), the whole draft with min(1, P_K / Q_K)."""

    def weights(self, block: Block) -> tuple[Array, Array]:
        """P_t and Q_t for t = 0..K, (..., K+1) each."""
        raise NotImplementedError

    def passes(self, block: Block) -> Array:
        p, q = self.weights(block)
        xp = array_namespace(p)
        plus = xp.sum(self._excess(block, p, q), axis=-1)[..., 1:]
        minus = xp.sum(self._excess(block, p, q, of_draft=True), axis=-1)[..., 1:]
        larger = xp.maximum(plus, minus)
        whole = share(p[..., -1:], xp.maximum(p[..., -1:], q[..., -1:]))
        return xp.concat([xp.where(larger > 0, share(plus, larger), 1), whole], axis=-1)

    def next_token(self, block: Block) -> Array:
        xp = array_namespace(block.target)
        redrawn = normalise(self._excess(block, *self.weights(block)))
        return xp.concat([redrawn, block.target[..., -1:, :]], axis=-2)

    @staticmethod
    def _excess(block: Block, p: Array, q: Array, *, of_draft: bool = False) -> Array:
        """Terms of D+, or of D-: (P p - Q q)+ or (Q q - P p)+ in the branch below each prefix (..., K, V)."""
        difference = p[..., :-1, None] * block.judging - q[..., :-1, None] * block.draft
        return positive_part(-difference if of_draft else difference)


@dataclass(frozen=True, kw_only=True)
class Hierarchical(_BranchTest):
    """Walk back from the whole draft; ratios restart after the best strictly earlier prefix.

    Statement
    ---------
    r*_t = r(x_{m+1}..x_t), m = argmax_{i < t} r_i if that maximum exceeds 1, else 0.
    Keep all drafts with probability min(1, r*_K); else for t = K-1, ..., 1 stop with probability D+(t) / D-(t), where
    P_t / Q_t = r_t / max(1, max_{i <= t} r_i); t = 0 always stops. Next token from (P_t p_t - Q_t q_t)+, or the bonus
    token from p_K.

    Guarantee
    ---------
    Lossless, and the same as block verification on every block: the prefix factor is its b_t, and D+/D- its h_t, since
    D+ - D- = b_t - 1.

    Reference
    ---------
    Zhou et al. 2026 (arXiv 2601.05724).

    Examples
    --------
    >>> import fly_theory as ft
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> ft.block_rule("hierarchical").length_law(block).round(12).tolist()
    [[0.75, 0.0, 0.25], [0.0, 0.0, 1.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "hierarchical"

    def weights(self, block: Block) -> tuple[Array, Array]:
        xp = array_namespace(block.target)
        p, q = block.target_at_tokens, block.draft_at_tokens
        ratio = xp.where(q > 0, p, 0) / xp.where(q > 0, q, 1)
        since = [xp.ones_like(p[..., 0])]
        for i in range(block.draft_length):
            since.append(xp.where(since[-1] > 1, 1, since[-1]) * ratio[..., i])
        r = xp.stack(since, axis=-1)
        return xp.where(r > 1, 1, r), xp.ones_like(r)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless(), KeepsAtLeast("lossless"), ReducesTo("block", {}), FixedPoint())


@dataclass(frozen=True, kw_only=True)
class HierarchicalNaive(_BranchTest):
    """Walk back with uncapped ratios, then redraw every remaining position of the block.

    Statement
    ---------
    P_t / Q_t = r_t. Keep all drafts with probability min(1, r_K); else for t = K-1, ..., 1 stop with probability
    D+(t) / max(D+(t), D-(t)); t = 0 always stops. Then each position up to K is drawn in turn from (P p - Q q)+, with
    P and Q of the text so far: a token from the joint residual of target and draft.

    Guarantee
    ---------
    Lossless. It keeps more drafts than the paper's rule, but every redrawn token after the first costs a call of target
    and draft.

    Reference
    ---------
    Zhou et al. 2026 (arXiv 2601.05724), the naive form; `naive` in the released patch of transformers.

    Examples
    --------
    >>> import fly_theory as ft
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> ft.block_rule("hierarchical-naive").length_law(block).round(12).tolist()
    [[0.75, 0.0, 0.25], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "hierarchical-naive"
    completes_block: ClassVar[bool] = True

    def weights(self, block: Block) -> tuple[Array, Array]:
        return _likelihoods(block)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless(), KeepsAtLeast("hierarchical"), FixedPoint())


@dataclass(frozen=True, kw_only=True)
class HierarchicalMincap(_BranchTest):
    """Walk back with the ratio of each prefix cut at 1, and a single redraw.

    Statement
    ---------
    P_t / Q_t = min(1, r_t), without a running maximum; otherwise as `hierarchical`.

    Guarantee
    ---------
    Only that p = q changes nothing. Lossy: the excess that a prefix loses to the cap is not taken from longer ones. It
    keeps as many drafts as `hierarchical-uncapped`, since the cap acts only where both stop for certain.

    Reference
    ---------
    Released patch of transformers by the authors of arXiv 2601.05724, version `fast`.

    Examples
    --------
    >>> import fly_theory as ft
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> ft.block_rule("hierarchical-mincap").length_law(block).round(12).tolist()
    [[0.75, 0.0, 0.25], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "hierarchical-mincap"

    def weights(self, block: Block) -> tuple[Array, Array]:
        p, q = _likelihoods(block)
        return array_namespace(p).minimum(p, q), q

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (FixedPoint(),)


@dataclass(frozen=True, kw_only=True)
class HierarchicalUncapped(_BranchTest):
    """Walk back with uncapped ratios, but a single redraw.

    Statement
    ---------
    P_t / Q_t = r_t / l^t: the draft probabilities of the prefix are multiplied by the lenience l, those of the branch
    are not. Keep all drafts with probability min(1, P_K / Q_K); otherwise as `hierarchical-naive`, with one redraw.

    Guarantee
    ---------
    Only that p = q changes nothing. Lossy, also at l = 1: the naive rule needs its further redraws.

    Reference
    ---------
    Released code of arXiv 2601.05724, `FastHSD` in its simulation. That code also stops wherever r_t of the branch's
    own draft is at least 1, which here follows from 0/0 = 1.

    Examples
    --------
    >>> import fly_theory as ft
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> ft.block_rule("hierarchical-uncapped:l=0.5").length_law(block).round(12).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "hierarchical-uncapped"
    l: Number = parameter(
        Interval(0, 1, low_open=True),
        "lenience: the draft probabilities of the prefix are multiplied by l",
        default=1,
        typical=(0.5, 1),
    )

    def weights(self, block: Block) -> tuple[Array, Array]:
        return _likelihoods(block, lenience=self.l)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (FixedPoint(),)


def _likelihoods(block: Block, *, lenience: Number = 1) -> tuple[Array, Array]:
    """Likelihoods (..., K+1) of the prefixes under target and draft, up to a common factor that makes the larger 1."""
    xp = array_namespace(block.target)
    at_p, at_q = block.target_at_tokens, block.draft_at_tokens * scalar(lenience, block.draft)
    p, q = [xp.ones_like(at_p[..., 0])], [xp.ones_like(at_q[..., 0])]
    for i in range(block.draft_length):
        next_p, next_q = p[-1] * at_p[..., i], q[-1] * at_q[..., i]
        larger = xp.maximum(next_p, next_q)
        p.append(share(next_p, larger))
        q.append(share(next_q, larger))
    return xp.stack(p, axis=-1), xp.stack(q, axis=-1)
