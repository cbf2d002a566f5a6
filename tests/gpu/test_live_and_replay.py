"""Replayed and live block efficiency: what each is the mean over, on a pair where the two differ by a factor of two.

Replay places its blocks at fixed positions of the target's text, so each position counts once. A live round starts
where the last one ended: easy stretches are crossed in few rounds, hard ones take many. On a Markov pair both means are
exact: of the drafts kept from each context, over the stationary law of the target, and over that of the contexts in
which rounds start.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import fly_theory as ft
import gpu
from fly_theory.testing import TableModel
from gpu.decoding.laws import laws_for
from gpu.decoding.reader import Reader
from gpu.decoding.rounds import Round, Speculation, uniforms_in_round
from gpu.models import Model
from gpu.replaying.estimates import clustered_mean
from gpu.trace.block import TraceBlock

K, V = 4, 4
RULE = ft.block_rule("lossless")
# After 0 and 1 the draft is the target; after 2 and 3 it repeats the wrong one of the two. Both stretches are long.
TARGET = np.array([[0.45, 0.45, 0.05, 0.05]] * 2 + [[0.05, 0.05, 0.85, 0.05], [0.05, 0.05, 0.05, 0.85]])
DRAFT = np.array([[0.45, 0.45, 0.05, 0.05]] * 2 + [[0.05, 0.05, 0.05, 0.85], [0.05, 0.05, 0.85, 0.05]])
SIGMAS = 5.0  # a false alarm has probability 6e-7 in each comparison; seeds are fixed


def stationary(kernel: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(kernel.T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    return law / law.sum()


def exact() -> tuple[np.ndarray, np.ndarray]:
    """Expected drafts kept from each context (V,), and the law (V, V) of the context in which the next round starts."""
    kept, following = np.zeros(V), np.zeros((V, V))
    drafts = np.array(list(itertools.product(range(V), repeat=K)))
    for context in range(V):
        along = np.concatenate([np.full((len(drafts), 1), context), drafts], axis=1)
        block = ft.Block(TARGET[along], DRAFT[along[:, :-1]], drafts)
        mass = block.draft_at_tokens.prod(-1)[:, None] * RULE.length_law(block)
        kept[context] = mass.sum(0) @ np.arange(K + 1)
        following[context] = np.einsum("bn,bnv->v", mass, RULE.next_token(block))
    return kept, following


def live(start: np.ndarray, *, texts: int, rounds: int) -> list[list[Round]]:
    """The first rounds of texts whose context is drawn from `start`."""
    models = [Model(TableModel(table)) for table in (TARGET, DRAFT)]
    laws = laws_for(RULE, temperature=1.0, warpers={}, known=V, vocabulary=V)
    rng = np.random.default_rng(0)
    found = []
    for context in rng.choice(V, texts, p=start):
        speculation = Speculation(Reader(models[0]), Reader(models[1]), RULE, laws, K)
        noise = lambda _: torch.from_numpy(rng.random(uniforms_in_round(RULE, K)))  # noqa: E731
        found.append(list(itertools.islice(speculation.rounds([int(context)], noise, lambda text: None), rounds)))
    return found


def replayed(folder: Path, start: np.ndarray, *, blocks: int) -> tuple[float, float]:
    """Accepted per call of blocks at contexts drawn from `start`, and the half-width of its interval."""
    rng = np.random.default_rng(1)
    log_target, log_draft = (torch.from_numpy(np.log(table)).float() for table in (TARGET, DRAFT))

    def captured(number: int) -> TraceBlock:
        path = [int(rng.choice(V, p=start))]
        for _ in range(K):
            path.append(int(rng.choice(V, p=DRAFT[path[-1]])))
        return TraceBlock(
            log_target[path], log_draft[path[:-1]], torch.tensor(path[1:]), torch.tensor(path[:1]), number, 0
        )

    settings = {"temperature": 1.0, "context_temperature": 1.0}
    gpu.write_trace(folder, map(captured, range(blocks)), source={"settings": settings}, blocks_per_shard=250)
    accepted = gpu.replay(folder, ["lossless"])["lossless"]["accepted_per_call"]
    return accepted.mean, (accepted.high - accepted.low) / 2


def within(mean: float, exact_mean: float, half_width: float) -> bool:
    """Whether a mean is so near, given the half-width of its 95 % interval."""
    return abs(mean - exact_mean) < half_width * SIGMAS / 1.96


def kept_a_round(texts: list[list[Round]]) -> tuple[float, float]:
    mean, low, high = clustered_mean([(sum(done.kept for done in rounds), len(rounds)) for rounds in texts])
    return mean, (high - low) / 2


@pytest.fixture(scope="module")
def laws() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kept, following = exact()
    return kept, stationary(TARGET), stationary(following)


def test_replay_is_the_mean_over_positions(laws: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    kept, positions, starts = laws
    mean, half = replayed(tmp_path / "trace", positions, blocks=250)
    assert within(mean, positions @ kept, half)
    assert not within(mean, starts @ kept, half)


def test_live_is_the_mean_over_the_starts_of_rounds(laws: tuple[np.ndarray, ...]) -> None:
    kept, positions, starts = laws
    mean, half = kept_a_round(live(starts, texts=30, rounds=20))
    assert within(mean, starts @ kept, half)
    assert not within(mean, positions @ kept, half)
    assert positions @ kept > 1.5 * (starts @ kept)


def test_at_the_same_contexts_live_and_replay_agree(laws: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    _, positions, starts = laws
    first = kept_a_round(live(positions, texts=250, rounds=1))
    blocks = replayed(tmp_path / "positions", positions, blocks=250)
    assert within(first[0], blocks[0], float(np.hypot(first[1], blocks[1])))
    later = kept_a_round(live(starts, texts=30, rounds=20))
    blocks = replayed(tmp_path / "starts", starts, blocks=250)
    assert within(later[0], blocks[0], float(np.hypot(later[1], blocks[1])))
