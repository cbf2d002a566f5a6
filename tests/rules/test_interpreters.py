"""Every rule gives the same numbers under numpy, torch and jax (eager, jit, vmap), batched or not."""

import numpy as np
import pytest
from hypothesis import given

import fly_theory as ft
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules
from tests.strategies import pairs, rule_objects

RULES = rules(level="token")


def typical_rules():
    for name in RULES:
        cls = rule_class(name)
        choices = [p.typical or (p.default,) for p in parameters(cls)]
        for i in range(max((len(c) for c in choices), default=1)):
            yield cls(**{p.name: c[i % len(c)] for p, c in zip(parameters(cls), choices, strict=True)})


TYPICAL = list(typical_rules())


def random_rows(seed: int, rows: int, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(vocabulary, 0.3), rows) for _ in range(2))
    q[0] = p[0]
    p[1] = np.eye(vocabulary)[2]
    q[2] = np.eye(vocabulary)[0]
    return p, q


@pytest.mark.parametrize("rule", TYPICAL, ids=lambda r: r.spec)
def test_backends_agree_to_1e12_in_float64(rule):
    import jax
    import torch

    p, q = random_rows(0, 12, 17)
    expected = rule.verdict(p, q)
    results = {
        "torch": rule.verdict(torch.as_tensor(p), torch.as_tensor(q)),
        "jax": rule.verdict(jax.numpy.asarray(p), jax.numpy.asarray(q)),
        "jit": jax.jit(rule.verdict)(p, q),
        "vmap": jax.vmap(rule.verdict)(jax.numpy.asarray(p), jax.numpy.asarray(q)),
    }
    for name, (accepted, residual) in results.items():
        np.testing.assert_allclose(np.asarray(accepted), expected.accepted, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(np.asarray(residual), expected.residual, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rule", TYPICAL, ids=lambda r: r.spec)
def test_float32_stays_float32_and_close(rule):
    import jax
    import torch

    p, q = random_rows(1, 12, 17)
    p32, q32 = p.astype(np.float32), q.astype(np.float32)
    expected = (
        rule.induced(p32.astype(np.float64), q32.astype(np.float64)) if _sums_to_one(p32, q32) else rule.induced(p, q)
    )
    for result in (
        rule.induced(p32, q32),
        rule.induced(torch.as_tensor(p32), torch.as_tensor(q32)),
        rule.induced(jax.numpy.asarray(p32), jax.numpy.asarray(q32)),
    ):
        assert "float32" in str(result.dtype)
        # float32 rows carry errors of 1e-7 a token, which mentored's multipliers amplify
        np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=2e-6)


def _sums_to_one(*arrays: np.ndarray) -> bool:
    return all(np.all(np.abs(a.astype(np.float64).sum(-1) - 1) < 1e-9) for a in arrays)


@pytest.mark.parametrize("rule", TYPICAL, ids=lambda r: r.spec)
def test_rows_of_a_batch_do_not_touch_each_other(rule):
    p, q = random_rows(2, 6, 9)
    together = rule.induced(p.reshape(2, 3, 9), q.reshape(2, 3, 9)).reshape(6, 9)
    alone = np.stack([rule.induced(p[i], q[i]) for i in range(6)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-15)


@pytest.mark.parametrize("rule", TYPICAL, ids=lambda r: r.spec)
def test_batch_axes_broadcast(rule):
    p, q = random_rows(3, 5, 7)
    broadcast = rule.induced(p[:, None, :], q[None, :, :])
    np.testing.assert_allclose(broadcast[3, 4], rule.induced(p[3], q[4]), rtol=0, atol=1e-15)


@pytest.mark.parametrize("rule", TYPICAL, ids=lambda r: r.spec)
def test_inputs_are_not_mutated(rule):
    p, q = random_rows(4, 4, 6)
    p.setflags(write=False)
    q.setflags(write=False)
    first, second = rule.induced(p, q), rule.induced(p, q)
    np.testing.assert_array_equal(first, second)


@given(rule_objects(), pairs(max_size=16))
def test_sampler_follows_the_induced_distribution(rule, pair):
    """The law of the sampler, integrated exactly over its decision coin, is the induced distribution."""
    p, q = pair
    tokens = np.arange(len(p))
    law = np.zeros_like(p)
    for x in tokens[q > 0]:
        keep = float(rule.keep(p, q, x))
        law[x] += q[x] * keep
        rejected = q[x] * (1 - keep)
        if rejected > 1e-12:
            residual = rule.residual_after(p, q, x)
            law += rejected * residual / residual.sum()
    np.testing.assert_allclose(law, rule.induced(p, q), rtol=0, atol=1e-9)


@given(rule_objects(), pairs(max_size=12))
def test_sampler_never_emits_a_token_without_mass(rule, pair):
    p, q = pair
    tokens = np.flatnonzero(q > 0)
    out = rule.induced(p, q)
    below_one = np.nextafter(1.0, 0.0)
    for u in (0.0, 0.5, below_one):
        for v in (0.0, 0.5, below_one):
            uniforms = np.broadcast_to(np.array([u, v]), (len(tokens), 2))
            emitted = rule.sample(p, q, tokens, uniforms)
            assert np.all(out[emitted] > 0)


def test_sampling_frequencies_under_each_backend():
    """Chi-square on one rule and three backends; false-alarm budget 1e-6 for the whole test."""
    import jax
    import torch
    from scipy import stats

    rule, trials = ft.rule("lenience:l=0.5"), 20_000
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.1, 0.3, 0.4])
    rng = np.random.default_rng(5)
    tokens, uniforms = rng.choice(4, size=trials, p=q), rng.random((trials, 2))
    emitted = rule.sample(p, q, tokens, uniforms)
    np.testing.assert_array_equal(rule.sample(*(torch.as_tensor(a) for a in (p, q, tokens, uniforms))).numpy(), emitted)
    np.testing.assert_array_equal(jax.jit(rule.sample)(p, q, tokens, uniforms), emitted)
    counts = np.bincount(emitted, minlength=4)
    assert stats.chisquare(counts, trials * rule.induced(p, q)).pvalue > 1e-6
