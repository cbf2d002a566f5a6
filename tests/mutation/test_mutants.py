"""Every mutant of our rules and samplers is refuted by `check`, or is listed as equivalent with the reason."""

import functools
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest

import fly_theory as ft
from fly_theory.errors import ExactnessError
from fly_theory.invariants import STRUCTURAL, Case, ErrorsOut, Invariant, RuleFailure, of_claim
from fly_theory.rule_check import check_rule
from fly_theory.search import Pair, drawn_pairs
from fly_theory.witness_test import Source
from tests.invariants.faulty_rules import EmptyResidual
from tests.mutation.mutants import Mutant, mutants


def searched() -> tuple[Pair, ...]:
    """The pairs that `check` draws."""
    return drawn_pairs(300, 0)


class Target(NamedTuple):
    """A function to mutate, and the rules whose checks must notice."""

    module: str
    function: str
    specs: tuple[str, ...]


LENIENCE = "lenience:l=1/2"
TARGETS = [
    Target("arrays", "inverse_cdf", ("lossless",)),
    Target("arrays", "normalise", ("lossless", "sample-match")),
    Target("arrays", "positive_part", ("lossless",)),
    Target("rules.base", "Rule.sample", ("lossless", "sample-match")),
    Target("rules.base", "Rule.induced_from", ("lossless", LENIENCE)),
    Target("rules.base", "Rule.keep", ("lossless", "min-p:base=1/2")),
    Target("rules.base", "Rule.acceptance", ("lossless",)),
    Target("rules.base", "redraw_other", ("sample-match", "threshold:single=1/2,acc=3/4")),
    Target("rules.base", "_passed_on", ("sample-match", "threshold:single=1/2,acc=3/4")),
    Target("rules.lossless", "Lossless.verdict", ("lossless",)),
    Target("rules.lenience", "lenient_mass", (LENIENCE,)),
    Target("rules.lenience", "Lenience.verdict", (LENIENCE,)),
    Target("rules.lenience", "LenienceSubstituted.verdict", ("lenience-substituted:l=1/2",)),
    Target("rules.gated_ceiling", "_OnAndOffTheSet.verdict", ("gated-ceiling:l=1/2",)),
    Target("rules.gated_ceiling", "_OnAndOffTheSet._kept", ("gated-ceiling:l=1/2",)),
    Target("rules.gated_ceiling", "GatedCeiling._off_set", ("gated-ceiling:l=1/2",)),
    Target("rules.threshold", "Threshold.verdict", ("threshold:single=1/2,acc=3/4",)),
    Target("rules.threshold", "Threshold._accepted", ("threshold:single=1/2,acc=3/4", "threshold:acc=1/2")),
    Target("rules.cos", "Cos.verdict", ("cos:w=1/4",)),
    Target("rules.cos", "Cos._mixture", ("cos:w=1/4",)),
    Target("rules.interpolation", "Interpolation._law", ("interpolation:l=1/4",)),
    Target("rules.accept_set", "AcceptSetRule.verdict", ("min-p:base=1/2",)),
    Target("rules.accept_set", "TruncatedTargetRule.verdict", ("truncated-min-p:base=1/2",)),
    Target("allowed_sets", "min_p", ("min-p:base=1/2", "truncated-min-p:base=1/2")),
    Target("allowed_sets", "top_k", ("top-k-match:k=2",)),
    Target("rules.sample_match", "SampleMatch.verdict", ("sample-match:n=2",)),
    Target("rules.sample_match", "SampleMatch._rejected", ("sample-match:n=2",)),
    Target("rules.sample_match", "SampleMatch.residual_after", ("sample-match:n=2",)),
    Target("rules.cascade", "_Cascade.verdict", ("cascade-token-v1:alpha=1/4", "cascade-diff:alpha=1/4")),
    Target("rules.fuzzy", "Fuzzy.verdict", ("fuzzy:divergence=tv,t=1/4",)),
]


# Mutants that nothing can tell from the original, by function and changed line, and why.
_WEIGHTLESS = "a token without weight has the cumulative weight of the token before it, which is found first"
_ONE_VOCABULARY = "only the size of the vocabulary is read, and p and q share it"
_DTYPE = "only the dtype of the argument is read"
_BROADCAST = "only the shape of the argument is read, and the one-hot rows have it already"
_WHOLE_DRAFT = "on the set the gated ceiling keeps the draft, whatever the target"
_ROUNDING = "no share exceeds the sum of shares, except by rounding"
EQUIVALENT = {
    "inverse_cdf": {
        "positive = weights >= 0": _WEIGHTLESS,
        "positive = weights > -1": _WEIGHTLESS,
        "cumulative = xp.cumulative_sum(weights, axis=-1)": _WEIGHTLESS,
        "return first_true(cumulative > (uniforms * total)[..., None])": _WEIGHTLESS,
    },
    "Rule.sample": {
        "check_tokens(tokens, p)": _ONE_VOCABULARY,
    },
    "Rule.keep": {"check_tokens(tokens, p)": _ONE_VOCABULARY},
    "redraw_other": {
        "return p * (array_namespace(p).sum(share, axis=-1, keepdims=True) - share)": _ROUNDING,
    },
    "_OnAndOffTheSet._kept": {
        "return array_namespace(p, q).where(on_set, self._on_set(q, q), self._off_set(p, q))": _WHOLE_DRAFT,
    },
    "Threshold._accepted": {"one = xp.ones_like(q)": _ONE_VOCABULARY},
    "AcceptSetRule.verdict": {
        "return Verdict(accepted=xp.where(self.allowed_set(p), q, xp.zeros_like(p)), residual=p)": _DTYPE,
    },
    "SampleMatch.residual_after": {
        "return p * (1 - one_hot(tokens, p)) - array_namespace(p, q).zeros_like(q)": _BROADCAST,
        "return p * (1 - one_hot(tokens, p))": _BROADCAST,
        "return p * (1 - one_hot(tokens, q)) + array_namespace(p, q).zeros_like(q)": _BROADCAST,
        "return p * (1 - one_hot(tokens, p)) + array_namespace(p, q).zeros_like(p)": _BROADCAST,
    },
}


def refutes(rule: Any, asked: Iterable[Invariant]) -> bool:
    """Whether a pair of the search breaks one of the invariants: each pair under all of them before the next one.

    In float64, as `check` does, where exact arithmetic refuses.
    """
    asked, inexact = list(asked), []
    for number, pair in enumerate(searched()):
        case = Case(rule, *map(ft.exact, pair))
        for invariant in [invariant for invariant in asked if number % invariant.stride == 0]:
            try:
                if breaks(case, invariant):
                    return True
            except ExactnessError:
                asked.remove(invariant)
                inexact.append(invariant)
    floats = functools.partial(np.array, dtype=float)
    return any(
        breaks(Case(rule, *map(floats, pair)), invariant)
        for invariant in inexact
        for pair in searched()[:: invariant.stride]
    )


def breaks(case: Case, invariant: Invariant) -> bool:
    try:
        return invariant.applies(case) and invariant.judge(case) is not None
    except RuleFailure:
        return False


def made_by(mutant: Mutant, original: Any) -> Any:
    """The rule, as the mutant makes it."""
    module = mutant.load(type(original).__module__)
    return getattr(module, type(original).__name__)(**vars(original))


def survives(mutant: Mutant, specs: tuple[str, ...]) -> bool:
    """Whether nothing that `check` judges, the claims of the unmutated rule included, refutes any of the rules."""
    for original in map(ft.rule, specs):
        rule = made_by(mutant, original)
        if refutes(rule, [*map(of_claim, original.claims), *STRUCTURAL]):
            return False
    return not refutes(made_by(mutant, EmptyResidual()), [ErrorsOut()])


def mutants_of(target: Target) -> list[Mutant]:
    return list(mutants(f"fly_theory.{target.module}", target.function))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.module}.{target.function}")
def test_check_refutes_every_mutant_that_is_not_equivalent(target, capsys):
    made = mutants_of(target)
    surviving = [mutant.changed for mutant in made if survives(mutant, target.specs)]
    assert sorted(surviving) == sorted(EQUIVALENT.get(target.function, {}))
    with capsys.disabled():
        sys.stdout.write(f"\n{target.function}: {len(made) - len(surviving)} of {len(made)} mutants refuted")


def test_the_mutants_are_many_and_the_equivalent_ones_few(capsys):
    counts = {target.function: len(mutants_of(target)) for target in TARGETS}
    equivalent = sum(map(len, EQUIVALENT.values()))
    assert sum(counts.values()) >= 200
    assert equivalent < sum(counts.values()) / 10
    assert set(EQUIVALENT) <= set(counts)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{sum(counts.values())} mutants in {len(counts)} functions, {equivalent} of them equivalent"
        )


def test_the_whole_of_check_refutes_what_its_invariants_do():
    """A few mutants through the whole of it, witnesses included."""
    targets = [target for target in TARGETS if target.function in ("Lossless.verdict", "Rule.sample", "Cos._mixture")]
    for target in targets:
        original = ft.rule(target.specs[0])
        for mutant in mutants_of(target)[::7]:
            rule = made_by(mutant, original)
            report = check_rule(rule, original.claims, subject="a mutant", source=Source("a_mutant"), cases=100, seed=0)
            equivalent = mutant.changed in EQUIVALENT.get(target.function, {})
            assert report.ok == equivalent, mutant.changed
            assert all(result.witness for result in report.results if result.asked and result.outcome == "refuted")
