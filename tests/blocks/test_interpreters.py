"""Every block rule gives the same laws under numpy, torch, jax (eager, jit, vmap) and exact arrays, batched or not."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.blocks.base import FirstRejection
from fly_theory.blocks.fly import DeferredWindow
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules


def typical_rules():
    yield ft.block_rule("lossless")
    yield ft.block_rule("cactus:delta=0.1")
    for name in rules(level="block"):
        cls = rule_class(name, level="block")
        yield cls(**{p.name: p.default if p.typical == () else p.typical[0] for p in parameters(cls)})
    for spec in ("fly:theta=0.3,window=2", "fly-ceiling:theta=0.3,window=1,floor=0.1", "hierarchical-uncapped:l=1"):
        yield ft.block_rule(spec)
    for setting in ("window=2,gate=normalised", "window=3,temperature=1", "window=2,temperature=0.5,samples=1"):
        yield ft.block_rule(f"fly-released:theta=0.3,{setting}")


def laws(br):
    """Length law and the law of (kept drafts, next token): rows of impossible lengths are nobody's business."""

    def both(block):
        law = br.length_law(block)
        return law, law[..., None] * br.next_token(block)

    return both


RULES = list(typical_rules())
by_spec = pytest.mark.parametrize("br", RULES, ids=lambda br: br.spec)


def arrays(seed=0, batch=(2, 3), K=5, V=4):
    """Target, draft and tokens with zeros, equal rows and a certain draft among them."""
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.full(V, 0.5), (*batch, K + 1))
    draft = rng.dirichlet(np.full(V, 0.5), (*batch, K))
    target[..., 1, :] = [0.5, 0, 0.25, 0.25]
    draft[..., 2, :] = target[..., 2, :]
    draft[..., 3, :] = np.eye(V)[1]
    tokens = np.where(
        rng.random((*batch, K)) < 0.5, target[..., :-1, :].argmax(-1), (draft.cumsum(-1) > 0.5).argmax(-1)
    )
    draft = np.where(np.take_along_axis(draft, tokens[..., None], -1) > 0, draft, target[..., :-1, :])
    draft = np.where(np.take_along_axis(draft, tokens[..., None], -1) > 0, draft, np.eye(V)[tokens])
    return target, draft, tokens


@by_spec
def test_laws_are_laws(br):
    block = ft.Block(*arrays(batch=(50,)))
    law, token = br.length_law(block), br.next_token(block)
    assert law.shape == (50, 6)
    assert token.shape == (50, 6, 4)
    assert law.min() >= 0
    np.testing.assert_allclose(law.sum(-1), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(token.sum(-1)[law > 1e-12], 1, rtol=0, atol=1e-14)


@by_spec
def test_backends_agree_to_1e12_in_float64(br):
    import jax
    import torch

    target, draft, tokens = arrays()
    block = ft.Block(target, draft, tokens)
    of_torch = ft.Block(*map(torch.as_tensor, (target, draft, tokens)))
    of_jax = ft.Block(*map(jax.numpy.asarray, (target, draft, tokens)))
    expected = laws(br)(block)
    results = {
        "torch": laws(br)(of_torch),
        "jit": jax.jit(laws(br))(of_jax),
        "vmap": jax.jit(jax.vmap(jax.vmap(laws(br))))(of_jax),
    }
    for name, result in results.items():
        for ours, theirs in zip(result, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=1e-12, err_msg=name)


@by_spec
def test_decisions_agree_on_one_tape(br):
    import jax
    import torch

    target, draft, tokens = arrays(1)
    uniforms = np.random.default_rng(2).random((7, *tokens.shape))
    expected = br.decide(ft.Block(target, draft, tokens), uniforms)
    assert expected.shape == (7, 2, 3)
    of_torch = ft.Block(*map(torch.as_tensor, (target, draft, tokens)))
    of_jax = ft.Block(*map(jax.numpy.asarray, (target, draft, tokens)))
    np.testing.assert_array_equal(br.decide(of_torch, torch.as_tensor(uniforms)), expected)
    np.testing.assert_array_equal(jax.jit(br.decide)(of_jax, uniforms), expected)
    tapes = jax.jit(jax.vmap(br.decide, in_axes=(None, 0)))
    np.testing.assert_array_equal(tapes(of_jax, uniforms), expected)


@by_spec
def test_exact_arrays_give_the_same_laws(br):
    if Interpreter.EXACT in br.unreadable:
        pytest.skip(br.unreadable[Interpreter.EXACT])
    rng = np.random.default_rng(3)
    target, draft = rng.integers(1, 9, (4, 4, 3)), rng.integers(1, 9, (4, 3, 3))
    tokens = rng.integers(0, 3, (4, 3))
    shares = [
        [[[Fraction(int(w), int(row.sum())) for w in row] for row in rows] for rows in x] for x in (target, draft)
    ]
    exact = ft.Block(*map(ft.exact, shares), tokens)
    rounded = ft.Block(*(np.asarray(x, dtype=float) for x in (exact.target, exact.draft)), tokens)
    for ours, theirs in zip(laws(br)(exact), laws(br)(rounded), strict=True):
        np.testing.assert_allclose(np.asarray(ours, dtype=float), theirs, rtol=0, atol=1e-14)
    uniforms = rng.integers(0, 100, (4, 3))
    of_fractions = ft.exact(uniforms.tolist()) / 100
    np.testing.assert_array_equal(br.decide(exact, of_fractions), br.decide(rounded, uniforms / 100))


@by_spec
def test_blocks_of_a_batch_do_not_touch_each_other(br):
    target, draft, tokens = arrays(4, batch=(6,))
    together = laws(br)(ft.Block(target, draft, tokens))
    alone = [laws(br)(ft.Block(*rows)) for rows in zip(target, draft, tokens, strict=True)]
    for ours, theirs in zip(together, map(np.stack, zip(*alone, strict=True)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)


@by_spec
def test_the_decision_integrates_to_the_length_law(br):
    """All outcomes of the K coins, weighted by what each coin's threshold says."""
    block = ft.Block(*arrays(5, batch=(4,), K=4))
    thresholds = br.match_probability(block) if isinstance(br, DeferredWindow) else br.passes(block)
    law = np.zeros((4, 5))
    for outcome in itertools.product([True, False], repeat=4):
        weight = np.where(outcome, thresholds, 1 - thresholds).prod(-1)
        kept = br.decide(block, np.where(outcome, thresholds * (1 - 1e-9), np.minimum(thresholds, np.nextafter(1, 0))))
        np.add.at(law, (np.arange(4), kept), weight)
    np.testing.assert_allclose(law, br.length_law(block), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", ["lossless", "block"])
def test_uniforms_at_a_threshold_reject_and_zero_accepts(spec):
    """P(u < h) = h for u in [0, 1): a test of probability 0 never passes, one of probability 1 always does."""
    row = [[0.5, 0.5]]
    block = ft.Block(row * 2, [[0.25, 0.75]], [[0], [1]])
    br = ft.block_rule(spec)
    for uniform, kept in ((0.0, [1, 1]), (2 / 3, [1, 0]), (np.nextafter(1, 0), [1, 0])):
        assert br.decide(block, np.full((2, 1), uniform)).tolist() == kept
    impossible = ft.Block([[1.0, 0.0]] * 2, [[0.0, 1.0]], [1])
    assert br.decide(impossible, np.array([0.0])) == 0


@pytest.mark.parametrize("spec", ["block", "hierarchical", "hierarchical-naive", "lossless"])
def test_long_blocks_of_extreme_ratios_neither_overflow_nor_vanish(spec):
    """40 drafts with ratios of 1e+-30, in float32: joint probabilities as numbers would be 1e+-1200."""
    K, small = 40, np.float32(1e-30)
    up, down = np.array([1, small], dtype=np.float32), np.array([small, 1], dtype=np.float32)
    for half in (K // 2, 0):
        target = np.stack([up] * half + [down] * (K + 1 - half))
        draft = np.stack([down] * half + [up] * (K - half))
        law = ft.block_rule(spec).length_law(ft.Block(target, draft, np.zeros(K, dtype=int)))
        assert np.isfinite(law).all()
        assert law.sum() == pytest.approx(1, abs=1e-6)


def test_every_block_rule_declares_what_kind_of_decision_it_makes():
    assert isinstance(ft.block_rule("lossless"), FirstRejection)
    assert [br.name for br in RULES if br.completes_block] == ["hierarchical-naive"]
