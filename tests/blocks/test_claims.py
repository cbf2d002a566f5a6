"""Every claim of every block rule holds, checked from its definition; a claim without a check fails."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory import claims
from fly_theory.blocks.claims import KeepsAtLeast, KeptMonotoneIn
from fly_theory.parameters import parameters
from fly_theory.registry import rule_class, rules
from tests.blocks.helpers import likely_blocks
from tests.strategies import values


@st.composite
def block_rules(draw, name, level):
    """The rule with parameters from their domains, lifted if it is a token-level one."""
    cls = rule_class(name, level=level)
    made = cls(**{p.name: draw(values(p.domain, p.typical)) for p in parameters(cls)})
    return made if level == "block" else ft.tokenwise(made)


@st.composite
def toy_pairs(draw):
    """A context-tree pair, K and a text length."""
    vocabulary = draw(st.integers(2, 3))
    seed, draft_length = draw(st.integers(0, 10**6)), draw(st.integers(1, 4))
    regime = draw(st.sampled_from(["random", "adversarial", "greedy"]))
    if regime == "greedy":
        pair = ft.ContextTreePair.tempered(vocabulary, 2, seed, temperature=0)
    else:
        pair = getattr(ft.ContextTreePair, regime)(vocabulary, 2, seed)
    return pair, draft_length, 3


def holds(claim, br, pair, draft_length, length, block, seed) -> bool:
    match claim:
        case claims.Lossless():
            law = ft.joint_law(br, pair, draft_length, length)
            return np.allclose(law, ft.target_law(pair, length), rtol=0, atol=1e-12)
        case claims.Ceiling(factor=factor):
            return under_ceiling(factor, ft.joint_law(br, pair, draft_length, length), pair)
        case claims.FixedPoint():
            same = dataclasses.replace(pair, draft=pair.target)
            law = ft.joint_law(br, same, draft_length, length)
            kept = ft.expected_lengths(br, same, draft_length).kept
            return abs(kept - draft_length) < 1e-12 and np.allclose(
                law, ft.target_law(pair, length), rtol=0, atol=1e-12
            )
        case claims.ReducesTo(rule=spec, at=at):
            ours, theirs = dataclasses.replace(br, **at), ft.block_rule(spec)
            laws = [each.length_law(block) for each in (ours, theirs)]
            tokens = [law[..., None] * each.next_token(block) for each, law in zip((ours, theirs), laws, strict=True)]
            return np.allclose(*laws, rtol=0, atol=1e-12) and np.allclose(*tokens, rtol=0, atol=1e-12)
        case KeepsAtLeast(rule=spec):
            kept = [ft.expected_lengths(each, pair, draft_length).kept for each in (br, ft.block_rule(spec))]
            return kept[0] >= kept[1] - 1e-12
        case KeptMonotoneIn(parameter=name, looser=looser):
            domain = next(p for p in parameters(type(br)) if p.name == name)
            settings = sorted({getattr(br, name), *domain.typical}, reverse=looser == "smaller")
            tape = np.random.default_rng(seed).random(block.tokens.shape)
            kept = [int(dataclasses.replace(br, **{name: value}).decide(block, tape)) for value in settings]
            return kept == sorted(kept)
    raise AssertionError(claim)


def under_ceiling(factor, law, pair) -> bool:
    """Each next token, given the text before it: out <= factor p."""
    for length in range(law.ndim):
        marginal = law.sum(axis=tuple(range(length + 1, law.ndim)))
        for text in np.ndindex(marginal.shape[:-1]):
            before = marginal[text].sum()
            if before > 1e-9:
                row = 0
                for token in text:
                    row = pair.successor[row, token]
                p, q = pair.target[row], pair.draft[row]
                bound = factor(p, q) if callable(factor) else float(factor)
                if np.isfinite(bound) and np.any(marginal[text] / before > bound * p * (1 + 1e-9) + 1e-9):
                    return False
    return True


@pytest.mark.parametrize(
    ("name", "level"), [(name, level) for level in ("token", "block") for name in rules(level=level)]
)
def test_claims_hold(name, level):
    @given(block_rules(name, level), toy_pairs(), likely_blocks(max_length=6), st.integers(0, 9))
    @settings(max_examples=40 if level == "block" else 10)
    def every_claim(br, toy, block, seed):
        for claim in br.claims:
            assert holds(claim, br, *toy, block, seed), f"{br.spec}: {claim}"

    every_claim()


def test_a_false_claim_is_seen():
    """The checks above can fail: each is given a rule that does not keep the promise."""
    toy = (ft.ContextTreePair.random(3, 2, 0), 3, 3)
    block = ft.Block([[0.5, 0.3, 0.2]] * 4, np.eye(3)[[1, 0, 0]], [1, 0, 0])
    fly = ft.block_rule("fly:theta=0.3,window=1")
    for claim, br in (
        (claims.Lossless(), ft.block_rule("hierarchical-mincap")),
        (claims.Ceiling(1.5), ft.block_rule("lenience:l=0.5")),
        (claims.Ceiling(2), fly),
        (claims.FixedPoint(), fly),
        (claims.ReducesTo("fly:theta=0.3,window=3", {}), fly),
        (KeepsAtLeast("block"), ft.block_rule("lossless")),
        (KeptMonotoneIn("window", looser="larger"), fly),
    ):
        assert not holds(claim, br, *toy, block, 0), claim


def test_claims_read_as_sentences():
    written = {str(claim) for name in ("block", "hierarchical") for claim in ft.block_rule(name).claims}
    assert written == {
        "lossless",
        "keeps at least as many drafts as lossless",
        "block at every setting",
        "accepts everything at p = q",
    }
    assert "keeps more drafts as theta gets smaller" in map(str, ft.block_rule("fly:theta=0.3,window=6").claims)
