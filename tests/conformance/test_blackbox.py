"""`ft.conformance`: joint laws against enumeration, what it does with all sorts of code, whom it blames."""

import itertools
import json
import math
import random
import signal
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.conformance.adapters import block_rule_verifier
from tests.quality.verifiers import first_rejection, fractions, point_mass, ratio_rule, ratio_test

redraws_from_target = first_rejection(ratio_test, lambda p, q, x, rng: rng.choice(p))

# Rows by the last token; token 0 stands for what is before the text.
P = [fractions("1/2 1/4 1/4"), fractions("1/6 1/3 1/2"), fractions("0 1/2 1/2")]
Q = [fractions("1/4 1/4 1/2"), fractions("1/3 1/3 1/3"), fractions("1/3 0 2/3")]


def emitted_by_enumeration(draft_length, positions):
    """The law of the text of `redraws_from_target`, from its definition."""
    law = {}

    def add(text, mass):
        if len(text) >= positions:
            law[text[:positions]] = law.get(text[:positions], 0) + mass
        else:
            for v in range(3):
                add((*text, v), mass * P[text[-1] if text else 0][v])

    def draft(kept, mass):
        last = kept[-1] if kept else 0
        if len(kept) == draft_length:
            for v in range(3):
                add((*kept, v), mass * P[last][v])
            return
        for x in (x for x in range(3) if Q[last][x]):
            accept = min(Fraction(1), P[last][x] / Q[last][x])
            draft((*kept, x), mass * Q[last][x] * accept)
            for v in range(3):
                add((*kept, v), mass * Q[last][x] * (1 - accept) * P[last][v])

    draft((), Fraction(1))
    return {text: mass for text, mass in law.items() if mass}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_joint_laws_are_those_of_the_definition(length):
    report = ft.conformance(redraws_from_target, Q, target=P, length=length)
    assert report.verdict == "lossy"
    positions = {k: min(length, k + 1) for k in range(1, length + 1)}
    laws = {k: emitted_by_enumeration(k, positions[k]) for k in positions}
    pair = ft.MarkovPair(ft.exact(P), ft.exact(Q), ft.exact([1, 0, 0]))
    distances = {}
    for k, law in laws.items():
        assert sum(law.values()) == 1
        target = ft.target_law(pair, positions[k])
        texts = itertools.product(range(3), repeat=positions[k])
        distances[k] = sum(abs(target[text] - law.get(text, 0)) for text in texts) / 2
    assert report.tv == max(distances.values())
    got = report["lossless"].witness.got
    assert got == (laws[1] if length > 1 else tuple(laws[1].get((v,), 0) for v in range(3)))


def test_lossless_over_every_length():
    report = ft.conformance(ratio_rule, Q, target=P, length=3)
    assert (report.verdict, report.tv, report.max_ratio) == ("lossless", 0, 1)
    assert report["lossless"].cases == 6
    assert report.measures["kept"] == sum(map(min, P[0], Q[0]))


@pytest.mark.parametrize("spec", ["lossless", "block", "sample-match:n=1"])
def test_our_lossless_rules(spec):
    report = ft.conformance(block_rule_verifier(ft.block_rule(spec)), length=2)
    assert report.verdict == ("lossless but slower" if spec.startswith("sample") else "lossless")
    assert report.tv == 0
    assert report.settings["method"] == "exact execution"


@pytest.mark.parametrize(
    ("spec", "bound"), [("lenience:l=0.5", 2), ("lenience-substituted:l=0.5", 2), ("sample-match:n=2", 2)]
)
def test_our_lossy_rules_keep_their_ceilings(spec, bound):
    rule = ft.rule(spec)
    report = ft.conformance(block_rule_verifier(ft.tokenwise(rule)), length=2, claims=[ft.claims.Ceiling(bound)])
    assert report.verdict == "lossy"
    assert report.ok


def test_one_position_agrees_with_the_induced_law():
    p, q = fractions("1/2 3/10 3/20 1/20"), fractions("1/5 1/10 3/10 2/5")
    rule = ft.rule("lenience:l=0.5")
    report = ft.conformance(block_rule_verifier(ft.tokenwise(rule)), q, target=p, length=1)
    assert report["lossless"].witness.got == tuple(rule.induced(ft.exact(p), ft.exact(q)).tolist())
    assert report.tv == Fraction(1, 5)


# -- ways of writing a verifier ---------------------------------------------------------------------------------------


def in_numpy(target_probs, draft_probs, draft_tokens, rng):
    count = len(draft_tokens)
    rows = np.arange(count)
    ratios = target_probs[rows, draft_tokens] / draft_probs[rows, draft_tokens]
    coins = np.array([rng.random() for _ in range(count)])
    rejected = np.flatnonzero(coins >= np.minimum(ratios, 1))
    kept = rejected[0] if len(rejected) else count
    row = target_probs[kept]
    if kept < count:
        row = np.clip(row - draft_probs[kept], 0, None)
    row = row / row.sum()
    token = np.searchsorted(np.cumsum(row), rng.random(), side="right")
    return np.append(draft_tokens[:kept], token)


def with_log_threshold(target_probs, draft_probs, draft_tokens, rng):
    for i, x in enumerate(draft_tokens):
        p, q = map(np.asarray, (target_probs[i], draft_probs[i]))
        if rng.random() >= np.exp(min(0.0, np.log(p)[x] - np.log(q)[x])):
            return [*draft_tokens[:i], rng.choice(np.maximum(p - q, 0))]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def checks_its_input(target_probs, draft_probs, draft_tokens, rng):
    if not np.isfinite(target_probs).all():
        raise ValueError
    return ratio_rule(target_probs, draft_probs, draft_tokens, rng)


def with_log_of_the_uniform(target_probs, draft_probs, draft_tokens, rng):
    for i, x in enumerate(draft_tokens):
        p, q = target_probs[i], draft_probs[i]
        if p[x] == 0 or math.log(rng.random() or 1e-300) >= math.log(p[x] / q[x]):
            return [*draft_tokens[:i], rng.choice([max(a - b, 0) for a, b in zip(p, q, strict=True)])]
    return [*draft_tokens, rng.choice(target_probs[-1])]


def in_float32(target_probs, draft_probs, draft_tokens, rng):
    target_probs, draft_probs = (rows.astype(np.float32) for rows in (target_probs, draft_probs))
    return ratio_rule(target_probs, draft_probs, draft_tokens, rng)


def in_torch(target_probs, draft_probs, draft_tokens, rng):
    torch = pytest.importorskip("torch")
    p, q = (torch.tensor(rows, dtype=torch.float32) for rows in (target_probs, draft_probs))
    for i, x in enumerate(draft_tokens):
        if rng.random() >= p[i, x] / q[i, x]:
            return [*draft_tokens[:i], rng.choice((p[i] - q[i]).clamp(min=0))]
    return [*draft_tokens, rng.choice(p[-1])]


@pytest.mark.parametrize(
    ("verifier", "method", "settings"),
    [
        (ratio_rule, "exact execution", {}),
        (in_numpy, "exact execution", {}),
        (with_log_threshold, "exact execution", {}),
        (in_float32, "exact execution", {}),
        (in_torch, "exact execution, float64 rows", {}),
        (checks_its_input, "exact execution, float64 rows", {}),
        (with_log_of_the_uniform, "samples", {"length": 2, "resolution": 0.1}),
    ],
)
def test_it_follows_ordinary_code(verifier, method, settings):
    report = ft.conformance(verifier, **settings)
    assert report.verdict == "lossless"
    assert report.settings["method"] == method
    assert isinstance(report.tv, Fraction) is (verifier in (ratio_rule, in_numpy))


@pytest.mark.parametrize("how", [with_log_threshold, checks_its_input, with_log_of_the_uniform])
def test_faults_are_found_by_every_method(how):
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        """One test in four is skipped."""
        if rng.random() < 0.25:
            return [*draft_tokens, rng.choice(target_probs[-1])]
        return how(target_probs, draft_probs, draft_tokens, rng)

    report = ft.conformance(verifier, fractions("3/4 1/4"), target=fractions("1/4 3/4"), length=1, resolution=0.1)
    assert report.verdict == "lossy"
    assert report.tv.low <= 1 / 8 <= report.tv.high
    assert (
        report.max_ratio == pytest.approx(1.5) if isinstance(report.max_ratio, float) else report.max_ratio.low <= 1.5
    )


def test_samples_say_what_they_had_power_for_and_stop_early():
    settings = {"drafter": fractions("1/2 1/2"), "target": fractions("1/2 1/2"), "length": 1, "resolution": 0.1}
    fine = ft.conformance(with_log_of_the_uniform, **settings)
    assert fine.settings["detectable TV"] <= 0.1
    assert fine.settings["false alarms"] == 1e-6

    def always_zero(target_probs, draft_probs, draft_tokens, rng):
        math.log(rng.random() or 1e-300)
        return [0]

    clear = ft.conformance(always_zero, **settings)
    assert clear.verdict == "lossy"
    assert clear.settings["calls"] < fine.settings["calls"] / 2


def test_too_little_time_is_undecided():
    def slow(*arguments):
        time.sleep(2e-3)
        return with_log_of_the_uniform(*arguments)

    report = ft.conformance(slow, Q, target=P, length=1, seconds=0.05, resolution=0.01)
    assert report.verdict == "undecided"
    assert report.conclusion == "undecided"
    assert report.settings["detectable TV"] > 0.01
    exact = ft.conformance(ratio_rule, seconds=0)
    assert exact.verdict == "lossless"
    assert "left out for lack of time" in exact["lossless"].detail


@pytest.mark.parametrize("generator", [random.random, np.random.random, np.random.default_rng(0).random])
def test_a_generator_of_its_own_is_noticed(generator):
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        class Own:
            random = staticmethod(generator)
            choice = rng.choice

        return ratio_rule(target_probs, draft_probs, draft_tokens, Own)

    report = ft.conformance(verifier, ["3/4", "1/4"], target=["1/4", "3/4"], length=1, resolution=0.1)
    assert report.settings["method"] == "samples"
    assert report["same seed, same answer"].outcome == "refuted"
    assert report.verdict == "lossless"


def test_rows_that_differ_in_width_and_laws_that_are_computed():
    report = ft.conformance(
        ratio_rule, target=[0.5, 0.5], told=lambda row: [1 - row[1], row[1]], drafter=[0.25, 0.75], length=2
    )
    assert report.verdict == "lossless"
    softened = ft.conformance(ratio_rule, told=lambda row: (row + Fraction(1, len(row))) / 2, length=2)
    assert softened.verdict == "lossy"
    assert softened["q^ is the law drafts are drawn from"].outcome == "refuted"


# -- errors are the verifier's -----------------------------------------------------------------------------------------


def throws(target_probs, draft_probs, draft_tokens, rng):
    if rng.random() < Fraction(1, 4):
        return [0] if len(draft_tokens) < 2 else 1 / 0
    return ratio_rule(target_probs, draft_probs, draft_tokens, rng)


def hangs(target_probs, draft_probs, draft_tokens, rng):
    while len(draft_tokens) == 2:
        pass
    return ratio_rule(target_probs, draft_probs, draft_tokens, rng)


def sleeps(target_probs, draft_probs, draft_tokens, rng):
    time.sleep(60)


def exits(target_probs, draft_probs, draft_tokens, rng):
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("verifier", "said"),
    [
        (throws, "raised ZeroDivisionError: division by zero"),
        (hangs, "did not return within 0.2 s"),
        (sleeps, "did not return within 0.2 s"),
        (exits, "raised SystemExit: 3"),
        (lambda p, q, x, rng: [len(p[0])], "outside the vocabulary 0..1"),
        (lambda p, q, x, rng: [-1], "outside the vocabulary 0..1"),
        (lambda p, q, x, rng: [], "returned no token"),
        (lambda p, q, x, rng: None, "returned None, which is no list of token ids"),
        (lambda p, q, x, rng: 0, "returned 0, which is no list of token ids"),
        (lambda p, q, x, rng: [0.5], "which is no list of token ids"),
        (lambda p, q, x, rng: [rng.choice([0, 0])], "gave rng.choice the weights (0, 0)"),
        (lambda p, q, x, rng: [rng.normal()], "has no attribute 'normal'"),
    ],
)
def test_errors_are_laid_at_the_verifiers_door(verifier, said):
    report = ft.conformance(verifier, ["1/4", "3/4"], target=["1/2", "1/2"], length=2, call_seconds=0.2)
    assert (report.verdict, report.ok, report.tv) == ("invalid", False, None)
    runs = report["runs"]
    assert runs.outcome == "refuted"
    assert said in runs.detail
    inputs = runs.witness.inputs
    assert set(inputs) == {"target_probs", "draft_probs", "draft_tokens"}
    assert len(inputs["draft_tokens"]) == (2 if verifier in (throws, hangs) else 1)
    assert inputs["target_probs"][0] == (0.5, 0.5)
    json.loads(report.to_json())


def test_what_an_interruption_leaves_behind_is_not_blamed():
    loaded = []

    def imports_at_the_first_call(target_probs, draft_probs, draft_tokens, rng):
        if not loaded:
            loaded.append("half")
            time.sleep(60)
        msg = "partially initialized module"
        raise ImportError(msg)

    report = ft.conformance(imports_at_the_first_call, ["1/4", "3/4"], target=["1/2", "1/2"], call_seconds=0.2)
    assert report["runs"].detail == "did not return within 0.2 s"


def test_what_is_wrong_with_the_draft_law_is_said_of_a_crash_too():
    report = ft.conformance(lambda *_: 1 / 0, ["1/2", "1/2"], told=["1/4", "1/4"], target=["1/2", "1/2"], length=1)
    assert report.verdict == "invalid"
    assert report["q^ is normalised"].outcome == "refuted"


def test_an_error_with_nothing_drafted_is_told_apart():
    def verifier(target_probs, draft_probs, draft_tokens, rng):
        draft_tokens[0]
        return ratio_rule(target_probs, draft_probs, draft_tokens, rng)

    report = ft.conformance(verifier, length=1)
    assert report.verdict == "lossless"
    result = report["K = 0 agrees with K > 0"]
    assert result.outcome == "not applicable"
    assert "IndexError" in result.detail


def test_alarms_of_others_still_go_off():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        started = time.monotonic()
        ft.conformance(ratio_rule, length=1)
        while not rung and time.monotonic() - started < 5:
            time.sleep(0.01)
        assert rung
        assert rung[0] - started >= 0.29
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_it_runs_in_other_threads():
    reports = []
    thread = threading.Thread(target=lambda: reports.append(ft.conformance(ratio_rule, length=1)))
    thread.start()
    thread.join()
    assert reports[0].verdict == "lossless"


def test_own_errors_are_not_the_verifiers():
    def drafter(row, rng):
        return int(math.log(rng.random()) < -1)

    with pytest.raises(ft.errors.InvalidInput, match="drafter cannot be followed exactly"):
        ft.conformance(ratio_rule, drafter, target=[0.5, 0.5], told=[0.5, 0.5])


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"target": [0.5, 0.5]}, "InvalidInput", "without a draft law"),
        ({"drafter": [0.5, 0.5]}, "InvalidInput", "drafter given without target"),
        ({"candidates": [[0]]}, "InvalidInput", "candidates given without target"),
        ({"target": [0.5, 0.6], "drafter": [1, 0]}, "DistributionError", "target sums to 1.1"),
        ({"target": [0.5, 0.5], "drafter": [0.5, 0.25]}, "DistributionError", "drafter sums to 0.75"),
        ({"target": [0.5, 0.5], "drafter": [0.5, 0.25, 0.25]}, "ShapeError", "drafter has 3 tokens and target 2"),
        ({"target": [1, 0], "drafter": [1, 0], "candidates": [[0], [0, 1]]}, "InvalidInput", "paths of one length"),
        ({"target": [1, 0], "drafter": [1, 0], "candidates": [[2]]}, "InvalidInput", "token ids 0..1"),
        ({"goal": lambda p, q: [1]}, "ShapeError", "what goal returns has 1 entries; expected a row of 2 tokens"),
        ({"goal": lambda p, q: 2 * p}, "DistributionError", "what goal returns sums to 2"),
        ({"told": lambda row: [*row, 0]}, "ShapeError", "what told returns has 3 entries"),
        ({"drafter": lambda row, rng: len(row)}, "InvalidInput", "drafter returns 2; allowed are token ids 0..1"),
        ({"drafter": lambda row, rng: 0.5}, "InvalidInput", "drafter returns 0.5"),
        ({"length": 0}, "InvalidInput", "length=0"),
        ({"false_alarm": 0}, "InvalidInput", "false_alarm=0"),
        ({"resolution": 1}, "InvalidInput", "resolution=1"),
    ],
)
def test_settings_that_are_not_allowed(settings, error, said):
    with pytest.raises(getattr(ft.errors, error), match=said):
        ft.conformance(ratio_rule, **settings)


# -- the report --------------------------------------------------------------------------------------------------------


def test_the_report_is_readable_and_json():
    report = ft.conformance(redraws_from_target, ["3/4", "1/4"], target=["1/2", "1/2"], length=1)
    text = str(report)
    assert "out is      (5/8, 3/8)" in text
    assert "out must be (1/2, 1/2)" in text
    document = json.loads(report.to_json())
    assert (document["verdict"], document["tv"], document["max_ratio"]) == ("lossy", "1/8", "5/4")


def test_the_pytest_case_of_a_witness_fails_as_it_should():
    report = ft.conformance(redraws_from_target)
    case = report["lossless"].witness.test
    scope = {"ft": ft, "verifier": redraws_from_target}
    exec(case, scope)
    with pytest.raises(AssertionError):
        scope["test_verifier"]()
    scope["verifier"] = ratio_rule
    scope["test_verifier"]()


def test_the_smallest_counterexample_comes_first():
    witness = ft.conformance(redraws_from_target)["lossless"].witness
    assert len(witness.inputs["p"]) == 2
    assert all(mass.denominator <= 4 for mass in witness.inputs["p"])


def test_seeds_change_the_pairs_and_not_the_verdict():
    reports = [ft.conformance(redraws_from_target, seed=seed) for seed in (0, 0, 1)]
    assert reports[0].tv == reports[1].tv
    assert [report.verdict for report in reports] == ["lossy"] * 3


def test_a_point_mass_target_needs_few_samples():
    def greedy(target_probs, draft_probs, draft_tokens, rng):
        math.log(rng.random() or 1e-300)
        return [max(range(len(target_probs[0])), key=target_probs[0].__getitem__)]

    report = ft.conformance(greedy, point_mass(0, 3), target=point_mass(0, 3), length=1)
    assert report.verdict == "lossless but slower"
    assert report.settings["calls"] < 1000
