"""Printed summaries are the summaries of what is printed, except in the cells listed here, and in no others."""

from fractions import Fraction

import pytest

from fly_theory import published, reproduce
from fly_theory.reproduce import fly_statements, fly_table_8, lossy_table_2, lossy_table_3, lossy_table_7
from fly_theory.reproduce.item import CENT, Compared, printed
from fly_theory.reproduce.summaries import BENCHMARKS, MEASURES, mean, means_of_settings, over_datasets

# Cell, printed, and the mean of the printed detail.
TABLE_2_FROM_TABLE_4 = {
    "Min-p sampling, MATH, BE": ("8.01", "8.024"),
    "Min-p sampling, INCLUDE, BE": ("3.44", "3.428"),
    "SpecCascade, MATH, BE": ("8.23", "8.158"),
    "SpecCascade, MATH, DS": ("4.62", "4.632"),
    "SpecCascade, INCLUDE, BE": ("3.58", "3.404"),
    "η-sampling, MATH, BE": ("7.98", "7.992"),
    "η-sampling, MATH, DS": ("4.61", "4.584"),
    "η-sampling, INCLUDE, BE": ("3.36", "3.374"),
    "Typical acceptance, MATH, BE": ("8.39", "8.372"),
    "Typical acceptance, INCLUDE, BE": ("3.58", "3.56"),
}
TABLE_7_FROM_TABLES_4_AND_5 = {
    "SpecCascade - Min-p sampling, single-draft, MATH, ΔBE": ("0.22", "0.134"),
    "SpecCascade - Min-p sampling, single-draft, INCLUDE, ΔBE": ("0.14", "-0.024"),
    "SpecCascade - Min-p sampling, single-draft, Avg, ΔBE": ("0.09", "0.0295"),
    "Typical acceptance - η-sampling, single-draft, MATH, ΔBE": ("0.41", "0.38"),
    "Typical acceptance - η-sampling, single-draft, INCLUDE, ΔBE": ("0.22", "0.186"),
}
FLY_MEANS = {"T=0, L31 70B, FLy, tau": ("12.41", "12.352")}


def off(values: list[Compared]) -> dict[str, tuple[Fraction, Fraction]]:
    return {value.what: (value.published, value.ours) for value in values if value.agrees is False}


def exactly(listed: dict[str, tuple[str, str]]) -> dict[str, tuple[Fraction, Fraction]]:
    return {cell: (Fraction(theirs), Fraction(ours)) for cell, (theirs, ours) in listed.items()}


def test_table_2_is_the_mean_of_table_4_except_in_ten_cells():
    values = list(means_of_settings("lossy_table2_single_draft_mean", "lossy_table4_single_draft", lossy_table_2.NAMES))
    assert len(values) == 5 * len(BENCHMARKS) * len(MEASURES)
    assert off(values) == exactly(TABLE_2_FROM_TABLE_4)
    assert reproduce.item("lossy-table-2").find().outcome == "not reproducible here"


def test_table_3_is_the_mean_of_table_5_in_every_cell():
    values = list(means_of_settings("lossy_table3_eagle3_mean", "lossy_table5_eagle3", lossy_table_3.NAMES))
    assert len(values) == 60
    assert off(values) == {}
    assert reproduce.item("lossy-table-3").find().outcome == "reproduced"


def test_table_7_is_the_difference_of_tables_2_and_3_in_every_cell():
    values = lossy_table_7.from_means()
    assert len(values) == 40
    assert off(values) == {}
    # Every cell that is no average is the difference to the last digit.
    assert all(value.difference == 0 for value in values if ", Avg, " not in value.what)


def test_table_7_from_the_detail_differs_in_five_cells():
    values = lossy_table_7.from_detail()
    assert len(values) == 40
    assert off(values) == exactly(TABLE_7_FROM_TABLES_4_AND_5)


def test_the_caption_of_table_7_rounds_the_amplification():
    ratios = [value.ours for value in lossy_table_7.amplification(lossy_table_7.from_means())]
    assert [round(float(ratio), 2) for ratio in ratios] == [4.44, 19.91]


def test_means_of_fly_are_right_except_one():
    values = [*over_datasets("fly_table2_ood"), *over_datasets("fly_table3_id")]
    assert len(values) == 88
    assert off(values) == exactly(FLY_MEANS)


def test_statements_of_fly_follow_from_its_tables():
    values = list(fly_statements.statements())
    assert len(values) == 12
    assert off(values) == {}


def test_a_cell_too_much_or_too_little_would_be_seen(monkeypatch):
    rows = published.table("lossy_table5_eagle3")
    (changed,) = (r for r in rows if (r["method"], r["parameter"], r["benchmark"]) == ("SpecCascade", 0.3, "MATH"))
    changed["block_efficiency"] += 0.1
    original = published.table
    monkeypatch.setattr(published, "table", lambda name: rows if name == "lossy_table5_eagle3" else original(name))
    values = list(means_of_settings("lossy_table3_eagle3_mean", "lossy_table5_eagle3", lossy_table_3.NAMES))
    assert list(off(values)) == ["SpecCascade, MATH, BE"]


def test_recoveries_of_table_8():
    found = fly_table_8.recoveries()
    assert len(found) == 21
    assert found["L31 405b", "ACP"] == pytest.approx(100 * 69.31 / 70.00)
    assert min(found.values()) > 99
    assert found["L33 70b", "ACP"] > 102


def test_printed_figures_are_exact_decimals():
    assert printed(8.03) == Fraction(803, 100)
    assert mean([0.1, 0.2]) == Fraction(3, 20)
    assert Fraction(1, 100) == CENT


@pytest.mark.parametrize(
    ("published_value", "ours", "allowed", "difference", "agrees"),
    [
        (Fraction(1, 10), Fraction(11, 100), CENT, CENT, True),
        (Fraction(1, 10), Fraction(12, 100), CENT, Fraction(2, 100), False),
        (0.0, 1e-13, 1e-12, 1e-13, True),
        (None, 1.0, None, None, None),
        (None, 1.0, CENT, None, None),
        ("at most 2", 1.5, None, None, None),
        (1.0, 2.0, None, 1.0, None),
    ],
)
def test_what_is_compared_and_what_is_not(published_value, ours, allowed, difference, agrees):
    value = Compared("x", published_value, ours, allowed)
    assert value.difference == difference
    assert value.agrees is agrees
