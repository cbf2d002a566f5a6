"""The table of rule x interpreter, cell by cell: a declared yes runs and agrees with numpy, a declared no does not run.

The table of the README and of `fly-theory ls` is made from the same declarations.
"""

from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import ExactnessError, SymbolicError
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class

# Pairs with zeros, ties, a point mass, disjoint supports, equal rows.
PAIRS = [
    (["1/2", "3/10", "3/20", "1/20"], ["1/5", "1/10", "3/10", "2/5"]),
    (["1/3", "1/3", "1/3", 0], ["1/3", 0, "1/3", "1/3"]),
    ([0, 1, 0, 0], ["1/4", "1/4", "1/4", "1/4"]),
    (["1/2", "1/2", 0, 0], [0, 0, "3/4", "1/4"]),
    (["2/7", "2/7", "2/7", "1/7"], ["2/7", "2/7", "2/7", "1/7"]),
]


def settings_of(name):
    """A registered token-level rule at each of the typical values of its parameters."""
    cls = rule_class(name)
    choices = [p.typical or (p.default,) for p in parameters(cls)]
    return [
        cls(**{p.name: c[i % len(c)] for p, c in zip(parameters(cls), choices, strict=True)})
        for i in range(max((len(c) for c in choices), default=1))
    ]


def floats(pair):
    return [np.array([float(Fraction(x)) for x in row]) for row in pair]


def by_numpy(rule):
    return [rule.induced(*floats(pair)) for pair in PAIRS]


def by_torch(rule):
    import torch

    return [rule.induced(*map(torch.as_tensor, floats(pair))).numpy() for pair in PAIRS]


def by_jax(rule):
    import jax

    return [np.asarray(rule.induced(*map(jax.numpy.asarray, floats(pair)))) for pair in PAIRS]


def by_exact(rule):
    """All that the rule says, in Fractions: out, verdict, and the residual after every token the draft can produce."""
    laws = []
    for pair in PAIRS:
        p, q = map(ft.exact, pair)
        out = rule.induced(p, q).tolist()
        assert sum(out) == 1
        for part in (*rule.verdict(p, q), *(rule.residual_after(p, q, np.asarray(x)) for x in range(4) if q[x] > 0)):
            part.tolist()
        laws.append(np.array(out, dtype=float))
    return laws


def by_symbolic(rule):
    """The verdict as terms about one generic token; there are no numbers to compare."""
    from proofs.symbolic import SymbolicArray, World

    world = World()
    p, q = (SymbolicArray(world, world.family(x, (world.generic,), "distribution"), per_token=True) for x in "pq")
    for part in rule.verdict(p, q):
        assert isinstance(part, SymbolicArray)
    return []


READERS = {
    Interpreter.NUMPY: by_numpy,
    Interpreter.TORCH: by_torch,
    Interpreter.JAX: by_jax,
    Interpreter.EXACT: by_exact,
    Interpreter.SYMBOLIC: by_symbolic,
}
REFUSALS = (ExactnessError, SymbolicError)


def test_every_interpreter_has_a_column():
    assert set(READERS) == set(Interpreter)


@pytest.mark.parametrize("interpreter", Interpreter, ids=lambda interpreter: interpreter.value)
@pytest.mark.parametrize("name", ft.rules(level="token"))
def test_the_cell_is_true(name, interpreter):
    read, settings = READERS[interpreter], settings_of(name)
    declared = [rule for rule in settings if interpreter in rule.unreadable]
    for rule in settings:
        if rule not in declared:
            for found, expected in zip(read(rule), by_numpy(rule), strict=interpreter is not Interpreter.SYMBOLIC):
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    if declared:
        assert all(rule.unreadable[interpreter].strip() for rule in declared)
        assert not all(can_be_read(rule, read) for rule in declared), "declared unreadable, and can be read"


def can_be_read(rule, read):
    try:
        read(rule)
    except REFUSALS:
        return False
    return True
