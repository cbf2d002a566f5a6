"""`check`: outcomes, smallest witnesses, claims from text, reproducibility, and manners inside other people's tests."""

import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fly_theory as ft
from fly_theory import claims, invariants, provers
from fly_theory.claim_text import claim_from_text
from fly_theory.errors import InvalidInput, ParameterError, UnknownName
from fly_theory.parameters import Interval, parameter
from fly_theory.search import drawn, smallest
from fly_theory.strategies import distributions, pairs
from tests.invariants import faulty_rules as faulty
from tests.invariants.test_block_level import KeepsAll

ROOT = Path(__file__).parents[2]
HALF = Fraction(1, 2)


# -- verdicts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [
        ("lossless", "lossless"),
        ("lenience:l=1", "lossless"),
        ("sample-match", "lossless but slower"),
        ("lenience:l=0.5", "lossy"),
        ("truncated-min-p:base=0.5", "lossy"),
    ],
)
def test_a_registered_rule_is_what_it_claims(spec, verdict):
    report = ft.check(spec, cases=80)
    assert report.ok
    assert report.verdict == verdict
    assert {result.outcome for result in report.results if result.asked} <= {"held", "proved"}
    assert report.settings["arithmetic"] == "exact"


def test_the_measured_figures_are_the_extremes_that_were_met():
    report = ft.check("lenience:l=1/2", cases=80)
    assert report.max_ratio == 2
    assert isinstance(report.tv, Fraction)
    assert report.tv == HALF


def test_slower_shows_both_acceptance_rates():
    measures = ft.check("sample-match", cases=80).measures
    p, q = measures["at p"], measures["q"]
    assert measures["acceptance"] == sum(a * b for a, b in zip(p, q, strict=True))
    assert measures["where sum min(p, q) is"] == sum(map(min, p, q))


def test_a_rule_that_cannot_be_exact_is_judged_in_float64_and_says_so():
    report = ft.check("cactus:delta=0.1", cases=60)
    assert report.ok
    assert report.settings["arithmetic"].startswith("float64 within 1e-09")
    assert "square root" in report.settings["arithmetic"]


def test_a_float_in_a_rule_of_ones_own_means_float64_with_the_reason():
    class Halves(faulty.Sound):
        def verdict(self, p, q):
            return faulty.Verdict(0.5 * q, p)

    report = ft.check(Halves(), ["lossless"], cases=60)
    assert "0.5 is a float" in report.settings["arithmetic"]
    assert report["lossless"].outcome == "refuted"
    assert isinstance(report["lossless"].witness.got[0], float)
    assert "np.array([1, 0], dtype=float)" in report["lossless"].witness.test


# -- witnesses ---------------------------------------------------------------------------------------------------------


def simplex(size: int, denominator: int):
    for total in range(1, denominator + 1):
        for weights in itertools.product(range(total + 1), repeat=size):
            if sum(weights) == total:
                yield tuple(Fraction(weight, total) for weight in weights)


def size_of(pair):
    denominators = [entry.denominator for row in pair for entry in row]
    return len(pair[0]), max(denominators)


@pytest.mark.parametrize(
    ("rule", "claim"),
    [
        ("lenience-resample:l=1", "lossless"),
        ("lenience-substituted:l=1/2", "on-the-line"),
        ("cascade-token-v3:alpha=1/2", "on-the-line"),
        ("cos:w=1/2", "ceiling:2"),
        ("lenience:l=1/2", "ceiling:3/2"),
        ("gated-ceiling:l=1/2", "ceiling:3"),
        ("min-p:base=1/2", "fixed-point"),
        ("cos:w=1/2", "support"),
        ("sample-match:n=2", "total_variation:1/5"),
    ],
)
def test_the_witness_is_the_smallest_there_is(rule, claim):
    """No pair with fewer tokens, or as many and smaller denominators, breaks the claim: tried one by one."""
    report = ft.check(rule, [claim], cases=150)
    invariant = invariants.of_claim(claim_from_text(claim))
    result = report[invariant.name]
    assert result.outcome == "refuted"
    witness = result.witness.inputs["p"], result.witness.inputs["q"]
    size, denominator = size_of(witness)
    for smaller in range(1, size + 1):
        rows = list(simplex(smaller, denominator - (smaller == size)))
        for pair in itertools.product(rows, rows):
            assert invariant.examine(ft.rule(rule), *pair) is None


def test_the_pasted_test_fails_on_the_faulty_rule_and_passes_on_the_repaired_one():
    for spec, fixed in (("examples/my_rule.py:MyRule", "examples/my_rule.py:Corrected"),):
        path = f"{ROOT}/{spec}"
        code = ft.check(path, cases=80)["lossless"].witness.test
        run = {}
        exec(code, run)
        with pytest.raises(AssertionError, match="Fraction"):
            run["test_lossless"]()
        exec(code.replace(path, f"{ROOT}/{fixed}"), run)
        run["test_lossless"]()


PASTED = [
    ("lenience:l=1/2", ["ceiling:3/2"]),
    ("cos:w=1/2", ["support"]),
    ("cos:w=1/2", ["kl:1/100"]),
    (faulty.OneUniformForBoth(), None),
    (faulty.Guesses(), None),
    (faulty.Greedy(), [claims.ReducesTo("lossless", {"share": 1}), claims.MonotoneIn("share", "smaller")]),
]


@pytest.mark.parametrize(("spec", "asked"), PASTED, ids=[str(case[0]) for case in PASTED])
def test_every_kind_of_pasted_test_runs_and_fails(spec, asked):
    report = ft.check(spec, asked, cases=150)
    refuted = [result for result in report.results if result.outcome == "refuted" and result.asked]
    assert refuted
    for result in refuted:
        run = {}
        exec(result.witness.test, run)
        test = next(value for name, value in run.items() if name.startswith("test_"))
        with pytest.raises(AssertionError):
            test()


def test_a_law_that_only_the_rule_knows_is_looked_up_among_its_claims():
    class Boastful(faulty.Sound):
        @property
        def claims(self):
            return (claims.Induces("q", lambda p, q: q),)

    code = ft.check(Boastful(), cases=60)["out = q"].witness.test
    assert 'claim for claim in rule.claims if str(claim) == "out = q"' in code


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (faulty.Crashes(), "answers"),
        (faulty.WrongShape(), "answers"),
        (faulty.AcceptsMoreThanDrafted(), "mass-valid"),
        (faulty.NegativeResidual(), "mass-valid"),
        (faulty.EmptyResidual(), "mass-valid"),
        (faulty.NotRenormalised(), "normalised"),
        (faulty.Negative(), "normalised"),
        (faulty.OffTheClosedForm(), "sampler agrees with the closed form"),
        (faulty.OneUniformForBoth(), "uniforms are independent"),
        (faulty.KeepsAtTheEdge(), "coin edges"),
        (faulty.LikesTokenZero(), "equivariant under permutations"),
        (faulty.CountsTokens(), "independent of batch and padding"),
        (faulty.SharesRows(), "independent of batch and padding"),
        (faulty.Mutates(), "pure"),
        (faulty.Forgets(), "pure"),
        (faulty.Guesses(), "errors on bad input and empty residuals"),
        (faulty.HidesEmptyResiduals(), "errors on bad input and empty residuals"),
    ],
    ids=lambda x: getattr(x, "spec", ""),
)
def test_what_every_rule_owes_is_refuted_by_a_search(rule, name):
    report = ft.check(rule, cases=120)
    assert report[name].outcome == "refuted"
    assert report.verdict == "invalid"
    assert report.conclusion == "refuted"


def test_a_rule_that_changes_its_mind_is_not_taken_for_one_that_holds():
    report = ft.check(faulty.ChangesItsMind(), ["lossless"], cases=60)
    assert report["lossless"].outcome == "refuted"
    assert report["lossless"].witness.got != report["lossless"].witness.expected


# -- claims ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("lossless", claims.Lossless()),
        ("on-the-line", claims.OnTheLine()),
        ("fixed-point", claims.FixedPoint()),
        ("ceiling:5/2", claims.Ceiling(Fraction(5, 2), "5/2")),
        ("kl:0.1", claims.DivergenceBound("kl", Fraction(1, 10), "0.1")),
    ],
)
def test_claims_from_text(text, claim):
    assert claim_from_text(text) == claim


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("losless", UnknownName, "lossless"),
        ("ceiling", InvalidInput, "ceiling:2"),
        ("ceiling:two", InvalidInput, "ceiling:2"),
        ("ceiling:1/0", InvalidInput, "ceiling:2"),
        ("ceiling:-1", ParameterError, "negative"),
        ("lossless:1", InvalidInput, "no number"),
    ],
)
def test_unreadable_claims_say_what_is_allowed(text, error, hint):
    with pytest.raises(error) as caught:
        ft.check("lossless", [text])
    assert hint in str(caught.value)


def test_claims_given_replace_those_of_the_rule():
    report = ft.check("lenience:l=1/2", ["lossless"], cases=60)
    assert not report.ok
    assert "ceiling 1/l" not in {result.name for result in report.results}


def test_what_is_not_claimed_informs_and_does_not_decide():
    report = ft.check("min-p:base=1/2", cases=80)
    assert report.ok
    for name in ("lossless", "on the TV line", "accepts everything at p = q"):
        assert report[name].outcome == "refuted"
        assert not report[name].asked
        assert report[name].detail.startswith("at p = (")


# -- proofs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def prover(monkeypatch):
    """Install one prover, which knows that every rule is lossless, and one whose dependencies are missing."""

    def missing():
        raise ModuleNotFoundError(name="z3")

    entries = [
        SimpleNamespace(load=missing),
        SimpleNamespace(load=lambda: lambda rule, claim: "theorem 1" if claim == claims.Lossless() else None),
    ]
    monkeypatch.setattr(provers, "entry_points", lambda group: entries if group == "fly_theory.provers" else [])


@pytest.mark.usefixtures("prover")
def test_proved_is_said_only_where_a_prover_names_a_theorem():
    report = ft.check("lossless", cases=60)
    assert report["lossless"].outcome == "proved"
    assert report["lossless"].detail.startswith("theorem 1; held on")
    assert report["on the TV line"].outcome == "held"


@pytest.mark.usefixtures("prover")
def test_a_counterexample_outweighs_a_theorem():
    report = ft.check("lenience:l=1/2", ["lossless"], cases=60)
    assert report["lossless"].outcome == "refuted"
    assert "theorem 1" in report["lossless"].detail


# -- what can be checked -----------------------------------------------------------------------------------------------


def test_classes_objects_and_files():
    assert ft.check(faulty.Sound, cases=20).subject == "Sound"
    assert ft.check(faulty.Sound(), cases=20).subject == "Sound"
    assert ft.check("tests.invariants.faulty_rules:Sound", cases=20).ok
    assert ft.check(ft.rule("cos:w=1/3"), cases=20).subject == "cos:w=1/3"


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("losless", "lossless"),
        ("lenience", "lenience:l=..."),
        ("lenience:l=7", "(0, 1]"),
        ("nowhere.py:Rule", "nowhere.py"),
        (f"{ROOT}/examples/my_rule.py:MyRole", "MyRule"),
        ("fractions:Fraction:l=1", "Fraction"),
        ("math:pi", "float"),
        (3, "int"),
    ],
)
def test_what_cannot_be_checked_is_an_error_that_names_it(spec, hint):
    with pytest.raises(InvalidInput) as caught:
        ft.check(spec)
    assert hint in str(caught.value)


def test_a_file_that_cannot_be_imported_is_bad_input(tmp_path):
    (tmp_path / "broken.py").write_text("import fly_theory\nraise SystemError('oh')\n")
    with pytest.raises(InvalidInput, match="SystemError: oh"):
        ft.check(f"{tmp_path}/broken.py:Rule")


def test_a_parameter_of_one_value_leaves_monotonicity_undecided():
    @dataclass(frozen=True)
    class Loosest(faulty.Greedy):
        share: Fraction = parameter(Interval(0, 1), "kept share of the draft", default=1)

    report = ft.check(Loosest(), [claims.MonotoneIn("share", "smaller")], cases=5)
    assert report.conclusion == "undecided"
    assert "no second value of 'share'" in report["acceptance and TV grow as share gets smaller"].detail


@pytest.mark.parametrize("own", [lambda self: (claims.Lossless(),), claims.Lossless()], ids=["a method", "one claim"])
def test_claims_of_ones_own_that_cannot_be_read_are_bad_input(own):
    spoilt = type("Spoilt", (faulty.Sound,), {"claims": own})
    with pytest.raises(InvalidInput, match=r"the claims of Spoilt .*a property that returns a tuple"):
        ft.check(spoilt())


@pytest.mark.parametrize("factor", [lambda p, q: 1 / 0, None, float("nan")])
def test_a_ceiling_that_is_no_number_is_bad_input(factor):
    with pytest.raises(InvalidInput, match="a claim of Sound cannot be evaluated"):
        ft.check(faulty.Sound(), [claims.Ceiling(factor, "f")], cases=5)


# -- block rules and verifiers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [("block", "lossless"), ("hierarchical", "lossless"), ("fly:theta=0.3,window=2", "lossy")],
)
def test_a_block_rule_is_what_it_claims(spec, verdict):
    report = ft.check(spec, cases=100)
    assert report.ok
    assert report.verdict == verdict
    assert report.settings["arithmetic"] == "exact"


def test_a_lossy_block_rule_is_refuted_with_the_law_of_its_text():
    report = ft.check("hierarchical-mincap", ["lossless"], cases=200)
    witness = report["lossless"].witness
    assert report.verdict == "lossy"
    assert np.sum(witness.got) == np.sum(witness.expected) == 1
    assert witness.got != witness.expected
    run = {}
    exec(witness.test, run)
    with pytest.raises(AssertionError):
        run["test_lossless"]()


def test_objects_and_classes_of_block_rules():
    assert ft.check(ft.tokenwise(ft.rule("lossless")), cases=50).verdict == "lossless"
    report = ft.check(KeepsAll, ["lossless"], cases=50)
    assert not report.ok
    assert "from tests.invariants.test_block_level import KeepsAll" in report["lossless"].witness.test


def test_a_verifier_function_goes_to_the_black_box_check():
    def trusting(target_probs, draft_probs, draft_tokens, rng):
        return [*draft_tokens, rng.choice(target_probs[-1])]

    report = ft.check(trusting)
    assert report.verdict == "lossy"
    assert not report.ok


# -- search ------------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_report_and_another_seed_other_pairs():
    first, second = (ft.check("cos:w=1/2", ["ceiling:2"], cases=60, seed=3).to_json() for _ in range(2))
    assert first == second
    assert drawn(pairs(), 60, 3) == drawn(pairs(), 60, 3) != drawn(pairs(), 60, 4)


def test_the_search_meets_zeros_ties_equal_and_disjoint_pairs():
    met = drawn(pairs(), 300, 0)
    assert len(set(met)) == len(met) > 150
    assert any(0 in p or 0 in q for p, q in met)
    assert any(len(set(p)) < len(p) for p, q in met)
    assert any(p == q and len(p) > 1 for p, q in met)
    assert any(not any(map(min, p, q)) for p, q in met)
    assert any(p != q and sorted(p) == sorted(q) for p, q in met)
    assert {len(p) for p, _ in met} == {1, 2, 3, 4, 5}


@given(st.integers(1, 5).flatmap(distributions))
def test_strategies_draw_distributions(row):
    assert sum(row) == 1
    assert min(row) >= 0


def test_nothing_is_found_where_nothing_is():
    assert smallest(lambda pair: sum(pair[0]) != 1, 40, 0, enumerated=100) is None


def test_nothing_is_written_or_printed(tmp_path):
    """In a fresh process and an empty working directory: no database, no warnings, no output of its own."""
    code = "import fly_theory as ft; r = ft.check('lenience-resample:l=1', ['lossless'], cases=60); assert not r.ok"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


# -- command line ------------------------------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from fly_theory.cli import main; main()", "check", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wrong_rule_of_the_readme_is_refuted_with_its_counterexample():
    run = command("examples/my_rule.py:MyRule")
    assert run.returncode == 1
    for part in (
        "lossy",
        "p = (1/2, 1/2)",
        "q = (1, 0)",
        "out is      (3/4, 1/4)",
        "out must be (1/2, 1/2)",
        "def test_lossless",
    ):
        assert part in run.stdout


def test_the_corrected_rule_holds_and_json_is_one_document():
    run = command("examples/my_rule.py:Corrected", "--json", "--cases", "60")
    assert run.returncode == 0
    document = json.loads(run.stdout)
    assert document["verdict"] == "lossless"
    assert document["conclusion"] == "holds"
    claimed = {result["name"]: result["outcome"] for result in document["results"] if result["claimed"]}
    assert set(claimed.values()) == {"held", "proved"}
    assert claimed["lossless"] == "proved"


def test_claims_on_the_command_line_and_bad_input():
    run = command("cos:w=1/2", "--claim", "ceiling:2", "--claim", "on-the-line", "--json", "--cases", "60")
    assert run.returncode == 1
    document = json.loads(run.stdout)
    outcomes = {result["name"]: result["outcome"] for result in document["results"]}
    assert (outcomes["ceiling 2"], outcomes["on the TV line"]) == ("refuted", "proved")
    assert document["max_ratio"] == "inf"
    wrong = command("lenience:l=2")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "(0, 1]" in wrong.stderr


def test_doubt_has_an_exit_code_of_its_own(tmp_path):
    """A rule whose threshold compares sums of square roots: exact arithmetic refuses to guess where they are equal."""
    (tmp_path / "rooted.py").write_text(UNDECIDABLE)
    run = command(f"{tmp_path}/rooted.py:Rooted", "--json", "--cases", "40")
    assert run.returncode == 3, run.stderr
    document = json.loads(run.stdout)
    assert document["conclusion"] == document["verdict"] == "undecided"
    assert "4096 bits" in next(r["detail"] for r in document["results"] if r["name"] == "lossless")


UNDECIDABLE = """
from dataclasses import dataclass

from fly_theory.arrays import array_namespace
from fly_theory.claims import Lossless
from fly_theory.rules import Rule, Verdict


@dataclass(frozen=True)
class Rooted(Rule):
    def verdict(self, p, q):
        xp = array_namespace(p, q)
        two, three, five, six = (xp.sqrt(xp.ones_like(p) * n) for n in (2, 3, 25, 6))
        equal = two + three >= xp.sqrt(five + 2 * six)
        return Verdict(xp.where(equal, xp.minimum(p, q), q), p - xp.minimum(p, q))

    @property
    def claims(self):
        return (Lossless(),)
"""


@dataclass(frozen=True)
class Unclaimed(faulty.Sound):
    pass


def test_a_rule_without_claims_is_still_told_what_it_is():
    report = ft.check(Unclaimed(), cases=40)
    assert report.ok
    assert report.verdict == "lossless"
