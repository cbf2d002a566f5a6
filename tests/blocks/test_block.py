"""A block is validated where it is made, broadcasts, and passes through jax; lifting and naming of block rules."""

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import DistributionError, InvalidInput, ShapeError, UnknownName

ROW = [0.5, 0.5]


@pytest.mark.parametrize(
    ("target", "draft", "tokens", "error", "message"),
    [
        ([ROW], np.zeros((0, 2)), np.zeros(0, dtype=int), ShapeError, "at least one drafted token"),
        ([ROW] * 2, [ROW] * 2, [0, 1], ShapeError, r"target \(2, 2\), draft \(2, 2\), tokens \(2,\) do not fit"),
        ([ROW] * 3, [ROW], [0, 1], ShapeError, "do not fit together"),
        ([ROW] * 2, [[0.2, 0.3, 0.5]], [0], ShapeError, "do not fit together"),
        (ROW, [ROW], [0], ShapeError, "do not fit together"),
        ([[ROW] * 2] * 2, [[ROW]] * 3, [0], ShapeError, "batch axes do not broadcast"),
        ([ROW, [0.5, 0.6]], [ROW], [0], DistributionError, "target row 1 sums to 1.1"),
        ([ROW] * 2, [[-0.5, 1.5]], [0], DistributionError, "draft row 0 has entry -0.5 at index 0"),
        ([ROW] * 2, [ROW], [2], InvalidInput, r"tokens contain 2; ids of this vocabulary are 0\.\.1"),
        ([ROW] * 2, [ROW], [-1], InvalidInput, "tokens contain -1"),
        ([ROW] * 2, [ROW], [0.0], InvalidInput, "token ids are integers"),
    ],
)
def test_bad_blocks_are_refused_with_the_reason(target, draft, tokens, error, message):
    with pytest.raises(error, match=message):
        ft.Block(target, draft, tokens)


def test_batch_axes_broadcast():
    block = ft.Block([ROW] * 3, [[ROW] * 2] * 4, np.zeros((5, 1, 2), dtype=int))
    assert [x.shape for x in block] == [(5, 4, 3, 2), (5, 4, 2, 2), (5, 4, 2)]
    assert block.draft_length == 2
    assert ft.block_rule("block").length_law(block).shape == (5, 4, 3)


@pytest.mark.parametrize(
    ("uniforms", "error", "message"),
    [
        (np.zeros(3), ShapeError, r"expected \(..., 2\)"),
        (np.array([0.5, 1.0]), InvalidInput, r"allowed are numbers in \[0, 1\)"),
    ],
)
@pytest.mark.parametrize("spec", ["lossless", "block", "fly:theta=0.3,window=1"])
def test_bad_uniforms_are_refused(spec, uniforms, error, message):
    block = ft.Block([ROW] * 3, [ROW] * 2, [0, 1])
    with pytest.raises(error, match=message):
        ft.block_rule(spec).decide(block, uniforms)


def test_a_block_is_a_pytree():
    import jax

    block = ft.Block(*map(jax.numpy.asarray, ([ROW] * 3, [ROW] * 2, [0, 1])))
    mapped = jax.tree.map(lambda x: x[None], block)
    assert isinstance(mapped, ft.Block)
    assert mapped.tokens.shape == (1, 2)


def test_a_rule_whose_redraw_depends_on_the_rejected_token_is_lifted_with_it():
    """sample-match redraws from p without the draft: after a rejection of x, x cannot come out."""
    block = ft.Block([[0.5, 0.3, 0.2]] * 3, [[0.2, 0.3, 0.5]] * 2, [[0, 1], [2, 2]])
    token = ft.block_rule("sample-match:n=1").next_token(block)
    assert token[0, :, :].round(12).tolist() == [
        [0, 0.6, 0.4],
        [round(5 / 7, 12), 0, round(2 / 7, 12)],
        [0.5, 0.3, 0.2],
    ]
    assert token[1, 0].round(12).tolist() == [0.625, 0.375, 0]


def test_names_of_block_rules():
    assert ft.block_rule("lenience:l=0.5").spec == "lenience:l=0.5"
    assert ft.block_rule("lenience:l=0.5") == ft.tokenwise(ft.rule("lenience:l=0.5"))
    for name in ("block", "hierarchical-uncapped:l=0.5", "fly:theta=0.3,window=6", "fly-released:theta=0.3,window=6"):
        assert ft.block_rule(ft.block_rule(name).spec) == ft.block_rule(name)
    assert isinstance(ft.block_rule("block"), ft.BlockVerification)
    with pytest.raises(UnknownName, match="'block' is a block-level rule; use ft"):
        ft.rule("block")
    with pytest.raises(UnknownName, match="hierarchical-mincap"):
        ft.block_rule("hierarchical-min")
    with pytest.raises(InvalidInput, match=r"ft.tokenwise\(ft.rule\(SPEC\)\)"):
        ft.tokenwise("lossless")
