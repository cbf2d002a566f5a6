"""The exact array: a citizen of the array API that agrees with Fractions and with numpy, and refuses floats."""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from array_api_compat import array_namespace, device
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory import arrays
from fly_theory.errors import ExactnessError, InvalidInput, ShapeError, UndecidableError
from fly_theory.exact import ExactArray, exact, namespace, rational

fractions = st.fractions(min_value=-3, max_value=3, max_denominator=12)
rows = st.lists(fractions, min_size=1, max_size=6)


def table(rows: int = 3, columns: int = 4, seed: int = 0, *, positive: bool = False) -> ExactArray:
    """A rational array with ties and (unless `positive`) zeros and negatives; denominators are powers of two."""
    entries = np.random.default_rng(seed).integers(1 if positive else -4, 5, (rows, columns))
    return exact([[Fraction(int(entry), 4) for entry in row] for row in entries])


@given(rows, rows)
def test_arithmetic_agrees_with_fractions(a, b):
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    x, y = exact(a), exact(b)
    assert (x + y).tolist() == [u + v for u, v in zip(a, b, strict=True)]
    assert (x - y).tolist() == [u - v for u, v in zip(a, b, strict=True)]
    assert (x * y).tolist() == [u * v for u, v in zip(a, b, strict=True)]
    assert (-x).tolist() == [-u for u in a]
    assert abs(x).tolist() == [abs(u) for u in a]
    assert (x**3).tolist() == [u**3 for u in a]
    assert (2 * x - Fraction(1, 3)).tolist() == [2 * u - Fraction(1, 3) for u in a]
    assert (1 - x).tolist() == [1 - u for u in a]
    assert (x < y).tolist() == [u < v for u, v in zip(a, b, strict=True)]
    assert (x == y).tolist() == [u == v for u, v in zip(a, b, strict=True)]
    assert (x >= 0).tolist() == [u >= 0 for u in a]
    if all(b):
        assert (x / y).tolist() == [u / v for u, v in zip(a, b, strict=True)]
        assert (1 / y).tolist() == [1 / v for v in b]


X, Y, MASK = table(seed=1), table(seed=2), np.random.default_rng(3).random((3, 4)) < 0.5
POSITIVE = table(seed=4, positive=True)
ORDER = np.random.default_rng(5).permuted(np.tile(np.arange(4), (3, 1)), axis=1)

# name -> a call given a namespace and a converter of arrays: the same call runs on numpy and on exact arrays.
CALLS = {
    "abs": lambda xp, a: xp.abs(a(X)),
    "add": lambda xp, a: xp.add(a(X), a(Y)),
    "all": lambda xp, a: xp.all(a(X) > 0, axis=-1),
    "any": lambda xp, a: xp.any(a(X) > 0, axis=0, keepdims=True),
    "arange": lambda xp, a: xp.arange(2, 7, 2),
    "argmax": lambda xp, a: xp.argmax(a(X), axis=-1),
    "argmin": lambda xp, a: xp.argmin(a(X), axis=-1, keepdims=True),
    "argsort": lambda xp, a: xp.argsort(a(X), axis=-1, descending=True, stable=True),
    "asarray": lambda xp, a: xp.asarray(a(X)),
    "astype": lambda xp, a: xp.astype(a(X) > 0, xp.int32),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a(X)[:1], a(Y))[0],
    "broadcast_to": lambda xp, a: xp.broadcast_to(a(X)[0], (2, 4)),
    "clip": lambda xp, a: xp.clip(a(X), min=0),
    "concat": lambda xp, a: xp.concat([a(X), a(Y)], axis=-1),
    "count_nonzero": lambda xp, a: xp.count_nonzero(a(X) > 0, axis=-1),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a(X), axis=-1, include_initial=True),
    "cumulative_sum": lambda xp, a: xp.cumulative_sum(a(X), axis=0, include_initial=True),
    "divide": lambda xp, a: xp.divide(a(X), a(POSITIVE)),
    "equal": lambda xp, a: xp.equal(a(X), a(Y)),
    "exp": lambda xp, a: xp.exp(a(X)),
    "expand_dims": lambda xp, a: xp.expand_dims(a(X), axis=1),
    "expm1": lambda xp, a: xp.expm1(a(X)),
    "flip": lambda xp, a: xp.flip(a(X), axis=-1),
    "full": lambda xp, a: xp.full((2, 3), 2),
    "full_like": lambda xp, a: xp.full_like(a(X), 3),
    "greater": lambda xp, a: xp.greater(a(X), a(Y)),
    "greater_equal": lambda xp, a: xp.greater_equal(a(X), a(Y)),
    "isfinite": lambda xp, a: xp.isfinite(a(X)),
    "isinf": lambda xp, a: xp.isinf(a(X)),
    "isnan": lambda xp, a: xp.isnan(a(X)),
    "less": lambda xp, a: xp.less(a(X), a(Y)),
    "less_equal": lambda xp, a: xp.less_equal(a(X), a(Y)),
    "log": lambda xp, a: xp.log(a(POSITIVE)),
    "log1p": lambda xp, a: xp.log1p(a(POSITIVE)),
    "log2": lambda xp, a: xp.log2(a(POSITIVE)),
    "logical_and": lambda xp, a: xp.logical_and(a(X) > 0, MASK),
    "logical_not": lambda xp, a: xp.logical_not(a(X) > 0),
    "logical_or": lambda xp, a: xp.logical_or(a(X) > 0, MASK),
    "logical_xor": lambda xp, a: xp.logical_xor(a(X) > 0, MASK),
    "matmul": lambda xp, a: xp.matmul(a(X), a(Y).mT),
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a(X)),
    "max": lambda xp, a: xp.max(a(X), axis=-1, keepdims=True),
    "maximum": lambda xp, a: xp.maximum(a(X), a(Y)),
    "mean": lambda xp, a: xp.mean(a(X), axis=-1),
    "min": lambda xp, a: xp.min(a(X), axis=0),
    "minimum": lambda xp, a: xp.minimum(a(X), a(Y)),
    "moveaxis": lambda xp, a: xp.moveaxis(a(X), 0, 1),
    "multiply": lambda xp, a: xp.multiply(a(X), a(Y)),
    "negative": lambda xp, a: xp.negative(a(X)),
    "not_equal": lambda xp, a: xp.not_equal(a(X), a(Y)),
    "ones": lambda xp, a: xp.ones((2, 2)),
    "ones_like": lambda xp, a: xp.ones_like(a(X)),
    "permute_dims": lambda xp, a: xp.permute_dims(a(X), (1, 0)),
    "positive": lambda xp, a: xp.positive(a(X)),
    "pow": lambda xp, a: xp.pow(a(POSITIVE), a(X)),
    "prod": lambda xp, a: xp.prod(a(X), axis=-1),
    "reshape": lambda xp, a: xp.reshape(a(X), (-1, 2)),
    "roll": lambda xp, a: xp.roll(a(X), 1, axis=-1),
    "sign": lambda xp, a: xp.sign(a(X)),
    "sort": lambda xp, a: xp.sort(a(X), axis=-1),
    "sqrt": lambda xp, a: xp.sqrt(a(POSITIVE)),
    "square": lambda xp, a: xp.square(a(X)),
    "squeeze": lambda xp, a: xp.squeeze(a(X)[:, :1], axis=1),
    "stack": lambda xp, a: xp.stack([a(X), a(Y)], axis=1),
    "subtract": lambda xp, a: xp.subtract(a(X), a(Y)),
    "sum": lambda xp, a: xp.sum(a(X), axis=(0, 1)),
    "take": lambda xp, a: xp.take(a(X), xp.arange(2), axis=1),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a(X), ORDER, axis=-1),
    "where": lambda xp, a: xp.where(MASK, a(X), 0),
    "zeros": lambda xp, a: xp.zeros((2, 2)),
    "zeros_like": lambda xp, a: xp.zeros_like(a(X)),
}


def operations() -> set[str]:
    return {
        name
        for name, value in vars(namespace).items()
        if callable(value)
        and not inspect.isclass(value)
        and not name.startswith("_")
        and getattr(value, "__module__", "") in (namespace.__name__, "fly_theory.exact.lifting")
        and name not in ("all_integers", "elementwise", "exact_array", "lifted", "together", "values_of", "wrap")
    }


def test_every_operation_of_the_namespace_is_compared_with_numpy():
    assert operations() == set(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_agrees_with_numpy(name):
    """Array by array, shape by shape, against array-api-compat's numpy at float64."""
    floats = array_namespace(np.zeros(1))
    expected = CALLS[name](floats, lambda x: np.asarray(x, dtype=float))
    found = CALLS[name](namespace, lambda x: x)
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        assert isinstance(found, ExactArray)
        np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=1e-14, atol=1e-14)
    else:
        assert isinstance(found, np.ndarray)
        assert found.dtype.kind == expected.dtype.kind
        np.testing.assert_array_equal(found, expected)


def test_attributes_and_namespace():
    assert array_namespace(X, Y) is namespace
    assert device(X) == "cpu"
    assert X.is_exact
    assert X.dtype is rational
    assert (X.shape, X.ndim, X.size, len(X)) == ((3, 4), 2, 12, 3)
    assert [row.shape for row in X] == [(4,)] * 3
    assert X[1, 2].ndim == 0
    assert X[..., None].shape == (3, 4, 1)
    assert X[MASK].ndim == 1
    with pytest.raises(TypeError):
        hash(X)
    with pytest.raises(TypeError):
        X[0, 0] = 1
    assert X != "text"


def test_elements_leave_as_fractions():
    x = exact(["1/3", "0.25", 2, Fraction(5, 7)])
    assert x.tolist() == [Fraction(1, 3), Fraction(1, 4), Fraction(2), Fraction(5, 7)]
    assert isinstance(x[0].item(), Fraction)
    assert float(x[1]) == 0.25
    assert int(x[2]) == 2
    assert bool(x[2])
    assert not exact(0)
    assert repr(x) == "exact([1/3, 1/4, 2, 5/7])"
    assert repr(x[0]) == "exact(1/3)"
    assert exact(x) is x
    assert exact(np.array([1, 2])).tolist() == [1, 2]
    assert exact([x[0], x[1]]).tolist() == [Fraction(1, 3), Fraction(1, 4)]
    for wrong in (x.item, lambda: float(x), lambda: bool(x)):
        with pytest.raises(ShapeError, match="one element"):
            wrong()


def test_masks_and_tokens_are_numpy_arrays_throughout():
    """The shared array operations run on an exact array beside integer token ids."""
    tokens = np.array([0, 3, 1])
    assert arrays.take(X, tokens).tolist() == [X[i, t].item() for i, t in enumerate(tokens)]
    assert arrays.one_hot(tokens, X).tolist() == [[int(v == t) for v in range(4)] for t in tokens]
    assert arrays.positive_part(X).tolist() == [[max(v, 0) for v in row] for row in X.tolist()]
    weights = exact(["1/4", 0, "1/2", "1/4"])
    for uniform, token in (("0", 0), ("249/1000", 0), ("1/4", 2), ("3/4", 3), ("999/1000", 3)):
        assert arrays.inverse_cdf(weights, exact(uniform)) == token
    assert arrays.normalise(exact([[1, 1, 2], [0, 0, 0]])).tolist() == [
        [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
        [0, 0, 0],
    ]
    assert arrays.constant(0.4, X).item() == Fraction(2, 5)


def test_irrational_elements_compare_but_have_no_value():
    p = exact(["1/2", "1/4", "1/4"])
    entropy = ft.entropy(p)
    assert entropy > 1
    assert float(entropy) == pytest.approx(1.5 * math.log(2))
    with pytest.raises(ExactnessError, match="irrational"):
        entropy.item()
    assert ft.normalised_entropy(exact(["1/3", "1/3", "1/3"])).item() == 1
    both, same = (
        namespace.sqrt(exact([2])) + namespace.sqrt(exact([3])),
        namespace.sqrt(5 + 2 * namespace.sqrt(exact([6]))),
    )
    for compare in (namespace.equal, namespace.less, namespace.maximum):
        with pytest.raises(UndecidableError):
            compare(both, same)


def test_divergences_are_exact_where_rational_and_infinite_where_infinite():
    p, out = exact(["1/2", "1/2", 0]), exact(["1/4", "1/4", "1/2"])
    assert ft.divergence.total_variation(p, out).item() == Fraction(1, 2)
    assert ft.divergence.chi2(out, p).item() == 1
    assert ft.divergence.max_ratio(out, p).item() == 2
    assert float(ft.divergence.max_ratio(p, out)) == math.inf
    assert float(ft.divergence.reverse_kl(p, out)) == math.inf
    assert namespace.isinf(ft.divergence.reverse_kl(p, out))
    assert float(ft.divergence.kl(p, out)) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: exact([0.5, 0.5]), "'1/2'"),
        (lambda: exact(np.array([0.5])), "'1/2'"),
        (lambda: X * 0.5, "Fraction('1/2')"),
        (lambda: 0.1 + X, "Fraction('1/10')"),
        (lambda: X < 0.5, "Fraction('1/2')"),
        (lambda: X == 0.5, "Fraction('1/2')"),
        (lambda: namespace.where(MASK, X, 0.5), "Fraction('1/2')"),
        (lambda: namespace.minimum(X, np.ones(4)), "ft.exact"),
        (lambda: X + np.ones(4), "ft.exact"),
        (lambda: np.ones(4) + X, "ft.exact"),
        (lambda: X * MASK, "xp.astype"),
        (lambda: X + np.arange(4), "xp.astype"),
        (lambda: namespace.where(MASK, X, np.arange(4)), "xp.astype"),
        (lambda: X + True, "write 1"),
        (lambda: X / exact(0), "xp.where"),
        (lambda: exact([0]) ** -1, "xp.where"),
        (lambda: np.asarray(X), "tolist"),
        (lambda: np.asarray(X, dtype=int), "tolist"),
        (lambda: namespace.astype(X, np.float64), "no floats"),
        (lambda: namespace.astype(exact(["1/2"]), np.int64), "not an integer"),
        (lambda: namespace.astype(np.ones(2), rational), "Fraction('1')"),
        (lambda: namespace.sin(X), "'sin'"),
        (lambda: namespace.float64, "'float64'"),
        (lambda: namespace.add(X, object()), "not an array"),
    ],
)
def test_floats_and_mixed_kinds_are_refused_with_what_to_write(wrong, hint):
    with pytest.raises(ExactnessError) as caught:
        wrong()
    assert hint in str(caught.value)


def test_other_libraries_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(ExactnessError, match="torch"):
        X + torch.ones(4)
    with pytest.raises(InvalidInput):
        ft.rule("lossless").induced(exact(["1/2", "1/2"]), np.array([0.5, 0.5]))


def test_validation_speaks_of_exact_rows():
    with pytest.raises(InvalidInput, match="sums to exact"):
        ft.rule("lossless").induced(exact(["1/2", "1/3"]), exact(["1/2", "1/2"]))
    with pytest.raises(InvalidInput, match="index 1"):
        ft.rule("lossless").induced(exact(["3/2", "-1/2"]), exact(["1/2", "1/2"]))
