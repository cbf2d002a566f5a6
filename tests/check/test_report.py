"""The report object: what decides its conclusion, and its two forms, table and JSON."""

import json
from fractions import Fraction

import pytest

from fly_theory.report import Estimate, Report, Result, Witness, show

WITNESS = Witness(
    inputs={"p": (Fraction(1, 2), Fraction(1, 2)), "q": (Fraction(3, 4), Fraction(1, 4))},
    quantity="out",
    got=(Fraction(5, 8), Fraction(3, 8)),
    expected=(Fraction(1, 2), Fraction(1, 2)),
    test="def test_it(): ...",
)
HELD = Result("normalised", "held", cases=12)
REFUTED = Result("lossless", "refuted", cases=3, witness=WITNESS)
UNDECIDED = Result("ceiling 2", "undecided", detail="too close")
REFUTED_BUT_NOT_ASKED = Result("lossless", "refuted", witness=WITNESS, asked=False)


def report(*results, verdict="lossy", **figures):
    return Report("a rule", verdict, results, **figures)


@pytest.mark.parametrize(
    ("results", "conclusion"),
    [
        ((HELD,), "holds"),
        ((HELD, REFUTED_BUT_NOT_ASKED), "holds"),
        ((HELD, UNDECIDED), "undecided"),
        ((HELD, UNDECIDED, REFUTED), "refuted"),
        ((Result("x", "not applicable"), Result("y", "proved")), "holds"),
    ],
)
def test_only_what_was_asked_decides_and_a_refutation_outweighs_doubt(results, conclusion):
    found = report(*results)
    assert found.conclusion == conclusion
    assert found.ok == (conclusion == "holds")


def test_the_table_shows_the_wrong_value_beside_the_right_one_and_the_test():
    text = str(report(HELD, REFUTED, tv=Fraction(1, 8), max_ratio=Fraction(5, 4)))
    for part in (
        "lossy",
        "held on 12",
        "TV(out, p) up to 1/8",
        "max out/p 5/4",
        "p = (1/2, 1/2)",
        "(5/8, 3/8)",
        "def test_it",
    ):
        assert part in text
    assert "claims: refuted" in text


def test_json_is_one_document_with_fractions_as_text_and_no_bare_infinity():
    found = json.loads(report(REFUTED, tv=Estimate(0.1, 0.05, 0.2), max_ratio=float("inf")).to_json())
    assert found["max_ratio"] == "inf"
    assert found["tv"] == {"value": 0.1, "low": 0.05, "high": 0.2}
    assert found["results"][0]["witness"]["inputs"]["q"] == ["3/4", "1/4"]
    assert found["conclusion"] == "refuted"


def test_results_are_found_by_name():
    assert report(HELD, REFUTED)["lossless"] is REFUTED
    with pytest.raises(KeyError):
        report(HELD)["lossless"]


def test_values_are_shown_as_fractions():
    assert show({(0, 1): Fraction(1, 3)}) == "{(0, 1): 1/3}"
    assert show((Fraction(2),)) == "(2,)"
    assert show(0.1 + 0.2) == "0.3"
