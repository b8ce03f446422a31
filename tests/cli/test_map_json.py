"""Mappings of JSON: keys inside objects, elements of lists, arrays."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.conftest import Folder
from tests.cli.test_map import draft

# --- JSON inside JSON ---------------------------------------------------------------

ORDERS = """\
{"at": 1, "order": {"id": "o1"}, "items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}]}
{"at": 2, "order": {"id": "o2"}, "items": []}
{"at": 3, "order": {"id": "o3"}, "items": [{"sku": "a", "n": 5}]}
"""


def test_each_element_of_a_list_is_a_record(folder: Folder) -> None:
    mapping, command = draft(folder, "orders.jsonl", ORDERS)
    assert [one["object"] for one in mapping["triple"]] == ["{order.id}", "{items[].sku}", "{items[].n}"]
    done = folder.etalis(*shlex.split(command), "-f", "csv")
    assert sorted(done.stdout.splitlines()[1:]) == ["o1,a,2,1,1", "o1,b,1,1,1", "o3,a,5,3,3"]


@pytest.mark.parametrize("items", ['"items": []', '"items": null', '"note": "none"'])
def test_what_stands_around_an_empty_list_is_read(folder: Folder, items: str) -> None:
    lines = [*ORDERS.splitlines(), f'{{"at": 4, "order": {{"id": "o4"}}, {items}}}']
    folder.write("orders.jsonl", "\n".join(lines))
    queries = {
        "SELECT ?id { ?r :order_id ?id }": ["o1,1,1", "o1,1,1", "o2,2,2", "o3,3,3", "o4,4,4"],
        "SELECT ?id ?n { EVENT { ?r :order_id ?id ; :items_n ?n } }": ["o1,1,1,1", "o1,2,1,1", "o3,5,3,3"],
    }
    for query, rows in queries.items():
        for options in ([], ["--time", "at", "--subject", "_:row"]):
            done = folder.etalis("run", "-q", query, "-s", "orders.jsonl", *options, "-f", "csv")
            assert sorted(done.stdout.splitlines()[1:]) == rows
            assert "each element of items makes a row, which repeats the keys around the list" in done.stderr


@pytest.mark.parametrize("name", ["id", "seen[].at"])
def test_an_empty_list_has_no_record_if_the_time_is_inside(folder: Folder, name: str) -> None:
    folder.write("t.jsonl", '{"id": "a", "seen": [{"at": 1}]}\n{"id": "b", "seen": []}\n')
    folder.write("m.toml", f'time = "{{seen[].at}}"\nsubject = "_:row"\npredicate = ":is"\nobject = "{{{name}}}"\n')
    done = folder.etalis("run", "-q", "SELECT ?x { ?r ?p ?x }", "-s", "t.jsonl", "-m", "m.toml", "-f", "csv")
    assert len(done.stdout.splitlines()) == 2
    assert not done.stderr


def test_the_elements_of_a_list_may_be_values(folder: Folder) -> None:
    folder.write("t.jsonl", '{"at": 1, "tags": ["x", "y"]}\n{"at": 2}\n')
    folder.write("m.toml", 'time = "{at}"\nsubject = "_:row"\npredicate = ":tag"\nobject = "{tags[]}"\n')
    done = folder.etalis("run", "-q", "SELECT ?tag { ?r :tag ?tag }", "-s", "t.jsonl", "-m", "m.toml", "-f", "csv")
    assert sorted(done.stdout.splitlines()[1:]) == ["x,1,1", "y,1,1"]


@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("{at[].x}", "  without [] it is {at}, or a key inside it {at.key}"),
        ("{a[]}{b[]}", "the mapping reaches into several lists: a[], b[]"),
        ("{tags}", "\n  flatten it first, or name an element: {tags[]}, or {tags[].key}\n"),
    ],
)
def test_what_is_no_list_or_several_is_told(folder: Folder, used: str, told: str) -> None:
    folder.write("t.jsonl", '{"at": 1, "tags": ["x", "y"]}\n')
    folder.write("m.toml", f'time = "{{at}}"\nsubject = "_:row"\npredicate = ":tag"\nobject = "{used}"\n')
    done = folder.etalis("run", "-q", "SELECT ?tag { ?r :tag ?tag }", "-s", "t.jsonl", "-m", "m.toml", code=1)
    assert told in done.stderr


# --- JSON arrays -----------------------------------------------------------------------


def test_an_array_of_objects_is_read_as_json_lines_are(folder: Folder) -> None:
    elements = ['{"time": 1, "triples": ":acme :price 10 ."}', '{"time":\n2, "triples": ":acme :price 12 ."}']
    folder.write("a.json", "[\n  " + " ,\n".join(elements) + "\n]\n")
    done = folder.etalis("run", "-q", "SELECT ?x { :acme :price ?x }", "-s", "a.json", "-f", "csv")
    assert done.stdout.splitlines()[1:] == ["10,1,1", "12,2,2"]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("", "a.json:3: the array has no end\n"),
        (",\n7]", "a.json:3: expected a JSON object, or the end of the array\n"),
        (',\n{"at" 5}]', "a.json:3: this element is not JSON: Expecting ':' delimiter\n"),
        ("] more", "a.json:2: expected a JSON object, or the end of the array\n"),
    ],
)
def test_a_damaged_array_is_told_with_its_line(folder: Folder, end: str, told: str) -> None:
    folder.write("a.json", '[{"at": 1, "x": 1},\n{"at": 2, "x": 2}' + (end or "\n"))
    done = folder.etalis("run", "-q", "SELECT ?x { ?r :x ?x }", "-s", "a.json", "-f", "csv", code=1)
    assert done.stdout.splitlines()[1:] == ["1,1,1"] or done.stdout.splitlines()[1:] == ["1,1,1", "2,2,2"]
    assert told in done.stderr


@pytest.mark.parametrize("text", ["a\u2028b", "a\x85b", "x" * 300_000])
def test_a_line_is_read_whole_however_it_looks(folder: Folder, text: str) -> None:
    folder.write("notes.jsonl", f'{{"at": 1, "id": "n1", "v": "{text}", "w": 1}}\n')
    done = folder.etalis("run", "-q", "SELECT ?p { ?n ?p ?x }", "-s", "notes.jsonl", "-f", "csv")
    properties = [line.split(",")[0].rpartition("/")[2] for line in done.stdout.split()[1:]]
    assert properties == ["v", "w"]


@pytest.mark.parametrize("before", ["", "\n  "])
@pytest.mark.parametrize("size", [300_000, 1_500_000])
def test_the_first_object_of_an_array_may_be_long(folder: Folder, size: int, before: str) -> None:
    """Only its beginning was read, so that there seemed to be no rows, or none without triples."""
    objects = [{"at": 1, "id": "n1", "v": "x" * size, "w": 1}, {"at": 2, "id": "n2", "v": "y", "w": 2}]
    folder.write("notes.json", f"[{before}" + f",{before}".join(map(json.dumps, objects)) + "]")
    query = ("run", "-q", "SELECT ?n ?w { ?n :w ?w }", "-s", "notes.json", "-f", "csv")
    for more in ((), ("--time", "at", "--subject", "id")):
        rows = folder.etalis(*query, *more).stdout.split()[1:]
        assert [row.rpartition("/")[2] for row in rows] == ["n1,1,1,1", "n2,2,2,2"]
    assert 'predicate = ":w"' in folder.etalis("map", "notes.json").stdout
