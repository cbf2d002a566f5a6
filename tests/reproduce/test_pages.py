"""The page and the files that `reproduce` writes."""

import csv
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from fly_theory import reproduce
from fly_theory.errors import InvalidInput

NAMES = ("lossy-table-2", "lossy-figure-8", "needs-models")


@pytest.fixture(scope="module")
def findings():
    return {name: (item, item.find()) for name, item in ((name, reproduce.item(name)) for name in NAMES)}


@pytest.fixture(scope="module")
def written(findings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced") / "new"
    return folder, reproduce.write(folder, findings, {"versions": {"python": "<3>"}})


def test_one_page_a_figure_in_two_formats_and_one_table_an_item(written):
    folder, paths = written
    assert {path.name for path in paths} == {
        "index.html",
        "lossy-table-2.csv",
        "lossy-figure-8.csv",
        "lossy-figure-8-lenience.svg",
        "lossy-figure-8-lenience.png",
        "needs-models.csv",
    }
    assert {path.name for path in folder.iterdir()} == {path.name for path in paths}


def test_the_table_of_an_item_holds_every_value(written, findings):
    rows = list(csv.DictReader((written[0] / "lossy-table-2.csv").read_text().splitlines()))
    values = findings["lossy-table-2"][1].values
    assert [row["what"] for row in rows] == [value.what for value in values]
    assert [float(row["ours"]) for row in rows] == [float(value.ours) for value in values]
    assert sum(row["agrees"] == "False" for row in rows) == 10


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_refers_to_nothing_outside(written):
    page = (written[0] / "index.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    references = [a.get("href") or a["src"] for _, a in tags.seen if "href" in a or "src" in a]
    assert all(reference.startswith(("#", "data:image/png;base64,")) for reference in references)
    assert {a["id"] for _, a in tags.seen if "id" in a} == set(NAMES)
    assert "&lt;3&gt;" in page


def test_the_page_states_every_outcome_and_lists_what_is_off(written, findings):
    page = (written[0] / "index.html").read_text()
    for item, finding in findings.values():
        assert escape(item.title) in page
        assert page.count(finding.outcome.capitalize()) >= 2
    assert len(re.findall("<tr class=off>", page)) == 2 * 10


def test_a_fragment_is_on_the_page_and_a_page_of_its_own(findings, tmp_path):
    item, finding = findings["needs-models"]
    finding = replace(finding, fragments={"text": "<p>marked</p>"})
    reproduce.write(tmp_path, {"needs-models": (item, finding)}, {})
    for name in ("index.html", "needs-models-text.html"):
        page = (tmp_path / name).read_text()
        assert "<p>marked</p>" in page
        assert page.startswith("<!doctype html>")
        Tags().feed(page)


def test_the_page_is_the_same_twice(findings):
    from fly_theory.reproduce.pages import page

    assert page(findings, {}) == page(findings, {})


def test_a_folder_that_cannot_be_written_is_named(findings, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot write to"):
        reproduce.write(tmp_path / "file", findings, {})
