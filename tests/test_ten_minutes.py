"""From the README alone to one's own rule: written, refuted in fractions, mended, proved.

The steps are those a reader types who knows speculative decoding and nothing of this project. Tried from a fresh clone,
the commands take about a minute together; what is not timed here is `make`, and reading.
"""

import ast
import re
from fractions import Fraction

import pytest

from tests.documents import follow

# After the pattern of the README's twice.py, with p and q in the wrong order where the residual is taken.
FILE = """\
# my_own.py
from dataclasses import dataclass

import fly_theory as ft
from fly_theory.arrays import array_namespace


@dataclass(frozen=True)
class MyOwn(ft.Rule):
    def verdict(self, p, q):
        xp = array_namespace(p, q)
        return xp.minimum(p, q), xp.maximum({residual}, xp.zeros_like(p))

    @property
    def claims(self):
        return (ft.claims.Lossless(),)
"""
WRONG, RIGHT = "q - p", "p - q"
REFUTED = """
```console
$ fly-theory check my_own.py:MyOwn
my_own.py:MyOwn: lossy  claims: refuted
...
lossless: refuted by
  p = ...
$ echo $?
1
```
"""
PROVED = """
```console
$ fly-theory check my_own.py:MyOwn
my_own.py:MyOwn: lossless  claims: holds
...
lossless  ...  yes  ...  proved ...
$ fly-theory prove my_own.py:MyOwn --claim lossless
...  proved ...
```
"""


def page(residual: str, commands: str) -> str:
    return f"```python\n{FILE.format(residual=residual)}```\n{commands}"


def fractions(text: str, name: str) -> list[Fraction]:
    (row,) = re.findall(rf"^  {name} \((.*)\)$", text, flags=re.MULTILINE)
    return [Fraction(entry) for entry in row.split(", ")]


@pytest.mark.slow
def test_a_reader_checks_mends_and_proves_a_rule(tmp_path, monkeypatch):
    (refuted,) = follow(page(WRONG, REFUTED), tmp_path)

    # The counterexample, worked out by hand from the definition.
    p, q = fractions(refuted.output, "p ="), fractions(refuted.output, "q =")
    assert sum(p) == sum(q) == 1
    kept = [min(a, b) for a, b in zip(p, q, strict=True)]
    redrawn = [max(b - a, Fraction(0)) for a, b in zip(p, q, strict=True)]
    out = [m + (1 - sum(kept)) * r / sum(redrawn) for m, r in zip(kept, redrawn, strict=True)]
    assert fractions(refuted.output, "out is     ") == out
    assert fractions(refuted.output, "out must be") == p != out

    # The test that is printed fails now, and passes once the rule is mended.
    test = re.search(r"^  (from|import) .*", refuted.output, flags=re.DOTALL | re.MULTILINE)[0]
    test = "\n".join(line.removeprefix("  ") for line in test.splitlines())
    ast.parse(test)
    monkeypatch.chdir(tmp_path)
    pasted: dict = {}
    exec(test, pasted)
    (case,) = (value for name, value in pasted.items() if name.startswith("test_"))
    with pytest.raises(AssertionError):
        case()

    (checked, proved) = follow(page(RIGHT, PROVED), tmp_path)
    assert checked.exit_code == proved.exit_code == 0
    case()
