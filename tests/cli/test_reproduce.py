"""`reproduce`: items by name, the list, the folder, JSON. What items find is tested in tests/reproduce."""

from fly_theory import reproduce


def test_list_names_every_item(cli):
    known = cli("reproduce", "--list", "--json").json()
    assert [entry["name"] for entry in known] == list(reproduce.items())
    text = cli("reproduce", "--list").ok()
    assert all(entry["name"] in text and entry["title"] in text for entry in known)


def test_items_go_to_a_folder_and_a_table(cli, tmp_path):
    run = cli("reproduce", "lossy-table-2", "fly-statements", "--out", tmp_path / "evidence")
    lines = run.ok().splitlines()
    assert lines[0].split() == ["item", "outcome", "values", "off"]
    assert lines[1].split() == ["lossy-table-2", "not", "reproducible", "here", "60", "10"]
    assert lines[2].split() == ["fly-statements", "reproduced", "12", "0"]
    assert lines[3] == f"wrote {tmp_path / 'evidence' / 'index.html'}"
    assert (tmp_path / "evidence" / "index.html").is_file()


def test_json_is_one_document_with_every_value(cli, tmp_path):
    document = cli("reproduce", "lossy-table-7", "--out", tmp_path, "--json").json()
    (item,) = document["items"]
    assert (item["name"], item["outcome"]) == ("lossy-table-7", "explained")
    assert sum(value["agrees"] is False for value in item["values"]) == 5
    assert str(tmp_path / "lossy-table-7.csv") in document["files"]
    assert document["provenance"]["versions"]["fly-theory"]


def test_bad_input_is_named(cli, tmp_path):
    assert cli("reproduce").error() == "give either ITEM... or --all; --list names the items"
    assert cli("reproduce", "tv-line", "--all").error() == "give either ITEM... or --all; --list names the items"
    assert "Did you mean 'tv-line'" in cli("reproduce", "tv-lin", "--out", tmp_path).error()
