"""A rule with one operator changed is not proved by the theorem about it, and is refuted where that makes it false."""

import inspect
import sys
import textwrap

import pytest

import fly_theory as ft
import proofs
from fly_theory import invariants
from fly_theory.errors import ZeroResidualError
from fly_theory.parameters import build
from fly_theory.registry import rule_class
from proofs.statements import Says

# rule, method, what is changed, into what, the theorem about the rule, whether its claims become false.
WEAKENED = [
    ("lossless", "verdict", "positive_part(p - q)", "positive_part(q - p)", "lossless", True),
    ("lossless", "verdict", "xp.minimum(q, p)", "xp.maximum(q, p)", "lossless", True),
    ("lenience", "verdict", "positive_part(p - q)", "positive_part(p + q)", "lenience-ceiling", True),
    ("lenience", "verdict", "positive_part(p - q)", "positive_part(p + q)", "on-the-line", True),
    ("lenience", "verdict", "p, q, self.l", "p, q, self.l / 2", "lenience-ceiling", True),
    (
        "lenience-substituted",
        "verdict",
        "scalar(self.l, p) * q",
        "scalar(self.l, p) + q",
        "lenience-substituted-ceiling",
        True,
    ),
    ("ceiling-everywhere", "verdict", "p - kept", "p + kept", "overshoot-is-lenience", True),
    ("ceiling-everywhere", "verdict", "p - kept", "p + kept", "lenience-ceiling", True),
    (
        "lenience-substituted",
        "verdict",
        "p - scalar(self.l, p) * q",
        "p - q",
        "lenience-substituted-law",
        True,
    ),
    ("gated-ceiling", "verdict", "p - kept", "p", "gated-ceiling-law", True),
    (
        "gated-ceiling",
        "_off_set",
        "lenient_mass(p, q, self.l)",
        "q + 0 * lenient_mass(p, q, self.l)",
        "gated-ceiling-ratio",
        True,
    ),
    ("gated-ceiling", "verdict", "p - kept", "p + kept", "on-the-line", True),
    ("ceiling-on-set", "verdict", "p - kept", "q - kept", "on-the-line", True),
    ("cos", "_mixture", "(1 - w) * p", "(1 + w) * p", "cos-distance", True),
    ("cos", "verdict", "positive_part(p - q)", "positive_part(q - p)", "cos-distance", True),
    ("interpolation", "_law", "(1 - l) * q", "(1 + l) * q", "interpolation-law", True),
    ("cascade-token-v2", "verdict", "law - q", "q - law", "cascade-token-law", True),
    ("cascade-diff", "verdict", ".minimum(", ".maximum(", "switch-law", True),
    ("fuzzy", "verdict", "xp.minimum(q, p)", "xp.maximum(q, p)", "switch-law", True),
    ("min-p", "verdict", "residual=p", "residual=q", "accept-set-law", True),
    ("truncated-min-p", "verdict", "target - q", "q - target", "truncated-lossless", True),
    ("sample-match", "_rejected", "(1 - p)", "(1 - p / 2)", "sample-match-ratio", True),
    ("sample-match", "verdict", "q - rejected", "q - rejected * rejected", "sample-match-lossless", True),
    ("sample-match", "verdict", "redraw_other(p, rejected)", "p", "sample-match-law", True),
    ("threshold", "_accepted", ">=", "<=", "threshold-ratio", True),
    ("threshold", "verdict", "redraw_other(p, q - accepted)", "p", "threshold-law", True),
    ("cos-contrastive", "verdict", "law - q", "q - law", "contrastive-law", True),
    ("mentored", "verdict", "lowered * p", "raised * p", "mentored-line", False),
    ("block", "passes", "(1 - b", "(1 + b", "block-lossless", False),
    ("hierarchical", "weights", "since[-1] > 1", "since[-1] < 1", "hierarchical-is-block", False),
    ("fly", "_judge", "gate & boundary & window", "gate & boundary | window", "fly-window", False),
]


def weakened(name: str, method: str, old: str, new: str) -> type:
    """The registered class with one place of one method's source changed."""
    level = "block" if name in ("block", "hierarchical", "fly") else "token"
    cls = rule_class(name, level=level)
    owner = next(base for base in cls.__mro__ if method in vars(base))
    function = inspect.unwrap(vars(owner)[method])
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, source
    namespace = dict(vars(sys.modules[owner.__module__]))
    exec(source.replace(old, new), namespace)
    return type(cls.__name__, (cls,), {method: namespace[function.__name__]})


@pytest.mark.parametrize(("name", "method", "old", "new", "theorem", "false"), WEAKENED)
def test_weakened_rules_are_not_proved(name, method, old, new, theorem, false):
    proof = proofs.prove(theorem, substitutes={name: weakened(name, method, old, new)})
    assert proof.outcome == ("refuted" if false else "unknown")
    assert proof.missing


@pytest.mark.parametrize(("name", "method", "old", "new", "theorem"), [row[:-1] for row in WEAKENED if row[-1]])
def test_the_invariants_confirm_what_refutes_them(name, method, old, new, theorem):
    cls = weakened(name, method, old, new)
    proof = proofs.prove(theorem, substitutes={name: cls})
    rule = _made(cls, proof.witness.rule)
    claims = [c for subject in proof.theorem.about if subject.rule == name for c in subject.claims(rule)]
    claim = next(c for c in claims if str(c) == proof.witness.claim)
    p, q = (ft.exact(list(proof.witness.inputs[row])) for row in "pq")
    if "out" not in proof.witness.found:
        with pytest.raises(ZeroResidualError):
            rule.induced(p, q)
    elif isinstance(claim, Says):
        assert not claim.holds(rule, p, q).all()
    else:
        assert invariants.of_claim(claim).examine(rule, p, q) is not None


def _made(cls: type, spec: str):
    """The rule of a class at the parameters that a SPEC gives."""
    texts = spec.partition(":")[2]
    return build(cls, dict(text.split("=") for text in texts.split(",")) if texts else {})
