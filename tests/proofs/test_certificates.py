"""Certificates can be checked from the files alone, and read."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import proofs
from proofs.certificates import write
from proofs.theorem import find

RECHECK = Path(__file__).with_name("recheck.py")
# The four longest say the same of many rules; each kind of obligation in them occurs in the others.
LONGEST = ("monotone", "normalised", "on-the-line", "reduces-to-strict")


def _recheck(folder: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-I", str(RECHECK), str(folder)], capture_output=True, text=True, timeout=500, check=True
    )
    return json.loads(done.stdout)


def test_certificates_recheck_from_the_files_alone(proof_of, tmp_path):
    names = [name for name in proofs.theorems() if find(name).expected == "proved" and name not in LONGEST]
    for name in names:
        write(proof_of(name), tmp_path)
    report = _recheck(tmp_path)
    assert report["files"] == sum(len(proof_of(name).certificate.obligations) for name in names) > 700
    assert report["not unsat"] == {}
    assert report["prover imported"] is False


def test_a_forged_certificate_is_noticed(proof_of, tmp_path):
    folder = write(proof_of("lossless"), tmp_path)
    file = folder / "004.smt2"
    file.write_text(re.sub(r"\(- \|p\[v\]\| \|q\[v\]\|\)", "(- |q[v]| |p[v]|)", file.read_text()))
    assert list(_recheck(tmp_path)["not unsat"]) == [str(file)]


def test_the_write_up_states_every_step(proof_of, tmp_path):
    proof = proof_of("lenience-ceiling")
    text = (write(proof, tmp_path) / "proof.md").read_text()
    assert text.startswith("# lenience-ceiling")
    for part in ("## lenience\n", "## ceiling-everywhere\n", "Proof.  ", r"$$\mathrm{out} \le p/\ell$$"):
        assert part in text
    for step in proof.certificate.steps:
        assert step.text in text
    assert all(f"`{i:03}.smt2`" in text for i in range(1, len(proof.certificate.obligations) + 1))
    assert text.count("$$") % 2 == 0


@pytest.mark.parametrize(
    "name", ["fly-window", "cos-ceiling", "contrastive-law", "block-lossless", "truncated-lossless"]
)
def test_every_kind_of_proof_can_be_written_up(name, proof_of, tmp_path):
    folder = write(proof_of(name), tmp_path)
    assert (folder / "proof.md").read_text().count("{") == (folder / "proof.md").read_text().count("}")
    assert json.loads((folder / "proof.json").read_text())["outcome"] == find(name).expected


def test_writing_again_leaves_no_old_obligations(proof_of, tmp_path):
    folder = write(proof_of("lossless"), tmp_path)
    (folder / "999.smt2").write_text("(check-sat)")
    write(proof_of("lossless"), tmp_path)
    assert not (folder / "999.smt2").exists()
