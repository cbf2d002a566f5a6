"""Every lemma that a proof uses holds on 1,000 random vocabularies, with its sums added up in full."""

from itertools import groupby

import numpy as np
import pytest
import z3

import proofs
from proofs.symbolic.terms import subterms
from proofs.theorem import find
from tests.proofs.evaluation import Vocabularies

WANTED, DRAWN, SIZE = 1000, 6000, 3
PROVED = [name for name in proofs.theorems() if find(name).expected == "proved" and name != "fly-window"]


@pytest.mark.parametrize("name", PROVED)
def test_lemmas_hold_on_random_pairs(name, proof_of):
    rng = np.random.default_rng(20240229)
    for part, steps in groupby(proof_of(name).certificate.steps, key=lambda step: step.part):
        steps = list(steps)
        drawn = _vocabularies(part.world, steps, rng)
        for step in steps:
            for statement in (step.says, step.at_each_token):
                if statement is not None and step.role != "hypothesis":
                    holds = drawn.everywhere(statement)
                    assert np.all(holds), f"{part.title}: {step.text}: fails at {_shown(drawn, holds)}"


def _vocabularies(world, steps, rng) -> Vocabularies:
    """Vocabularies that meet the hypotheses of the steps."""
    values, tokens = _draw(world, steps, rng)
    everything = Vocabularies(world, values, tokens, SIZE)
    meets = np.ones(DRAWN, dtype=bool)
    for step in steps:
        if step.role == "hypothesis":
            meets &= everything.everywhere(step.says)
    chosen = np.flatnonzero(meets)[:WANTED]
    assert len(chosen) == WANTED, f"only {len(chosen)} of {DRAWN} random vocabularies meet the hypotheses"
    return Vocabularies(
        world, {n: x[chosen] for n, x in values.items()}, {n: x[chosen] for n, x in tokens.items()}, SIZE
    )


def _draw(world, steps, rng):
    terms = [t for step in steps for t in (step.says, step.at_each_token) if t is not None]
    bodies = [part for definition in world.definitions.values() for part in definition.body]
    symbols = {t.decl().name(): t for t in subterms(*terms, *bodies) if z3.is_app_of(t, z3.Z3_OP_UNINTERPRETED)}
    values = {"": np.zeros(DRAWN)}
    for name, kind in world.families.items():
        shape = (DRAWN, *[SIZE] * symbols[name].num_args()) if name in symbols else (DRAWN,)
        values[name] = _family(name, kind, shape, rng)
    if "q" in values and "p" in values:
        same = rng.random(DRAWN) < 0.05
        values["q"][same] = values["p"][same]
    _particular(values, rng)
    tokens = {n: rng.integers(SIZE, size=DRAWN) for n, t in symbols.items() if str(t.sort()) == "Token"}
    return values, tokens


def _family(name, kind, shape, rng):
    """Multiples of 1/16, so that sums are exact and zeros and ties are frequent."""
    if kind == "distribution":
        cuts = np.sort(rng.integers(17, size=(*shape[:-1], shape[-1] - 1)), axis=-1)
        return np.diff(cuts, axis=-1, prepend=0, append=16) / 16
    if kind == "set":
        return rng.random(shape) < 0.5
    if kind == "infinite":
        return np.full(shape, 1e6)
    whole = {"n": (1, 4), "k": (1, 4), "B": (0, 5)}
    if name in whole:
        return rng.integers(*whole[name], size=shape).astype(float)
    low, high = {"alpha": (-32, 33), "looser_alpha": (-32, 33), "1/alpha": (16, 64)}.get(name, (1, 17))
    return rng.integers(low, high, size=shape) / 16


def _particular(values, rng) -> None:
    """Values that random ones would hardly ever meet the hypotheses with."""
    p, q = values.get("p"), values.get("q")
    if "kept" in values:  # any rule: one time in two a random one, else a lossless one that keeps less than it could
        share, lossless = rng.integers(17, size=q.shape) / 16, rng.random(len(q)) < 0.5
        kept = np.where(lossless[:, None], np.minimum(p, q), q) * share
        values["kept"] = kept
        values["redrawn"] = np.where(lossless[:, None], p - kept, values["redrawn"])
    if "1/beta" in values:
        values["1/beta"] = _solved(p, q, values["1/alpha"])
    if "out_n" in values:
        on_set = np.where(values["A"], q, 0)
        mass = on_set.sum(axis=-1)
        values["s_n"] = (1 - mass) ** rng.integers(4, size=len(q))
        share = values["s_n"][:, None]
        values["out_n"] = (1 - share) * on_set / np.where(mass > 0, mass, 1)[:, None] + share * p


def _solved(p, q, raised):
    """1/beta by bisection: the share of the target whose excess over the draft fills what is rejected."""
    rejected = 1 - np.minimum(q, raised[:, None] * p).sum(axis=-1)
    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(60):
        middle = (low + high) / 2
        enough = np.maximum(middle[:, None] * p - q, 0).sum(axis=-1) >= rejected
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _shown(drawn, holds) -> dict[str, object]:
    first = int(np.argmin(holds))
    return {name: x[first].tolist() for name, x in drawn._values.items() if name}
