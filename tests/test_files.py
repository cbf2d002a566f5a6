"""Files that are whole or absent, and JSON for strict parsers."""

import json
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fly_theory.files import json_text, write_bytes, write_text


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"\0first")
    write_text(path, "zweite Fassung: ≥ 1\n")
    assert path.read_bytes() == "zweite Fassung: ≥ 1\n".encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_behind_is_written_over(tmp_path):
    (tmp_path / "file.partial").write_bytes(b"half of a much longer file")
    write_bytes(tmp_path / "file", b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"whole")]


def test_json():
    document = {
        "array": np.array([[0.5, np.inf]]),
        "scalar": np.float32(0.5),
        "fraction": Fraction(1, 3),
        "path": Path("a/b"),
        "tuple": (1, None, True, "é"),
        "infinite": [math.inf, -math.inf, math.nan],
        2: {},
    }
    text = json_text(document)
    assert text.endswith("}\n")
    assert "é" in text

    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse) == {
        "array": [[0.5, "inf"]],
        "scalar": 0.5,
        "fraction": "1/3",
        "path": "a/b",
        "tuple": [1, None, True, "é"],
        "infinite": ["inf", "-inf", "nan"],
        "2": {},
    }
    assert list(json.loads(text)) == list(map(str, document))
    assert [float(x) for x in json.loads(text)["infinite"]][:2] == [math.inf, -math.inf]


def test_what_json_has_no_word_for_is_refused():
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_text({"set": {1}})
