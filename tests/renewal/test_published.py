"""The published tables travel with the package."""

import pytest

from fly_theory import published
from fly_theory.errors import UnknownName


def test_every_table_has_rows_of_one_width():
    assert len(published.tables()) == 17
    for name in published.tables():
        rows = published.table(name)
        assert rows
        assert len({tuple(row) for row in rows}) == 1


def test_numbers_are_floats_and_names_are_text():
    assert published.table("fly_table5_mla") == [{"mla": "off", "speedup": 2.69}, {"mla": "on", "speedup": 2.86}]


def test_an_unknown_table_is_named_with_its_neighbours():
    with pytest.raises(UnknownName, match="fly_table4_ablation"):
        published.table("fly_table4_ablatoin")
