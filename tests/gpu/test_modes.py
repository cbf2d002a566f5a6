"""Failure modes: every detector on a planted and on a clean case, every figure on two routes, merging, stuck rules."""

import itertools
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models

import fly_theory as ft
import gpu
from fly_theory.arrays import array_namespace
from fly_theory.blocks.fly import Cause
from fly_theory.distributions import trusted_inputs
from fly_theory.entropies import entropy
from fly_theory.errors import InvalidInput, UnknownName, ZeroResidualError
from fly_theory.files import json_text
from fly_theory.rules.base import Rule, Verdict
from gpu.replaying.evaluation import Evaluator
from gpu.replaying.measures import Judged
from gpu.replaying.modes import MODES, Consistency, DeferralRows, Detectors, Level, commonest
from gpu.replaying.modes.classes import TokenClasses
from gpu.replaying.plan import Plan
from gpu.replaying.settings import ReplaySettings
from gpu.replaying.tallying import Tallies, tally_blocks
from tests.gpu import replay_traces as traces

# A number, a code token, three words, and an id without a token.
TEXTS = ("7", " ==", " the", " of", " a", None)
CLASSES = TokenClasses.of(TEXTS)


@dataclass(frozen=True)
class Position:
    """A position, what a detector is to explain there, and whether it is to find it."""

    p: list[float]
    out: list[float] | None = None
    q: list[float] | None = None
    accepted: list[float] | None = None
    rule: str = "cos:w=0.5"
    token: int = 0
    logits: list[float] | None = None
    explained: float = 0.0


# What each detector finds, with what it explains there, and what it does not find although it comes close.
PLANTED: dict[str, Any] = {
    "ceiling_violation": Position(
        p=[0.5, 0.2, 0.15, 0.1, 0.05, 0], out=[0.3, 0.5, 0.1, 0.05, 0.05, 0], rule="lenience:l=0.5", explained=0.3
    ),
    "tail_leak": Position(p=[0.6, 0.3, 0.0995, 0.0005, 0, 0], out=[0.58, 0.3, 0.1095, 0.0105, 0, 0], explained=0.01),
    "draft_domination": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[0, 0.5, 0.5, 0, 0, 0], out=[0.2, 0.5, 0.3, 0, 0, 0], explained=0.3
    ),
    "argmax_flip": Position(p=[0.4, 0.35, 0.25, 0, 0, 0], out=[0.3, 0.45, 0.25, 0, 0, 0], explained=0.1),
    "low_entropy_flip": Position(p=[0.95, 0.05, 0, 0, 0, 0], out=[0.4, 0.6, 0, 0, 0, 0], explained=0.55),
    "number_flip": Position(p=[0.5, 0, 0.4, 0, 0, 0.1], out=[0.3, 0, 0.6, 0, 0, 0.1], explained=0.2),
    "code_flip": Position(p=[0.1, 0.3, 0.5, 0.1, 0, 0], out=[0.1, 0.6, 0.2, 0.1, 0, 0], explained=0.3),
    "zero_residual": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[0.2, 0.8, 0, 0, 0, 0], accepted=[0.2, 0.5, 0, 0, 0, 0],
        out=[0.2, 0.5, 0, 0, 0, 0], explained=0.3,
    ),
    "argmax_tie": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[0.25, 0.75, 0, 0, 0, 0], logits=[2, 2, 1, 0, 0, 0], explained=0.25
    ),
    "padding_mass": Position(p=[0.9, 0, 0, 0, 0.09, 0.01], q=[0.9, 0, 0, 0, 0.05, 0.05], explained=0.04),
    "implausible_draft": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[1 - 1e-7, 1e-7, 0, 0, 0, 0], token=1, explained=0.5 - 1e-7
    ),
}  # fmt: skip
CLEAN: dict[str, Any] = {
    "ceiling_violation": Position(  # exactly at the ceiling
        p=[0.5, 0.2, 0.15, 0.1, 0.05, 0], out=[0.3, 0.4, 0.15, 0.1, 0.05, 0], rule="lenience:l=0.5"
    ),
    "tail_leak": Position(p=[0.6, 0.3, 0.0995, 0.0005, 0, 0], out=[0.58, 0.3, 0.1105, 0.0095, 0, 0]),
    "draft_domination": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[0, 0.5, 0.5, 0, 0, 0], out=[0.3, 0.5, 0.2, 0, 0, 0]
    ),
    "argmax_flip": Position(p=[0.4, 0.4, 0.2, 0, 0, 0], out=[0.3, 0.5, 0.2, 0, 0, 0]),  # a tie in the target
    "low_entropy_flip": Position(p=[0.6, 0.4, 0, 0, 0, 0], out=[0.4, 0.6, 0, 0, 0, 0]),
    "number_flip": Position(p=[0.1, 0.3, 0.5, 0.1, 0, 0], out=[0.1, 0.6, 0.2, 0.1, 0, 0]),
    "code_flip": Position(p=[0.5, 0, 0.4, 0, 0, 0.1], out=[0.3, 0, 0.6, 0, 0, 0.1]),
    "zero_residual": Position(
        p=[0.5, 0.5, 0, 0, 0, 0], q=[0.2, 0.8, 0, 0, 0, 0], accepted=[0.2, 0.5, 0, 0, 0, 0], out=[0.5, 0.5, 0, 0, 0, 0]
    ),
    "argmax_tie": Position(p=[0.5, 0.5, 0, 0, 0, 0], logits=[2, 1.5, 1.5, 0, 0, 0]),
    "padding_mass": Position(p=[0.9, 0, 0, 0, 0.1, 0], q=[0.9, 0, 0, 0, 0.09995, 0.00005]),
    "implausible_draft": Position(p=[0.5, 0.5, 0, 0, 0, 0], q=[1 - 1e-5, 1e-5, 0, 0, 0, 0], token=1),
}  # fmt: skip


@dataclass(frozen=True)
class Round:
    """Five drafts judged by FLy with a window of 2, the target's row at each, and what is to be found."""

    tokens: list[int]
    rows: list[list[float]]
    found: tuple[float, ...] = (0, 0, 0, 0, 0)
    explained: tuple[float, ...] = (0, 0, 0, 0, 0)


# Entropies over log 6: 0.07, where the gate is shut, then 0.18 (0.33 nats), 0.95 and 0.86, where it is open.
SHUT, NEARLY, OPEN, TAIL = (
    [0.004, 0.004, 0.98, 0.004, 0.004, 0.004],
    [0, 0, 0.9, 0.1, 0, 0],
    [0.1, 0.1, 0.3, 0.2, 0.2, 0.1],
    [0.0005, 0.002, 0.3, 0.25, 0.25, 0.1975],
)
NUMBERED = [0.3, 0.1, 0.2, 0.2, 0.1, 0.1]

# Token 2 is the target's own, but for the numbered row, where that is 0. A mismatch at the first three positions is
# judged, later ones come too late for the window.
PLANTED |= {
    "dead_gate": Round([2, 3, 3, 2, 2], [OPEN, SHUT, SHUT, OPEN, OPEN], (0, 1, 0, 0, 0), (0, 4, 0, 0, 0)),
    "boundary_loss": Round([2, 2, 2, 3, 2], [OPEN] * 5, (0, 0, 0, 1, 0), (0, 0, 0, 2, 0)),
    "window_kill": Round([3, 3, 2, 2, 2], [OPEN] * 5, (1, 0, 0, 0, 0), (5, 0, 0, 0, 0)),
    "forgiven_sure": Round([2, 3, 2, 2, 2], [OPEN, NEARLY, OPEN, OPEN, OPEN], (0, 1, 0, 0, 0), (0, 1, 0, 0, 0)),
    "forgiven_tail": Round([2, 0, 2, 2, 2], [OPEN, TAIL, OPEN, OPEN, OPEN], (0, 1, 0, 0, 0), (0, 1, 0, 0, 0)),
    "forgiven_number": Round([2, 2, 3, 2, 2], [OPEN, OPEN, NUMBERED, OPEN, OPEN], (0, 0, 1, 0, 0), (0, 0, 1, 0, 0)),
    "forgiven_code": Round([1, 2, 2, 2, 2], [OPEN] * 5, (1, 0, 0, 0, 0), (1, 0, 0, 0, 0)),
}
CLEAN |= {
    "dead_gate": Round([2, 3, 3, 2, 2], [OPEN, SHUT, OPEN, OPEN, OPEN]),
    "boundary_loss": Round([2, 2, 2, 3, 3], [OPEN] * 5),  # two mismatches at the end
    "window_kill": Round([3, 3, 2, 2, 2], [OPEN, SHUT, OPEN, OPEN, OPEN]),
    "forgiven_sure": Round([2, 3, 2, 2, 2], [OPEN] * 5),
    "forgiven_tail": Round([2, 1, 2, 2, 2], [OPEN, TAIL, OPEN, OPEN, OPEN]),
    "forgiven_number": Round([2, 2, 1, 2, 2], [OPEN] * 5),
    "forgiven_code": Round([2, 2, 3, 2, 2], [OPEN, OPEN, NUMBERED, OPEN, OPEN]),
}


def _deferral(name: str, rule: Any, block: Any) -> tuple[Any, Any]:
    """What a detector says of a deferring rule on a block, found and explained at each draft."""
    match, gate, ended = rule.match_probability(block), rule.gate_open(block), rule.endings(block)
    rows = DeferralRows(
        block, match, gate, ended, rule.window_length, entropy(block.judging), CLASSES.masks(block.target)
    )
    values = Detectors((name,), CLASSES).of_deferral(rows)
    return values[MODES[name].found], values[MODES[name].explained]


def _values(name: str, positions: list[Position], like: Any) -> tuple[list[float], list[float]]:
    """What a detector says of a block of positions: found, and explained."""

    def rows(values: list[list[float]]) -> Any:
        return like(values)

    p = rows([at.p for at in positions])
    q = rows([at.q or at.p for at in positions])
    tokens = np.asarray([at.token for at in positions])
    tokens = tokens if isinstance(p, np.ndarray) else torch.asarray(tokens)
    detect = Detectors((name,), CLASSES)
    if MODES[name].level is Level.PAIR:
        values = detect.of_pair(p, q, tokens, rows([at.logits or at.p for at in positions]))
    else:
        out = rows([at.out or at.p for at in positions])
        accepted = rows([at.accepted or at.out or at.p for at in positions])
        (rule,) = {at.rule for at in positions}
        with trusted_inputs():  # as in a replay: where a rule is stuck, its output is no distribution
            values = detect(Judged(ft.rule(rule), p, q, accepted, out, tokens))
    found, explained = values[MODES[name].found], values[MODES[name].explained]
    assert set(found.tolist()) <= {0.0, 1.0}
    return found.tolist(), explained.tolist()


def _numpy(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def _torch(values: Any) -> Any:
    return torch.asarray(values, dtype=torch.float32)


def test_every_mode_has_its_planted_and_its_clean_case() -> None:
    assert set(PLANTED) == set(CLEAN) == set(MODES)


@pytest.mark.parametrize(("like", "tolerance"), [(_numpy, 1e-12), (_torch, 1e-6)], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", [name for name, mode in MODES.items() if mode.level is Level.BLOCK])
def test_a_detector_of_block_rules_finds_what_is_planted_and_nothing_else(
    name: str, like: Any, tolerance: float
) -> None:
    rule = ft.block_rule("fly:theta=0.1,window=2")
    for made in (PLANTED[name], CLEAN[name]):
        tokens = np.asarray(made.tokens)
        target = like([*made.rows, OPEN])
        if not isinstance(target, np.ndarray):
            tokens = torch.asarray(tokens)
        found, explained = _deferral(name, rule, ft.Block(target, target[:5], tokens))
        assert found.tolist() == pytest.approx(made.found, abs=tolerance)
        assert explained.tolist() == pytest.approx(made.explained, abs=tolerance)


@pytest.mark.parametrize("spec", ["fly-released:theta=0.5,window=3,temperature=1", "fly:theta=0.8,window=2"])
def test_modes_of_block_rules_are_expectations_over_what_matches(spec: str) -> None:
    """Against every pattern of matches, judged one by one and classified by words."""
    rule, rng = ft.block_rule(spec), np.random.default_rng(5)
    names = ("dead_gate", "boundary_loss", "window_kill", "forgiven_sure", "forgiven_code")
    k, seen_at_all = 5, dict.fromkeys(names, 0.0)
    for _ in range(20):
        target = np.where(rng.random((k + 1, 1)) < 0.3, rng.dirichlet(np.full(6, 0.2)), rng.dirichlet(np.full(6, 5)))
        tokens = np.where(rng.random(k) < 0.6, target[:k].argmax(-1), rng.integers(0, 6, k))
        block = ft.Block(target, target[:k], tokens)
        probability = rule.match_probability(block)
        expected = {name: np.zeros(k) for name in names}
        for pattern in itertools.product((False, True), repeat=k):
            weight = np.prod(np.where(pattern, probability, 1 - probability))
            seen = rule._judge(block, np.asarray(pattern))  # the decision for given matches, which `trace` draws
            window = rule.window_length
            for j in range(k):
                missed = [i for i in range(k) if not pattern[i]]
                nearby = [i for i in missed if j < i <= j + window]
                if seen.cause[j] in (Cause.GATE, Cause.BOUNDARY, Cause.WINDOW):
                    expected["dead_gate"][j] += weight * (not any(seen.gate[i] for i in missed))
                    late = j >= rule.judgeable(k) and seen.gate[j]
                    expected["boundary_loss"][j] += weight * (late and not nearby)
                    alone = not late and seen.gate[j] and all(seen.gate[i] for i in nearby)
                    expected["window_kill"][j] += weight * alone
                if seen.forgiven[j]:
                    expected["forgiven_sure"][j] += weight * (-target[j] @ np.log(target[j]) < 0.5)
                    expected["forgiven_code"][j] += weight * (1 in (tokens[j], target[j].argmax()))
        for name in names:
            seen_at_all[name] += expected[name].sum()
            found, explained = _deferral(name, rule, block)
            np.testing.assert_allclose(found, expected[name], atol=1e-12, err_msg=name)
            lost = k - np.arange(k) if MODES[name].of == "lost" else 1
            np.testing.assert_allclose(explained, expected[name] * lost, atol=1e-12, err_msg=name)
    assert all(seen > 1e-3 for name, seen in seen_at_all.items() if name != "forgiven_sure"), seen_at_all


@pytest.mark.parametrize(("like", "tolerance"), [(_numpy, 1e-12), (_torch, 1e-6)], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", [name for name, mode in MODES.items() if mode.level is not Level.BLOCK])
def test_a_detector_finds_what_is_planted_and_nothing_else(name: str, like: Any, tolerance: float) -> None:
    planted, clean = PLANTED[name], CLEAN[name]
    same = Position(p=clean.p, rule=clean.rule, logits=clean.logits)
    found, explained = _values(name, [clean, planted, same, planted], like)
    assert found == [0, 1, 0, 1]
    assert explained == pytest.approx([0, planted.explained, 0, planted.explained], abs=tolerance)


def test_the_ceiling_is_the_claimed_one_and_two_where_none_is_claimed() -> None:
    def found(rule: str, out: list[float]) -> float:
        at = Position(p=[0.4, 0.3, 0.2, 0.1, 0, 0], out=out, rule=rule)
        return _values("ceiling_violation", [at], _numpy)[0][0]

    doubled = [0.3, 0.2, 0.3, 0.2, 0, 0]
    beyond = [0.28, 0.2, 0.3, 0.22, 0, 0]
    assert (found("lossless", doubled), found("lenience:l=0.8", doubled)) == (1, 1)
    assert (found("lenience:l=0.5", doubled), found("cos:w=0.5", doubled)) == (0, 0)
    assert (found("lenience:l=0.5", beyond), found("cos:w=0.5", beyond)) == (1, 1)
    assert found("lenience:l=0.25", beyond) == 0
    # A mass of 0.001 above the ceiling breaks a claim, and is not worth mentioning where nothing is claimed.
    slightly = [0.3, 0.2, 0.299, 0.201, 0, 0]
    assert (found("lenience:l=0.5", slightly), found("cos:w=0.5", slightly)) == (1, 0)


def test_half_way_between_both_nobody_dominates() -> None:
    """The mixture with equal weights, where rounding must not decide."""
    (block,) = traces.blocks(1, k=40, v=500)
    plan = Plan(
        (ft.rule("cos:w=0.5"),), ReplaySettings(temperature=1.0), detectors=Detectors(("draft_domination",), None)
    )
    totals = tally_blocks([block], plan).rules[0].prompts[0]
    assert totals["mode_draft_domination"].sum == 0
    assert totals["tv"].sum > 1


def test_a_ceiling_may_depend_on_the_pair() -> None:
    p, q = np.asarray([[0.5, 0.3, 0.15, 0.05, 0, 0]]), np.asarray([[0.2, 0.1, 0.3, 0.4, 0, 0]])
    rule = ft.rule("mentored:budget=0.1")
    verdict = rule.verdict(p, q)
    out = rule.induced(p, q)
    detect = Detectors(("ceiling_violation",), None)
    judged = Judged(rule, p, q, verdict.accepted, out, np.asarray([0]))
    assert detect(judged)["mode_ceiling_violation"].tolist() == [0]
    more = out + np.asarray([-0.01, 0, 0, 0.01, 0, 0])
    assert detect(judged._replace(out=more))["mode_ceiling_violation"].tolist() == [1]


def test_a_tie_is_one_of_the_stored_dtype() -> None:
    logits = torch.tensor([[8.0, 8.01, 0, 0, 0, 0]])
    p = torch.softmax(logits, -1)
    detect = Detectors(("argmax_tie",), None)
    for dtype, tied in ((torch.float32, 0), (torch.float16, 0), (torch.bfloat16, 1)):
        assert detect.of_pair(p, p, torch.tensor([0]), logits.to(dtype))["mode_argmax_tie"].tolist() == [tied]


def test_an_impossible_draft_is_implausible() -> None:
    at = Position(p=[0.5, 0.5, 0, 0, 0, 0], q=[0.5, 0.25, 0.25, 0, 0, 0], token=4)
    assert _values("implausible_draft", [at], _numpy) == ([1], [0.25])


def test_token_classes() -> None:
    texts = [
        "0",
        " 12",
        "3.5",
        "½",
        "x1",
        " =",
        "()",
        "{",
        "  ",
        " ",
        "\t",
        "\n",
        "_id",
        "**",
        "<s",
        "",
        None,
        "٣",
    ]
    classes = TokenClasses.of(texts)
    assert [texts[i] for i in classes.number] == ["0", " 12", "3.5", "٣"]
    assert [texts[i] for i in classes.code] == [" =", "{", "  ", "\t", "_id", "<s"]
    assert classes.unnamed == (16,)
    masks = classes.masks(torch.zeros(2, len(texts)))
    assert masks["number"].nonzero()[:, 0].tolist() == list(classes.number)


# -- in a replay -------------------------------------------------------------------------------------------------------


def _tokenizer(folder: Path, count: int = traces.V) -> Path:
    """Numbers, code, words, and one id fewer than there are logits."""
    kinds = ("{}", " ={}", " word{}")
    names = {kinds[i % 3].format(chr(97 + i) if i % 3 else i): i for i in range(count - 1)}
    path = folder / "tokenizer.json"
    Tokenizer(models.WordLevel(names, unk_token=next(iter(names)))).save(str(path))
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> gpu.Trace:
    root = tmp_path_factory.mktemp("modes")

    def settle(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        if number % 4 == 0:  # sure of one token, and yet the draft's is not ruled out
            target[1, 3], target[1, 7] = 12, 10.5
            draft[1, 7] = 12

    source = {"settings": {"temperature": 1.0}}
    blocks = traces.blocks(12, edit=settle)
    return gpu.open_trace(gpu.write_trace(root / "trace", blocks, tokenizer=_tokenizer(root), source=source))


def _by_hand(rule: Rule, p: np.ndarray, q: np.ndarray) -> dict[str, tuple[bool, float]]:
    """Every mode of a rule at one position, token by token from its definition."""
    out, vocabulary = np.asarray(rule.induced(p, q)), range(len(p))
    texts = [("number", "code", "word")[i % 3] for i in vocabulary[:-1]] + ["none"]
    gains = [max(out[x] - p[x], 0) for x in vocabulary]
    tv = sum(gains)
    claims = {type(claim).__name__: claim for claim in rule.claims}
    if "Lossless" in claims:
        c, limit = 1.0, 1e-5
    elif "Ceiling" in claims:
        factor = claims["Ceiling"].factor
        c, limit = float(factor(p, q)) if callable(factor) else float(factor), 1e-5
    else:
        c, limit = 2.0, 0.01
    above = [x for x in vocabulary if out[x] > c * p[x]]
    leaked = [x for x in vocabulary if p[x] < 1e-3 and out[x] >= 1e-2]
    here, there = max(vocabulary, key=lambda x: p[x]), max(vocabulary, key=lambda x: out[x])
    flipped = p[there] < p[here]
    entropy = -sum(x * math.log(x) for x in p.tolist() if x > 0)
    violated = sum(out[x] - c * p[x] for x in above) > limit
    dominated = tv >= 0.01 and sum(abs(out - q)) / 2 < tv
    kinds = {texts[here], texts[there]}
    return {
        "ceiling_violation": (violated, sum(gains[x] for x in above) if violated else 0),
        "tail_leak": (bool(leaked), sum(gains[x] for x in leaked)),
        "draft_domination": (dominated, tv if dominated else 0),
        **{
            name: (bool(where), tv if where else 0)
            for name, where in (
                ("argmax_flip", flipped),
                ("low_entropy_flip", flipped and entropy < 0.5),
                ("number_flip", flipped and "number" in kinds),
                ("code_flip", flipped and "code" in kinds),
            )
        },
        "zero_residual": (False, 0),
    }


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
def test_rates_and_shares_are_those_of_a_loop_over_tokens(trace: gpu.Trace, dtype: str, tolerance: float) -> None:
    replayed = gpu.replay(trace, traces.SPECS, dtype=dtype)
    seen: set[str] = set()
    for result in replayed:
        found: dict[str, list[tuple[bool, float]]] = {}
        total = 0.0
        for block in trace:
            rows = zip(traces.softmax(block.target_logits), traces.softmax(block.draft_logits), strict=False)
            for p, q in rows:
                total += np.abs(p - np.asarray(result.rule.induced(p, q))).sum() / 2
                for name, value in _by_hand(result.rule, p, q).items():
                    found.setdefault(name, []).append(value)
        assert {mode.mode.name for mode in result.modes} == set(found)
        for mode in result.modes:
            here = found[mode.mode.name]
            assert mode.rate.mean == pytest.approx(np.mean([where for where, _ in here]), abs=1e-12), result.spec
            if mode.explained is not None:
                share = sum(value for _, value in here) / total
                assert mode.explained.mean == pytest.approx(share, abs=tolerance), (result.spec, mode.mode.name)
            if mode.rate.mean > 0:
                seen.add(mode.mode.name)
        assert result["argmax_flip"].mean == next(m.rate.mean for m in result.modes if m.mode.name == "argmax_flip")
        shares = [(m.explained.mean if m.explained else 0, m.rate.mean) for m in result.modes]
        assert shares == sorted(shares, reverse=True)
        rates = [mode.rate.mean for mode in commonest(result.modes)]
        assert rates == sorted((mode.rate.mean for mode in result.modes if mode.rate.mean), reverse=True)[:3]
    # The trace exercises all of them but those a sound rule cannot have.
    assert seen == {mode.name for mode in MODES.values() if mode.level is Level.RULE} - {"zero_residual"}


def test_a_lossless_rule_has_no_failure_mode(trace: gpu.Trace) -> None:
    result = gpu.replay(trace, ["lossless"])["lossless"]
    assert all(mode.rate.mean == 0 and mode.explained is None and not mode.worst for mode in result.modes)
    assert commonest(result.modes) == []


def test_the_worst_cases_of_a_mode_are_the_planted_ones(tmp_path: Path) -> None:
    """The draft, and it alone, likes a token that the target finds nearly impossible, at three positions."""
    planted = {(7, 2): 9.0, (3, 0): 8.0, (10, 1): 7.0}

    def plant(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        draft[:] = target[: traces.K]
        for (block, position), strength in planted.items():
            if block == number:
                target[position, 5], draft[position, 5] = -12, strength

    trace = gpu.open_trace(traces.write(tmp_path / "trace", 14, edit=plant))
    modes = {found.mode.name: found for found in gpu.replay(trace, ["cos:w=0.5"])["cos:w=0.5"].modes}
    leak = modes["tail_leak"]
    assert leak.rate.mean == 3 / (14 * traces.K)
    assert {(case.block, case.position) for case in leak.worst} == set(planted)
    assert leak.explained.mean == pytest.approx(1, abs=0.05)
    assert all(5 in [token.token for token in case.tokens] for case in leak.worst)
    assert modes["ceiling_violation"].rate.mean == leak.rate.mean
    assert "number_flip" not in modes


def test_modes_without_a_tokenizer_are_left_out_and_refused_when_asked_for(tmp_path: Path) -> None:
    trace = gpu.open_trace(traces.write(tmp_path / "trace", 3))
    replayed = gpu.replay(trace, ["cos:w=0.5", "fly:theta=0.3,window=2"])
    needed = {mode.name for mode in MODES.values() if mode.token_class}
    assert needed == {"number_flip", "code_flip", "forgiven_number", "forgiven_code", "padding_mass"}
    looked_for = [found.mode.name for found in (*replayed.rules[0].modes, *replayed.pair_modes)]
    looked_for += [found.mode.name for found in replayed.block_rules[0].modes]
    assert set(looked_for) == set(MODES) - needed
    with pytest.raises(InvalidInput, match="'code_flip', which needs a tokenizer"):
        gpu.replay(trace, ["cos:w=0.5"], modes=["code_flip"])


def test_modes_can_be_chosen_and_switched_off(trace: gpu.Trace) -> None:
    chosen = gpu.replay(trace, ["cos:w=0.5"], modes=["argmax_tie", "tail_leak"])
    assert [found.mode.name for found in chosen.rules[0].modes] == ["tail_leak"]
    assert [found.mode.name for found in chosen.pair_modes] == ["argmax_tie"]
    off = gpu.replay(trace, ["cos:w=0.5"], modes=False)
    assert (off.rules[0].modes, off.pair_modes, off.consistency) == ((), (), None)
    assert off.rules[0].figures == chosen.rules[0].figures
    with pytest.raises(UnknownName, match="Did you mean 'tail_leak'"):
        gpu.replay(trace, ["cos:w=0.5"], modes=["tail_leaks"])


def test_the_pair_is_looked_at_too(tmp_path: Path) -> None:
    """A tie at one position in four, and mass on the padding at another one; the drafts are drawn from the draft."""

    def plant(number: int, target: torch.Tensor, draft: torch.Tensor) -> None:
        target[1, 3] = target[1, 4] = target[1].max() + 1
        target[:, -1] = draft[:, -1] = -30
        draft[2, -1] = draft[2].max()

    source = {"settings": {"temperature": 1.0}}
    blocks = traces.blocks(9, edit=plant)
    folder = gpu.write_trace(tmp_path / "trace", blocks, tokenizer=_tokenizer(tmp_path), source=source)
    replayed = gpu.replay(folder, ["lossless"])
    rates = {found.mode.name: found.rate.mean for found in replayed.pair_modes}
    assert rates == {"argmax_tie": 0.25, "padding_mass": 0.25, "implausible_draft": 0}
    worst = {found.mode.name: {case.position for case in found.worst} for found in replayed.pair_modes}
    assert worst == {"argmax_tie": {1}, "padding_mass": {2}, "implausible_draft": set()}
    padding = next(found for found in replayed.pair_modes if found.mode.name == "padding_mass")
    assert padding.explained.mean == pytest.approx(
        sum(traces.softmax(block.draft_logits)[2][-1] for block in replayed.trace)
        / sum(
            np.abs(p - q).sum() / 2
            for block in replayed.trace
            for p, q in zip(traces.softmax(block.target_logits), traces.softmax(block.draft_logits), strict=False)
        ),
        rel=1e-5,
    )
    json_text(replayed.to_json())


# -- drafts and the q they should come from ----------------------------------------------------------------------------


def _consistency(blocks: Any, temperature: float = 1.0, modes: tuple[str, ...] = ("argmax_tie",)) -> Consistency:
    plan = Plan((), ReplaySettings(temperature=temperature, dtype="float64"), detectors=Detectors(modes, None))
    return Consistency.of(tally_blocks(blocks, plan).draft)


def test_drafts_from_q_are_consistent_and_others_are_not() -> None:
    """1,600 drafts; |z| > 4 has probability 6e-5 for drafts from q."""
    assert abs(_consistency(traces.blocks(400)).z) < 4
    flatter, sharper = (_consistency(traces.blocks(400), temperature) for temperature in (0.7, 1.5))
    assert flatter.z > 8
    assert sharper.z < -8
    assert max(flatter.p_value, sharper.p_value) < 1e-12


def test_consistency_is_that_of_a_loop() -> None:
    blocks = list(traces.blocks(20, seed=3))
    excess = variance = 0.0
    for block in blocks:
        for q, x in zip(traces.softmax(block.draft_logits), block.tokens.tolist(), strict=True):
            mean = sum(-v * math.log(v) for v in q)
            excess += -math.log(q[x]) - mean
            variance += sum(v * (-math.log(v) - mean) ** 2 for v in q)
    found = _consistency(blocks)
    assert found.z == pytest.approx(excess / math.sqrt(variance), rel=1e-10)
    assert found.p_value == pytest.approx(math.erfc(abs(found.z) / math.sqrt(2)), rel=1e-12)


def test_certain_drafts_are_consistent_and_impossible_ones_never() -> None:
    greedy = list(traces.blocks(5, temperature=0))
    assert _consistency(greedy, 0.0) == Consistency(0.0, 1.0)
    wrong = [gpu.TraceBlock(b.target_logits, b.draft_logits, (b.tokens + 1) % traces.V) for b in greedy]
    assert _consistency(wrong, 0.0) == Consistency(math.inf, 0.0)


# -- a rule that gets stuck --------------------------------------------------------------------------------------------


class Careless(Rule):
    """Keeps half of the draft, and forgets the residual where no token has half of the draft."""

    name = "careless"

    def verdict(self, p: Any, q: Any) -> Verdict:
        xp = array_namespace(q)
        sure = xp.max(q, axis=-1, keepdims=True) > 0.5
        return Verdict(accepted=q / 2, residual=p * xp.astype(sure, p.dtype))


def test_rows_without_a_residual_are_counted_and_left_out(trace: gpu.Trace) -> None:
    rule = Careless()
    result = gpu.replay(trace, [rule], dtype="float64").rules[0]
    tv, acceptance, stuck = [], [], set()
    for block in trace:
        for position, (p, q) in enumerate(
            zip(traces.softmax(block.target_logits), traces.softmax(block.draft_logits), strict=False)
        ):
            acceptance.append(0.5)
            if q.max() <= 0.5:
                stuck.add((block.index, position))
            else:
                tv.append(np.abs((p - q) / 2).sum() / 2)
    assert 0 < len(stuck) < len(trace) * traces.K
    assert result["tv"].mean == pytest.approx(np.mean(tv), rel=1e-12)
    assert result["acceptance"].mean == pytest.approx(0.5, rel=1e-12)
    assert sum(result.tv_histogram) == len(tv)
    found = next(found for found in result.modes if found.mode.name == "zero_residual")
    assert found.rate.mean == pytest.approx(len(stuck) / (len(trace) * traces.K), rel=1e-12)
    assert found.explained is None
    assert {(case.block, case.position) for case in found.worst} <= stuck
    assert all(case.tv is None for case in found.worst)
    assert all((case.block, case.position) not in stuck for case in result.worst)
    assert any(f"At {len(stuck)} of {len(trace) * traces.K} positions it rejects" in note for note in result.notes)
    with pytest.raises(ZeroResidualError, match="careless rejects with probability"):
        gpu.replay(trace, [rule], modes=False)
    with pytest.raises(ZeroResidualError, match="careless rejects with probability"):
        gpu.replay(trace, [rule], modes=["argmax_flip"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_detectors_are_compiled_into_the_pass(trace: gpu.Trace) -> None:
    settings, rules = ReplaySettings(temperature=1.0), (ft.rule("min-p:base=0.2"),)
    plain, fast = (
        Evaluator(Plan(rules, settings, detectors=Detectors.of(trace), compiled=compiled)) for compiled in (False, True)
    )
    with torch.inference_mode():
        for block in (trace[0], trace[5]):
            for ours, theirs in zip(plain(block), fast(block), strict=True):
                assert set(ours) == set(theirs)
                for name in ours:
                    torch.testing.assert_close(theirs[name], ours[name], rtol=1e-5, atol=1e-6, msg=name)
    assert fast.notes == set()


# -- merging -----------------------------------------------------------------------------------------------------------


def test_tallies_with_modes_merge_to_that_of_the_whole_in_any_order(trace: gpu.Trace) -> None:
    rules = (*(ft.rule(spec) for spec in traces.SPECS[:5]), Careless())
    plan = Plan(rules, ReplaySettings(temperature=1.0), detectors=Detectors.of(trace))
    parts = [tally_blocks([trace[i] for i in part], plan) for part in ([3, 0, 9], [10], [5, 1], [2, 4, 6, 7, 8, 11])]
    whole = tally_blocks(trace, plan)
    for seed in range(4):
        random.Random(seed).shuffle(parts)
        merged = Tallies.empty(plan)
        for part in parts:
            merged.merge(part)
        assert merged == whole
