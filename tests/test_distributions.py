"""Softmax, validation, warpers against the released code of transformers, entropies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import fly_theory as ft
from fly_theory import allowed_sets
from fly_theory.errors import DistributionError, InvalidInput, ParameterError, ShapeError

LOGITS = st.lists(st.floats(-20, 20), min_size=2, max_size=40).map(np.array)


@given(LOGITS, st.sampled_from([0.25, 0.7, 1.0, 3.0]))
def test_softmax_is_scipys(logits, temperature):
    np.testing.assert_allclose(
        ft.softmax(logits, temperature=temperature), special.softmax(logits / temperature), atol=1e-15
    )


def test_softmax_at_temperature_zero_takes_the_lowest_id_among_ties():
    assert ft.softmax([1.0, 3.0, 3.0, 2.0], temperature=0).tolist() == [0, 1, 0, 0]


def test_softmax_masks_minus_infinity():
    assert ft.softmax([0.0, -np.inf, 0.0]).tolist() == [0.5, 0, 0.5]


def test_softmax_reads_half_precision_and_returns_float32():
    import torch

    for dtype in (torch.float16, torch.bfloat16):
        p = ft.softmax(torch.zeros(2, 4, dtype=dtype))
        assert p.dtype == torch.float32
        assert p.tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0.0, np.nan], r"logits have nan at index 1"),
        ([[0.0, 0.0], [np.inf, 0.0]], r"logits row 1 have inf at index 0"),
        ([[0.0, 0.0], [-np.inf, -np.inf]], r"logits row 1 are all -inf"),
        (np.array([1, 2]), "dtype int64"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
    ],
)
def test_bad_logits(logits, message):
    with pytest.raises(InvalidInput, match=message):
        ft.softmax(logits)


@pytest.mark.parametrize("temperature", [-1, float("nan"), float("inf")])
def test_bad_temperature(temperature):
    with pytest.raises(InvalidInput, match="temperature="):
        ft.softmax([0.0, 1.0], temperature=temperature)


WARPERS = [
    {"temperature": 0.7},
    {"top_k": 1},
    {"top_k": 5},
    {"top_k": 1000},
    {"top_p": 0.3},
    {"top_p": 0.9},
    {"min_p": 0.1},
    {"min_p": 1.0},
    {"epsilon": 0.02},
    {"epsilon": 0.9},
    {"eta": 0.01},
    {"eta": 0.3},
    {"temperature": 1.5, "top_k": 12, "top_p": 0.8, "min_p": 0.05, "epsilon": 0.01, "eta": 0.02},
]


def transformers_law(logits: np.ndarray, settings: dict[str, float]) -> np.ndarray:
    import torch
    from transformers import (
        EpsilonLogitsWarper,
        EtaLogitsWarper,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    makers = {
        "temperature": TemperatureLogitsWarper,
        "top_k": TopKLogitsWarper,
        "top_p": TopPLogitsWarper,
        "min_p": MinPLogitsWarper,
        "epsilon": EpsilonLogitsWarper,
        "eta": EtaLogitsWarper,
    }
    scores = torch.as_tensor(logits)[None]
    for name, value in settings.items():
        scores = makers[name](value)(None, scores)
    return torch.softmax(scores, -1)[0].numpy()


@pytest.mark.parametrize("settings", WARPERS, ids=str)
@pytest.mark.parametrize("scale", [0.5, 3.0, 12.0])
def test_warpers_keep_the_sets_of_transformers(settings, scale):
    rng = np.random.default_rng(0)
    for _ in range(20):
        logits = scale * rng.standard_normal(50)
        np.testing.assert_allclose(ft.warp(logits, **settings), transformers_law(logits, settings), atol=1e-12)


def test_top_k_and_min_p_keep_ties():
    assert ft.warp([0.0, 1.0, 1.0], top_k=1).tolist() == [0, 0.5, 0.5]
    assert ft.warp([0.0, 1.0, 1.0], min_p=1.0).tolist() == [0, 0.5, 0.5]


def test_top_p_takes_the_lowest_ids_among_equals():
    assert ft.warp([0.0, 0.0, 0.0, 0.0], top_p=0.5).tolist() == [0.5, 0.5, 0, 0]


def test_filters_renormalise_one_after_the_other():
    """p = (.4, .3, .2, .1): top-k 2 gives (4/7, 3/7); top-p 1/2 of that keeps one token, of the raw row two."""
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    assert ft.warp(logits, top_k=2, top_p=0.5).tolist() == [1, 0, 0, 0]
    np.testing.assert_allclose(ft.warp(logits, top_p=0.5), [4 / 7, 3 / 7, 0, 0])


@pytest.mark.parametrize("settings", [{"top_k": 0}, {"top_k": 1.5}, {"top_p": 1.1}, {"min_p": -0.1}, {"eta": 2}])
def test_bad_warper_settings(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        ft.warp([0.0, 1.0], **settings)


@pytest.mark.parametrize(
    ("p", "q", "error", "message"),
    [
        ([0.5, 0.6], [0.5, 0.5], DistributionError, r"^p sums to 1\.1"),
        ([0.5, 0.5], [[0.5, 0.5], [0.4, 0.5]], DistributionError, r"^q row 1 sums to 0\.9"),
        ([1.5, -0.5], [0.5, 0.5], DistributionError, r"^p has entry -0\.5 at index 1"),
        ([0.5, 0.5], [[[0.5, 0.5], [np.nan, 1]]], DistributionError, r"^q row \(0, 1\) has entry nan at index 0"),
        ([np.inf, 0], [0.5, 0.5], DistributionError, r"^p has entry inf at index 0"),
        ([0.5, 0.5], [0.5, 0.25, 0.25], ShapeError, "different vocabularies: 2 and 3"),
        ([[0.5, 0.5]] * 2, [[0.5, 0.5]] * 3, ShapeError, r"\(2, 2\) and q \(3, 2\) do not broadcast"),
        (np.array([1, 0]), np.array([1, 0]), DistributionError, "dtype int64"),
        (np.array([1, 0], np.float16), [0.5, 0.5], DistributionError, "dtype float16"),
        (np.float64(1), [1.0], ShapeError, "p has shape"),
    ],
)
def test_bad_pairs_are_named(p, q, error, message):
    for function in (ft.rule("lossless").verdict, ft.rule("lossless").induced, ft.divergence.kl):
        with pytest.raises(error, match=message):
            function(p, q)


def test_mixed_array_types_are_refused():
    import torch

    with pytest.raises(DistributionError, match="give both as one array type"):
        ft.rule("lossless").induced(np.array([0.5, 0.5]), torch.tensor([0.5, 0.5]))


@given(LOGITS)
def test_entropies(logits):
    p = special.softmax(logits)
    assert float(ft.entropy(p)) == pytest.approx(stats.entropy(p), abs=1e-12)
    assert float(ft.normalised_entropy(p)) == pytest.approx(stats.entropy(p) / np.log(len(p)), abs=1e-12)
    top = np.sort(p)[::-1][:3]
    assert float(ft.top_k_entropy(p, 3)) == pytest.approx(-(top * np.log(top)).sum(), abs=1e-12)


def test_entropy_at_zeros():
    assert float(ft.entropy(np.array([1.0, 0.0]))) == 0
    assert float(ft.top_k_entropy(np.full(3, 1 / 3), 3)) == pytest.approx(np.log(3))


def test_typical_set_ties_are_a_choice():
    p = np.array([0.91, 0.09])
    assert allowed_sets.relative_to_entropy(p, 0.09, 1.0, keep_ties=True).tolist() == [True, True]
    assert allowed_sets.relative_to_entropy(p, 0.09, 1.0, keep_ties=False).tolist() == [True, False]


def test_medusas_reference_threshold():
    """p = (.6, .3, .1): H = 0.898, so the threshold is min(.09, .3 e^-H) = .09 and even token 2 is kept."""
    p = np.array([0.6, 0.3, 0.1])
    assert float(ft.entropy(p)) == pytest.approx(0.898, abs=5e-4)
    assert ft.Typical().allowed_set(p).all()
    assert 0.09 * np.exp(-float(ft.entropy(p))) == pytest.approx(0.0367, abs=1e-4)
