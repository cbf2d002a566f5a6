"""Block verification."""

from dataclasses import dataclass
from typing import ClassVar

from fly_theory.arrays import Array, array_namespace, normalise, positive_part
from fly_theory.blocks.base import Block, LongestPass, share
from fly_theory.blocks.claims import KeepsAtLeast
from fly_theory.claims import Claim, FixedPoint, Lossless


@dataclass(frozen=True, kw_only=True)
class BlockVerification(LongestPass):
    """Test every prefix of the draft against its joint probability; keep the longest that passes.

    Statement
    ---------
    b_0 = 1,  b_i = min(1, b_{i-1} p_{i-1}(x_i) / q_{i-1}(x_i)),  s_i = sum_x (b_i p_i(x) - q_i(x))+
    h_i = s_i / (s_i + 1 - b_i) for i < K (h_0 = 1, 0/0 = 1),  h_K = b_K
    n = max{i : u_i < h_i};  next token from (b_n p_n - q_n)+ for n < K, the bonus token from p_K.

    Every prefix is tested, also after a shorter one failed, and the u_i are independent.

    Guarantee
    ---------
    Lossless. P(n >= i | x_1..x_i) = b_i, hence E[n] = sum_i E[b_i]; in place of b_i the lossless token rule has
    prod_{j <= i} min(1, p/q), which is never larger. No lossless verifier that emits a draft prefix and one more token,
    and reads only the rows along the drafted path, keeps more.

    Reference
    ---------
    Sun et al. 2024 (arXiv 2403.10444), Algorithm 2, Theorems 1 and 2.

    Examples
    --------
    Expected kept drafts when every row has p = (1/3, 2/3), q = (2/3, 1/3) and K = 2 is 11/9.

    >>> import numpy as np, fly_theory as ft
    >>> block = ft.Block([[1/3, 2/3]] * 3, [[2/3, 1/3]] * 2, [[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> drafted = block.draft_at_tokens.prod(axis=-1)
    >>> round(float(drafted @ ft.block_rule("block").length_law(block) @ np.arange(3)), 12) == round(11 / 9, 12)
    True
    """

    name: ClassVar[str] = "block"

    def passes(self, block: Block) -> Array:
        xp = array_namespace(block.target)
        b = joint_acceptance(block)
        s = xp.sum(_residual(block, b), axis=-1)
        between = slice(1, -1)
        h = xp.where(b[..., between] < 1, share(s[..., 1:], s[..., 1:] + (1 - b[..., between])), 1)
        return xp.concat([h, b[..., -1:]], axis=-1)

    def next_token(self, block: Block) -> Array:
        xp = array_namespace(block.target)
        return xp.concat([normalise(_residual(block, joint_acceptance(block))), block.target[..., -1:, :]], axis=-2)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (Lossless(), KeepsAtLeast("lossless"), FixedPoint())


def joint_acceptance(block: Block) -> Array:
    """b_0..b_K (..., K+1): the probability that a lossless verifier can keep at least the first i drafts with."""
    xp = array_namespace(block.target)
    p, q = block.target_at_tokens, block.draft_at_tokens
    b = [xp.ones_like(p[..., 0])]
    for i in range(block.draft_length):
        b.append(share(xp.minimum(q[..., i], b[-1] * p[..., i]), q[..., i]))
    return xp.stack(b, axis=-1)


def _residual(block: Block, b: Array) -> Array:
    return positive_part(b[..., :-1, None] * block.judging - block.draft)
