"""Rows of CSV and JSON that are posted: each becomes a graph, by named columns or by the mapping of the container."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.containers.server import Server

TURTLE = {"Content-Type": "text/turtle"}
CSV = {"Content-Type": "text/csv"}
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}
EX = "http://example.org/"
COLUMNS = {"time": "at", "subject": "sensor"}
TABLE = 'at,sensor,celsius,note\n1700000000,s 1,20.5,\n1700000001,s2,9,"cold, dark"\n'
ROWS = [
    {"at": "2024-01-01T00:00:00Z", "sensor": "s1", "celsius": 20.5, "ok": True},
    {"at": "2024-01-01T00:00:01Z", "sensor": "s2", "celsius": 9},
]
MAPPING = """
time = "{Placed}"
time_format = "%d.%m.%Y %H:%M"
delimiter = ";"
[[triple]]
subject = ":{Order}"
predicate = ":total"
object = "{Total}"
"""


@pytest.fixture
def stream(http: httpx.Client) -> str:
    return http.post("/", content="<> a <http://www.w3.org/ns/ldp#BasicContainer> .", headers=TURTLE).headers[
        "location"
    ]


def triples(http: httpx.Client, url: str) -> set[str]:
    text = http.get(url, headers={"Accept": "application/n-triples"}).text
    return {line.replace("http://www.w3.org/2001/XMLSchema#", "xsd:") for line in text.splitlines()}


def test_rows_of_csv_become_graphs_by_the_columns_that_are_named(http: httpx.Client, stream: str) -> None:
    answer = http.post(stream, content=TABLE, headers=CSV, params=COLUMNS)
    path = httpx.URL(stream).path
    assert (answer.status_code, answer.json()) == (201, {"graphs": 2, "first": f"{path}0", "last": f"{path}1"})
    assert answer.headers["location"] == f"{stream}1"
    assert triples(http, f"{stream}0") == {
        f'<{EX}s%201> <{EX}celsius> "20.5"^^<xsd:decimal> .',
        f'<{stream}0> <http://www.w3.org/ns/prov#generatedAtTime> "2023-11-14T22:13:20Z"^^<xsd:dateTimeStamp> .',
    }, "an empty cell says nothing, a number as a time is in seconds"
    assert f'<{EX}s2> <{EX}note> "cold, dark" .' in triples(http, f"{stream}1")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (json.dumps(ROWS), JSON),
        (json.dumps(ROWS, indent=2), JSON),
        ("\n".join(map(json.dumps, ROWS)), LINES),
    ],
)
def test_rows_of_json(http: httpx.Client, stream: str, body: str, headers: dict[str, str]) -> None:
    assert http.post(stream, content=body, headers=headers, params=COLUMNS).json()["graphs"] == 2
    assert triples(http, f"{stream}0") == {
        f'<{EX}s1> <{EX}celsius> "20.5"^^<xsd:decimal> .',
        f'<{EX}s1> <{EX}ok> "true"^^<xsd:boolean> .',
        f'<{stream}0> <http://www.w3.org/ns/prov#generatedAtTime> "2024-01-01T00:00:00Z"^^<xsd:dateTimeStamp> .',
    }


def test_one_object_is_one_row_which_may_be_a_node_of_its_own(http: httpx.Client, stream: str) -> None:
    body = json.dumps({"at": "2024-01-01T00:00:00Z", "city": "Graz", "seen": {"by": "ann"}}, indent=1)
    answer = http.post(stream, content=body, headers=JSON, params={"time": "at", "subject": "_:row"})
    assert answer.json()["graphs"] == 1
    subjects = {line.split(" ")[0] for line in triples(http, answer.headers["location"])}
    assert len(subjects) == 2
    assert sum(one.startswith("_:") for one in subjects) == 1


def test_a_container_may_have_a_mapping(http: httpx.Client) -> None:
    text = f'<> <urn:etalis:containers#mapping> """{MAPPING}""" .'
    stream = http.post(
        "/", content=text, headers=TURTLE | {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
    )
    url = stream.headers["location"]
    assert http.post(url, content="Placed;Order;Total\n31.01.2026 10:00;A 1;10.5\n", headers=CSV).status_code == 201
    assert f'<{EX}A%201> <{EX}total> "10.5"^^<xsd:decimal> .' in triples(http, f"{url}0")
    assert any('"2026-01-31T10:00:00Z"' in line for line in triples(http, f"{url}0"))
    row = {"Placed": "31.01.2026 10:05", "Order": "A2", "Total": 3}
    assert http.post(url, content=json.dumps(row), headers=JSON).status_code == 201
    assert f'<{EX}A2> <{EX}total> "3"^^<xsd:integer> .' in triples(http, f"{url}1")
    withdrawal = http.post(url, content=json.dumps(row | {"retract": True}), headers=JSON)
    assert (withdrawal.status_code, "a row cannot withdraw others" in withdrawal.json()["detail"]) == (400, True)
    refused = http.post(url, content=json.dumps(row), headers=JSON, params={"time": "Placed"})
    assert refused.status_code == 400
    assert "leave time and subject out" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ('time = "{at}', "cannot be used"),
        ("x = " + "[" * 5_000, "cannot be used"),
        ('subject = "::"', "cannot be used"),
        (MAPPING.replace("time =", 'retract = "{x}"\ntime ='), "has no 'retract'"),
        ('ties = "source"\n' + MAPPING, "has no 'ties'"),
        ("#" * 20_000, "at most 16,000 characters"),
        ("a." * 7_000 + "a = 1", "at most 100 dots"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused(http: httpx.Client, mapping: str, words: str) -> None:
    text = f"<> a <http://www.w3.org/ns/ldp#BasicContainer> ; <urn:etalis:containers#mapping> '''{mapping}''' ."
    answer = http.post("/", content=text, headers=TURTLE)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text


@pytest.mark.parametrize(
    ("body", "headers", "params", "words"),
    [
        (TABLE, CSV, {}, "?time=COLUMN&subject=COLUMN"),
        (TABLE, CSV, {"time": "when"}, "when"),
        (TABLE.replace("1700000001", "noon"), CSV, COLUMNS, "noon"),
        (TABLE + "1,s3\n", CSV, COLUMNS, "a row of 2 cells where the header has 4"),
        ("at,sensor\n", CSV, COLUMNS, "no rows found"),
        ("[]", JSON, COLUMNS, "no rows found"),
        ("[1, 2]", JSON, COLUMNS, ""),
        ("{", JSON, COLUMNS, ""),
        ('[{"at": 1, "sensor": "a"', JSON, COLUMNS, "not JSON"),
        ('{"at": 1, "sensor": "a"', LINES, COLUMNS, "not JSON"),
        ('[{"at": NaN, "sensor": "a"}]', JSON, COLUMNS, "not JSON"),
        (b"at,sensor,x\n1,s\xff,3\n", CSV, COLUMNS, "not UTF-8"),
        (json.dumps(ROWS), JSON, COLUMNS | {"x": "y"}, "unknown query parameter"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_whole(
    http: httpx.Client, stream: str, body: str | bytes, headers: dict[str, str], params: dict[str, str], words: str
) -> None:
    answer = http.post(stream, content=body, headers=headers, params=params)
    assert (answer.status_code, words in answer.json()["detail"]) == (400, True), answer.text
    assert http.get(f"{stream}0").status_code == 404, "none of them was stored"


@pytest.mark.parametrize(
    ("body", "headers", "graphs", "words"),
    [
        ("at,sensor,celsius\n1700000000,,7\n1700000001,s1,\n1700000002,s2,5\n", CSV, 1, "2 rows make no graph"),
        (json.dumps([*ROWS, {**ROWS[0], "sensor": None}]), JSON, 2, "1 row makes no graph"),
        ("at,sensor,celsius\n1700000000,s1,10,50\n", CSV, 1, "more cells than the header, as in line 2"),
        (json.dumps({"at": 1700000000, "sensor": "s1", "celsius": 1, "of": [1, 2]}), JSON, 1, "'of' is a list"),
        ("at,sensor,celsius\n1700000000000,s1,1\n1700000000,s1,1\n", CSV, 2, "in ms it would be 2023"),
    ],
)
def test_the_answer_says_what_is_left_out_of_rows(
    http: httpx.Client, stream: str, body: str, headers: dict[str, str], graphs: int, words: str
) -> None:
    answer = http.post(stream, content=body, headers=headers, params=COLUMNS)
    assert (answer.status_code, answer.json()["graphs"]) == (201, graphs), answer.text
    assert words in "\n".join(answer.json()["warnings"]), answer.text


def test_rows_are_stored_in_order_of_their_times(http: httpx.Client, stream: str) -> None:
    """A table with its newest row first is no stream of late events."""
    answer = http.post(
        stream, content=json.dumps([*ROWS[::-1], ROWS[1] | {"celsius": 8}]), headers=JSON, params=COLUMNS
    )
    assert answer.json()["graphs"] == 3
    found = ["".join(triples(http, f"{stream}{number}")) for number in range(3)]
    assert ["20.5" in found[0], '"9"' in found[1], '"8"' in found[2]] == [True] * 3, found


def test_rows_without_a_subject_are_refused_for_that(http: httpx.Client, stream: str) -> None:
    answer = http.post(stream, content=json.dumps(ROWS[0] | {"sensor": None}), headers=JSON, params=COLUMNS)
    assert (answer.status_code, "no row makes a graph" in answer.json()["detail"]) == (400, True), answer.text


def test_rows_are_limited(http: httpx.Client, stream: str) -> None:
    many = "at,sensor,a,b\n" + "1700000000,s,1,2\n" * 4_000
    answer = http.post(stream, content=many, headers=CSV, params=COLUMNS)
    assert (answer.status_code, "post fewer at once" in answer.json()["detail"]) == (413, True), answer.text
    deep = '{"at": ' + "[" * 1_000 + "]" * 1_000 + "}"
    assert http.post(stream, content=deep, headers=JSON, params=COLUMNS).status_code == 413
    free = "at,sensor,note\n" + "1700000000,s,<3 :(\n" * 300
    assert http.post(stream, content=free, headers=CSV, params=COLUMNS).status_code == 201, (
        "brackets of texts nest nothing"
    )


def test_what_is_posted_knows_the_prefixes_of_queries(http: httpx.Client, stream: str) -> None:
    answer = http.post(stream, content='\ufeff:s1 :celsius "9"^^xsd:integer .', headers=TURTLE)
    assert f'<{EX}s1> <{EX}celsius> "9"^^<xsd:integer> .' in triples(http, answer.headers["location"])
    mine = "@prefix : <urn:mine:> . :s1 :celsius 9 ."
    assert '<urn:mine:s1> <urn:mine:celsius> "9"^^<xsd:integer> .' in triples(
        http, http.post(stream, content=mine, headers=TURTLE).headers["location"]
    )
    wrong = http.post(stream, content=":s1 :celsius 9 .\n:s2 nowhere:x 9 .", headers=TURTLE).json()["detail"]
    assert "line 2 " in wrong
    assert "line 3" not in wrong


def test_rows_are_announced(server: Server, http: httpx.Client, stream: str) -> None:
    accepted = http.options(stream).headers["accept-post"]
    assert "text/csv" in accepted
    assert "application/json" in accepted


def test_the_first_row_is_shown_without_storing_it(http: httpx.Client, stream: str) -> None:
    asked = COLUMNS | {"stream": httpx.URL(stream).path}
    text = http.post("/-/rows", content=TABLE, headers=CSV, params=asked).text
    assert ":s\\%201 :celsius 20.5" in text
    assert ":note" not in text
    assert http.get(f"{stream}0").status_code == 404
    assert http.post("/-/rows", content=TABLE, headers=CSV, params=COLUMNS | {"stream": "/none/"}).status_code == 404
