"""The pytest plugin, and the one-line check."""

import subprocess
import sys

import pytest

from fly_theory.conformance.metrics import check_metrics
from fly_theory.testing import conforms
from tests.quality.verifiers import first_rejection, ratio_rule, ratio_test

redraws_from_target = first_rejection(ratio_test, lambda p, q, x, rng: rng.choice(p))


def test_conforms_returns_the_report_or_raises_it():
    assert conforms(ratio_rule, length=1).verdict == "lossless"
    with pytest.raises(AssertionError, match=r"out must be \(1/4, 3/4\)"):
        conforms(redraws_from_target, length=1)


def test_fixture(verifier):
    assert verifier(ratio_rule, length=1).ok


def test_fixture_fails_with_the_report(tmp_path):
    (tmp_path / "test_engine.py").write_text(
        "def emits_zero(target_probs, draft_probs, draft_tokens, rng):\n"
        "    return [0]\n"
        "def test_mine(verifier):\n"
        "    verifier(emits_zero, ['1/2', '1/2'], target=['1/4', '3/4'], length=1)\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 1
    assert "emits_zero: lossy" in run.stdout
    assert "out is      (1, 0)" in run.stdout
    assert "pytest_plugin.py" not in run.stdout


def test_names_of_the_testing_package():
    import fly_theory as ft

    assert set(ft.testing.__all__) <= set(dir(ft.testing))
    assert ft.testing.check_metrics is check_metrics
    with pytest.raises(AttributeError, match="no attribute 'tablemodel'"):
        _ = ft.testing.tablemodel
