"""Every block rule does in exact fractions what the naive oracle says, for the law of a round and of a text."""

from fractions import Fraction

import pytest

import fly_theory as ft
from tests.blocks.helpers import model_of
from tests.oracle import blocks as oracle

RULES = {
    "lossless": oracle.lossless,
    "block": oracle.block,
    "hierarchical": oracle.hierarchical,
    "hierarchical-naive": oracle.hierarchical_naive,
    "hierarchical-mincap": oracle.hierarchical_mincap,
    "hierarchical-uncapped": oracle.hierarchical_uncapped,
    "hierarchical-uncapped:l=1/2": lambda *args: oracle.hierarchical_uncapped(*args, l=Fraction(1, 2)),
    "fly:theta=0.3,window=1": lambda *args: oracle.fly(*args, theta=0.3, window=1),
    "fly:theta=0,window=2": lambda *args: oracle.fly(*args, theta=0, window=2),
    "fly:theta=0.8,window=0": lambda *args: oracle.fly(*args, theta=0.8, window=0),
    "fly-ceiling:theta=0.3,window=1,floor=1/5": lambda *args: oracle.fly_ceiling(*args, 0.3, 1, Fraction(1, 5)),
    "fly-released:theta=0.3,window=2": lambda *args: oracle.fly_released_greedy(*args, theta=0.3, window=2),
    "fly-released:theta=0.9,window=1": lambda *args: oracle.fly_released_greedy(*args, theta=0.9, window=1),
    "fly-released:theta=0.6,window=2,no_window=true": lambda *args: oracle.fly_released_greedy(
        *args, theta=0.6, window=2, no_window=True
    ),
}
SAMPLED = {
    "fly-released:theta=0.3,window=2,temperature=1": lambda *args: oracle.fly_released(*args, theta=0.3, window=2),
    "fly-released:theta=0,window=1,temperature=1": lambda *args: oracle.fly_released(*args, theta=0, window=1),
    "fly-released:theta=1.1,window=1,temperature=1,samples=1": lambda *args: oracle.fly_released(
        *args, theta=1.1, window=1, samples=1
    ),
    "fly-released:theta=0.6,window=2,temperature=1,no_window=true": lambda *args: oracle.fly_released(
        *args, theta=0.6, window=2, no_window=True
    ),
}
PAIRS = [
    pytest.param(make, vocabulary, depth, draft_length, seed, id=f"{make}-V{vocabulary}-K{draft_length}-{seed}")
    for make in ("random", "adversarial")
    for vocabulary, depth, draft_length in ((2, 2, 3), (3, 2, 2), (3, 1, 3))
    for seed in range(3)
]


def agree(spec, verifier, pair, draft_length, length):
    br, model = ft.block_rule(spec), model_of(pair)
    kept = [Fraction(0)] * (draft_length + 1)
    for (n, _), probability in oracle.round_law(verifier, model, (), draft_length).items():
        kept[n] += probability
    assert ft.expected_lengths(br, pair, draft_length).law.tolist() == kept
    texts = oracle.text_law(verifier, model, (), draft_length, length)
    law = ft.joint_law(br, pair, draft_length, length)
    assert sum(texts.values()) == 1
    assert all(law[text].item() == probability for text, probability in texts.items())


@pytest.mark.parametrize(("make", "vocabulary", "depth", "draft_length", "seed"), PAIRS)
@pytest.mark.parametrize("spec", RULES)
def test_rounds_and_texts_equal_the_oracle(spec, make, vocabulary, depth, draft_length, seed):
    pair = getattr(ft.ContextTreePair, make)(vocabulary, depth, seed, exact=True)
    agree(spec, RULES[spec], pair, draft_length, length=3)


@pytest.mark.parametrize("make", ["random", "adversarial"])
@pytest.mark.parametrize(("vocabulary", "draft_length"), [(2, 3), (3, 2)])
@pytest.mark.parametrize("spec", SAMPLED)
def test_sampled_targets_equal_the_oracle(spec, vocabulary, draft_length, make):
    pair = getattr(ft.ContextTreePair, make)(vocabulary, 1, 5, exact=True)
    agree(spec, SAMPLED[spec], pair, draft_length, length=2)
