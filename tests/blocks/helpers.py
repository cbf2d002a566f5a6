"""Toy pairs read as the oracle's models, and blocks for property tests."""

import itertools

import numpy as np
from hypothesis import strategies as st

import fly_theory as ft
from tests.strategies import simplex_points


def model_of(pair):
    """A context-tree pair in exact fractions as a function from contexts to rows p and q, numbered anew."""
    target, draft = pair.target.tolist(), pair.draft.tolist()
    tokens = range(len(target[0]))
    contexts = [text for n in range(pair.depth + 1) for text in itertools.product(tokens, repeat=n)]
    rows = {text: (target[i], draft[i]) for i, text in enumerate(contexts)}
    return lambda context: rows[tuple(context[len(context) - pair.depth :] if len(context) > pair.depth else context)]


@st.composite
def blocks(draw, max_length=6, max_size=5):
    """A block of K drafts over V tokens whose tokens have positive draft probability."""
    size, length = draw(st.integers(2, max_size)), draw(st.integers(1, max_length))
    target = np.stack([draw(simplex_points(size)) for _ in range(length + 1)])
    draft = np.stack([draw(simplex_points(size)) for _ in range(length)])
    tokens = [draw(st.sampled_from(np.flatnonzero(row > 0).tolist())) for row in draft]
    return ft.Block(target, draft, tokens)


@st.composite
def likely_blocks(draw, max_length=12, max_size=5):
    """A block most of whose drafts are the target's argmax, so that windows get through."""
    block = draw(blocks(max_length=max_length, max_size=max_size))
    agrees = draw(
        st.lists(st.sampled_from([True, True, True, False]), min_size=block.draft_length, max_size=block.draft_length)
    )
    tokens = np.where(agrees, block.target[:-1].argmax(axis=-1), block.tokens)
    draft = np.eye(block.target.shape[-1])[tokens]
    return ft.Block(block.target, draft, tokens)
