"""Where a result comes from."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fly_theory
from fly_theory import provenance as module
from fly_theory.provenance import code_revision, provenance, versions

ROOT = Path(__file__).parents[1]


def test_versions_of_what_is_installed():
    found = versions(("numpy", "a-distribution-that-is-not-there"))
    assert found["fly-theory"] == fly_theory.__version__
    assert found["numpy"] == np.__version__
    assert found["python"] == platform.python_version()
    assert "a-distribution-that-is-not-there" not in found


def test_everything_about_a_result(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fly-theory", "diagram"])
    found = provenance(("numpy",), seed=7, device="cpu")
    assert found["argv"] == ["fly-theory", "diagram"]
    assert (found["seed"], found["device"]) == (7, "cpu")
    assert found["code"] == code_revision()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_revision_of_a_checkout():
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert code_revision()["git"] == head.stdout.strip()


def test_no_revision_for_a_copy_inside_another_repository(tmp_path, monkeypatch):
    """As when the package is installed below a project that is itself under git."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    copy = shutil.copy(module.__file__, tmp_path / "provenance.py")
    monkeypatch.setattr(module, "__file__", str(copy))
    assert code_revision() is None


def test_no_revision_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert code_revision() is None
