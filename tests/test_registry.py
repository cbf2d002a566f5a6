"""Names, SPEC strings, parameters and their error messages; import weight."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import fly_theory as ft
from fly_theory.errors import FlyTheoryError, InvalidInput, ParameterError, UnknownName, ZeroResidualError
from tests.strategies import rule_objects


def test_specs_build_rules():
    assert ft.rule("lenience:l=0.4") == ft.Lenience(l=0.4)
    assert ft.rule("lenience:l=2/5").l == Fraction(2, 5)
    assert ft.rule("gated-ceiling:base=0.5,l=0.25").spec == "gated-ceiling:base=0.5,l=0.25"
    assert ft.rule("typical:keep_ties=false").keep_ties is False
    assert ft.rule("sample-match:n=3").n == 3
    assert ft.rule("fly_theory.rules.lossless:Lossless") == ft.Lossless()


@given(rule_objects())
def test_a_spec_makes_the_same_rule_with_the_same_spec(rule):
    again = ft.rule(rule.spec)
    assert again == rule
    assert again.spec == rule.spec


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), np.float64(1), np.float32(1), np.int64(1)])
def test_equal_rules_have_equal_specs(one):
    assert ft.Lenience(l=one).spec == ft.rule("lenience:l=1").spec == "lenience:l=1"
    assert ft.Threshold(single=one).spec == "threshold:single=1,acc=1"


def test_a_float_of_numpy_means_the_decimal_it_prints_as():
    assert ft.Lenience(l=np.float64(0.4)).exact("l") == Fraction(2, 5)


def test_numbers_of_numpy_are_plain_parameters():
    (n,) = np.arange(3, 4)
    assert ft.rule("sample-match:n=3") == ft.SampleMatch(n=n)
    assert type(ft.SampleMatch(n=n).n) is int
    assert type(ft.Lenience(l=np.float32(0.5)).l) is float


def test_rules_from_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from dataclasses import dataclass\n"
        "import fly_theory as ft\n"
        "@dataclass(frozen=True)\n"
        "class Mine(ft.Rule):\n"
        "    def verdict(self, p, q):\n"
        "        return q, p\n"
        "ready = Mine()\n"
    )
    for name in ("Mine", "ready"):
        assert float(ft.rule(f"{path}:{name}").acceptance([0.5, 0.5], [0.1, 0.9])) == 1.0


def test_a_file_is_read_as_python_would(tmp_path):
    """Annotations kept as text are looked up in the module, which takes the place of no other."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import fly_theory as ft\n"
        "from fly_theory.parameters import Interval, parameter\n"
        "@dataclass(frozen=True)\n"
        "class Mine(ft.Rule):\n"
        "    l: float = parameter(Interval(0, 1), 'share')\n"
        "    def verdict(self, p, q):\n"
        "        return self.l * q, p\n"
    )
    assert float(ft.rule(f"{path}:Mine:l=0.5").acceptance([0.5, 0.5], [0.1, 0.9])) == 0.5
    assert "mine" not in sys.modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:", "cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("import absent_package", "No module named 'absent_package'"),
        (
            "import dataclasses\nimport fly_theory as ft\n@dataclasses.dataclass(frozen=True)\n"
            "class Mine(ft.Rule):\n    share: float\n",
            r"Mine cannot be made .*'share'.*parameter\(domain, help\)",
        ),
    ],
)
def test_a_file_that_makes_no_rule_says_why(tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        ft.rule(f"{tmp_path}/mine.py:Mine")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("lenence:l=1", UnknownName, "Did you mean 'lenience'"),
        ("lenience", ParameterError, r"needs l in \(0, 1\]"),
        ("lenience:l=1.5", ParameterError, r"l=1\.5 is outside its domain \(0, 1\]"),
        ("lenience:l=0", ParameterError, "l=0.0 is outside"),
        ("lenience:l=nan", ParameterError, "l=nan is outside"),
        ("lenience:l=x", ParameterError, "l='x' cannot be read"),
        ("lenience:l=1/0", ParameterError, "cannot be read"),
        ("lenience:l=0.5,l=0.6", ParameterError, "gives 'l' twice"),
        ("lenience:l=", ParameterError, "not of the form key=value"),
        ("lenience:m=1", ParameterError, r"no parameter 'm'; its parameters: l in \(0, 1\]"),
        ("lenience:0.5", ParameterError, "are written key=value"),
        ("sample-match:n=1.5", ParameterError, "n='1.5' cannot be read"),
        ("sample-match:n=0", ParameterError, "n=0 is outside its domain integers >= 1"),
        ("fuzzy:t=0.1,divergence=x", ParameterError, "divergence='x' is outside its domain kl | js | tv"),
        ("typical:keep_ties=maybe", ParameterError, "neither 'true' nor 'false'"),
        ("absent.py:X", InvalidInput, "there is no file 'absent.py'"),
        ("mine.py", InvalidInput, "names a file; name a rule in it: mine.py:Name"),
        ("math:cosine", UnknownName, "Did you mean 'cosh'|unknown object in math"),
        ("no.such.module:X", UnknownName, "unknown rule or module 'no.such.module'"),
        ("math:cos", InvalidInput, "names a builtin_function_or_method, not a Rule"),
        ("a:b:c:d=1", InvalidInput, "too many colons"),
    ],
)
def test_bad_specs(spec, error, message):
    with pytest.raises(error, match=message):
        ft.rule(spec)


def test_errors_are_ours_and_standard():
    assert issubclass(ParameterError, FlyTheoryError)
    assert issubclass(ParameterError, ValueError)
    assert issubclass(UnknownName, LookupError)


def test_rejection_without_residual_names_the_row():
    class Stuck(ft.Rule):
        name = "stuck"

        def verdict(self, p, q):
            return q / 2, 0 * p

    p = [[0.5, 0.5], [0.25, 0.75]]
    with pytest.raises(ZeroResidualError, match=r"stuck rejects with probability 0\.5 in row 0"):
        Stuck().induced(p, p)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Lenienc'"):
        _ = ft.Lenienc


def test_every_exported_name_exists():
    for name in ft.__all__:
        assert getattr(ft, name) is not None


def test_importing_and_listing_needs_no_heavy_package():
    code = (
        "import sys, fly_theory as ft; ft.rules(); ft.rule('lenience:l=0.5').induced([.5, .5], [.25, .75]);"
        "heavy = {'jax', 'torch', 'transformers', 'z3', 'cvc5', 'sympy', 'matplotlib', 'pyarrow', 'hypothesis'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_listing_names_imports_no_rule():
    code = (
        "import sys, fly_theory as ft; ft.rules(); print([m for m in sys.modules if m.startswith('fly_theory.rules.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
