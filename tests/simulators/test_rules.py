"""Simulated rules against exact laws.

False-alarm budget: the seed is fixed. Under fresh seeds every interval is taken at a confidence that leaves one rule's
whole law 1e-5 to miss, so the 50-odd laws here would raise a false alarm once in some 2,000 runs.
"""

from typing import ClassVar

import numpy as np
import pytest
import torch

import fly_theory as ft
import simulators
from fly_theory.errors import DistributionError, InvalidInput, NotReadable, ShapeError, ZeroResidualError
from fly_theory.interpreters import Interpreter
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class

BUDGET = 1e-5
P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.1, 0.3, 0.4])
VOCABULARY, DRAFT_LENGTH = 4, 5

BLOCK_RULES = [
    "lossless",
    "lenience:l=0.5",
    "block",
    "hierarchical",
    "hierarchical-naive",
    "hierarchical-mincap",
    "hierarchical-uncapped:l=0.5",
    "fly:theta=0.5,window=1",
    "fly-ceiling:theta=0.5,window=1,floor=0.2",
    "fly-released:theta=0.5,window=2",
    "fly-released:theta=0.5,window=2,temperature=1",
]


def markov_pair(seed=2):
    rng = np.random.default_rng(seed)
    target, draft = rng.dirichlet(np.full(VOCABULARY, 0.7), size=(2, VOCABULARY))
    return ft.MarkovPair(target, draft, rng.dirichlet(np.ones(VOCABULARY)))


def missed(simulation):
    """The estimates whose exact value is known and not in the interval."""
    return [
        (e.label, e.low, e.exact, e.high) for e in simulation.estimates if e.exact is not None and not e.covers(e.exact)
    ]


def a_spec(name):
    """A SPEC of a registered token rule, at the middle of the typical values of each parameter that needs one."""
    values = [f"{p.name}={p.typical[len(p.typical) // 2]}".lower() for p in parameters(rule_class(name)) if p.required]
    return f"{name}:{','.join(values)}" if values else name


@pytest.mark.parametrize("spec", [a_spec(name) for name in ft.rules(level="token")])
def test_token_rules_emit_their_induced_law(spec):
    simulation = simulators.simulate(ft.rule(spec), (P, Q), 50_000, 11, confidence=1 - BUDGET / 5)
    assert simulation.estimates[0].label == "acceptance"
    assert len(simulation.estimates) == 1 + VOCABULARY
    assert all(e.exact is not None for e in simulation.estimates)
    assert not missed(simulation)


@pytest.mark.parametrize("spec", BLOCK_RULES)
def test_block_rules_write_texts_of_their_joint_law(spec):
    length = 3
    settings = {"draft_length": DRAFT_LENGTH, "length": length, "confidence": 1 - BUDGET / VOCABULARY**length}
    simulation = simulators.simulate(ft.block_rule(spec), markov_pair(), 200_000, 12, **settings)
    law = ft.joint_law(ft.block_rule(spec), markov_pair(), DRAFT_LENGTH, length)
    exact = {e.outcome: e.exact for e in simulation.estimates if e.name == "text"}
    assert exact == {" ".join(map(str, text)): law[text] for text in np.ndindex(law.shape)}
    assert not missed(simulation)


def test_every_block_rule_is_simulated():
    assert {spec.partition(":")[0] for spec in BLOCK_RULES} >= set(ft.rules(level="block"))


@pytest.mark.parametrize(
    "spec", ["lossless", "block", "hierarchical-naive", "fly-released:theta=0.5,window=2,temperature=1"]
)
def test_first_rounds_have_their_exact_lengths(spec):
    br, pair = ft.block_rule(spec), markov_pair(3)
    settings = {"draft_length": DRAFT_LENGTH, "confidence": 1 - BUDGET / 12, "mean_interval": "empirical-bernstein"}
    simulation = simulators.simulate(br, pair, 200_000, 13, **settings)
    lengths = ft.expected_lengths(br, pair, DRAFT_LENGTH)
    assert simulation["drafts kept"].exact == pytest.approx(float(lengths.kept))
    assert [simulation[f"P(kept = {n})"].exact for n in range(DRAFT_LENGTH + 1)] == pytest.approx(lengths.law.tolist())
    if not br.completes_block:
        assert simulation.estimates[0].label == "tokens per call"
        assert simulation["tokens per call"].exact == pytest.approx(float(lengths.tokens_per_call))
    assert not missed(simulation)


def test_an_interval_tells_a_lossy_rule_from_the_target():
    """The check above can fail: a rule held against another rule's law is found out."""
    pair = markov_pair()
    simulation = simulators.simulate(
        ft.block_rule("lenience:l=0.5"), pair, 200_000, 12, draft_length=DRAFT_LENGTH, length=3
    )
    target = ft.target_law(pair, 3).reshape(-1)
    texts = [e for e in simulation.estimates if e.name == "text"]
    assert sum(not e.covers(p) for e, p in zip(texts, target, strict=True)) > 20


def test_texts_are_the_same_for_batches_of_1_000_and_100_000():
    settings = {"draft_length": DRAFT_LENGTH, "length": 3}
    small, large = (
        simulators.simulate(ft.block_rule("block"), markov_pair(), 100_000, 1, batch=batch, **settings)
        for batch in (1_000, 100_000)
    )
    assert small.estimates == large.estimates
    for name in large.counts:
        np.testing.assert_array_equal(small.counts[name], large.counts[name])


def test_tokens_per_call_over_a_long_text_approach_those_of_a_round():
    rule = ft.block_rule("lossless")
    round_ = simulators.simulate(rule, (P, Q), 100_000, 3, draft_length=4)["tokens per call"]
    text = simulators.simulate(rule, (P, Q), 1_000, 4, draft_length=4, length=400, confidence=1 - BUDGET)
    assert [e.label for e in text.estimates] == ["tokens per call over 400 tokens", "calls"]
    # the last round overshoots by less than K tokens: by less than 1 % of the text
    assert text.estimates[0].low <= round_.exact <= text.estimates[0].high * 1.01


def test_pairs_and_distributions_are_the_same_thing():
    everywhere = ft.MarkovPair(np.tile(P, (4, 1)), np.tile(Q, (4, 1)), np.eye(4)[0])
    one, other = (
        simulators.simulate(ft.rule("lossless"), on, 20_000, 5, draft_length=3) for on in ((P, Q), everywhere)
    )
    for name in one.counts:
        np.testing.assert_array_equal(one.counts[name], other.counts[name])


def test_context_trees_are_followed():
    pair = ft.ContextTreePair.random(3, 2, seed=4)
    settings = {"draft_length": 3, "length": 4, "confidence": 1 - BUDGET / 3**4}
    assert not missed(simulators.simulate(ft.block_rule("block"), pair, 200_000, 6, **settings))


def test_impossible_tokens_are_never_drawn():
    pair = ft.ContextTreePair.adversarial(4, 1, seed=9)
    law = ft.target_law(pair, 2).reshape(-1)
    simulation = simulators.simulate(ft.block_rule("block"), pair, 50_000, 7, draft_length=3, length=2)
    assert (simulation.counts["text"][law == 0] == 0).all()
    assert (law == 0).any()


def test_exact_values_are_left_out_where_enumeration_is_long():
    p, q = np.random.default_rng(0).dirichlet(np.ones(24), size=2)
    simulation = simulators.simulate(ft.block_rule("lossless"), (p, q), 1_000, 0, draft_length=8)
    assert all(e.exact is None for e in simulation.estimates)


@pytest.mark.parametrize("settings", [{}, {"draft_length": 2}, {"draft_length": 2, "length": 2}])
def test_every_array_type_is_simulated_alike(settings):
    def run(p, q):
        return simulators.simulate(ft.rule("lossless"), (p, q), 2_000, 0, **settings).estimates

    expected = run([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    assert expected == run(np.array([0.5, 0.25, 0.25], dtype=np.float32), np.array([0.25, 0.5, 0.25], dtype=np.float32))
    assert expected == run(torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.5, 0.25]))
    assert expected == run(ft.exact(["1/2", "1/4", "1/4"]), ft.exact(["1/4", "1/2", "1/4"]))


class Numpy(ft.Rule):
    """Declares that jax cannot read it."""

    name = "numpy-only"
    unreadable_by: ClassVar = {Interpreter.JAX: "it calls a numpy function"}


def test_a_rule_that_jax_cannot_read_is_refused_with_its_reason():
    with pytest.raises(NotReadable, match="numpy-only cannot be simulated: it calls a numpy function"):
        simulators.simulate(Numpy(), (P, Q), 100, 0)


class NoResidual(ft.Rule):
    """Rejects everything and has nothing to redraw from."""

    name = "no-residual"

    def verdict(self, p, q):
        return 0 * q, 0 * p


def test_a_rule_without_a_token_to_emit_is_an_error():
    with pytest.raises(ZeroResidualError, match="no-residual"):
        simulators.simulate(NoResidual(), (P, Q), 100, 0)
    p, q = np.random.default_rng(0).dirichlet(np.ones(24), size=2)
    with pytest.raises(ZeroResidualError, match="no-residual had no token to emit in 100 of 100 trials"):
        simulators.simulate(NoResidual(), (p, q), 100, 0, draft_length=8)


@pytest.mark.parametrize(
    ("error", "change", "says"),
    [
        (InvalidInput, {"rule": "lossless"}, "rule='lossless' is neither"),
        (InvalidInput, {"rule": ft.block_rule("block")}, "draft_length is missing: block"),
        (InvalidInput, {"on": markov_pair()}, "draft_length is missing: lossless"),
        (InvalidInput, {"length": 3}, "draft_length is missing: lossless"),
        (InvalidInput, {"draft_length": 0}, "draft_length=0"),
        (InvalidInput, {"draft_length": 2, "length": 0}, "length=0"),
        (InvalidInput, {"on": 3}, "on=3 is neither a toy pair nor two distributions"),
        (DistributionError, {"on": ([0.5, 0.6], [0.5, 0.5])}, r"sums to 1\.1"),
        (ShapeError, {"on": ([0.5, 0.5], [0.2, 0.3, 0.5])}, "2 and 3 tokens"),
        (ShapeError, {"on": ([[0.5, 0.5]], [0.5, 0.5])}, "are batches"),
    ],
)
def test_bad_input_is_named(error, change, says):
    arguments = {"rule": ft.rule("lossless"), "on": (P, Q), "trials": 100, "seed": 0} | change
    with pytest.raises(error, match=says):
        simulators.simulate(**arguments)


def test_an_unknown_estimate_is_named_with_those_there_are():
    simulation = simulators.simulate(ft.rule("lossless"), (P, Q), 100, 0)
    with pytest.raises(InvalidInput, match=r"no estimate 'speed'; there are 'acceptance', 'P\(token = 0\)'"):
        simulation["speed"]
