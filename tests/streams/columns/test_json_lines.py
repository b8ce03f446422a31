"""JSON lines in columns give the events, the messages and the counts of the reader of rows, whatever the lines."""

from __future__ import annotations

import gc
import io
import json
from typing import Any

import numpy as np
import pytest
from etalis_rules.terms import RDF, XSD
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.streams import Clock, StreamError, read_stream
from etalis_py.streams.columns import json_lines, turtle
from etalis_py.streams.jsonl import JsonOptions, read_rows
from tests.draws import examples

from .reading import outcome

TRIPLES = [
    "<urn:a> <urn:p> <urn:b> .", '<urn:a> <urn:p> "1" .\n',
    '<urn:a> <urn:p> "1" .\n<urn:a> <urn:p> "1" .\n<urn:b> <urn:p> "2" .', "<urn:a> <urn:p> <urn:b>", ":a :p 1 .",
    "_:a <urn:p> _:b .", "", " \n", "nonsense", "<urn:a> <urn:p> <urn:b> <urn:g> .", "<urn:ä> <urn:p> 1 .",
    ["<urn:a> <urn:p> <urn:b>"], 7, "<urn:a> <urn:p> 5 .", ":a a :B ; :p 1, 2.5, true .",
    ':a :p "1" . <http://example.org/a> :p "1" .',
    [":a :p 1", ":a :p 1 ."], [":a :p 1", 5], ':a :p "x"@EN, "caf\\u00e9" . # more',
]  # fmt: skip
TIMES = [
    5, 6, "7", 8.5, "1/4", [9, 10], None, "soon", True, 10**30, "2026-01-31T10:00:00Z", [10, 9], [1], ["1", 2.5], 1e3,
    "1/PT5S", "2026-01-31T10:00:00+01:00", ["2026-01-31", "2026-02-01"],
]  # fmt: skip
MORE = [{}] * 8 + [
    {"graph": "urn:g"}, {"stream": "urn:t"}, {"punctuate": 3}, {"start": 1, "end": 2}, {"other": 1}, {"graph": "_:g"},
    {"graph": ""}, {"graph": 5}, {"stream": "<urn:t>", "graph": "urn:x y"}, {"retract": True}, {"retract": "no"},
    {"start": 2, "end": 1}, {"start": 1}, {"end": None}, {"punctuate": None}, {"time": None},
]  # fmt: skip
ODD = ["", "  ", "{", "[1]", "{} {}", '{"time": 1, "triples": "<urn:a> <urn:p> <urn:b> ."}  ', "\udcff"]
VALUES = ["acme", "12", "", " ", 12, 1.5, "1.50", True, None, [1], {"x": 1}, {"x": {"y": "z"}}, 10**30, "ä", 1, 1.0]
MAPPINGS: list[dict[str, Any]] = [
    {"subject": ":{a}", "predicate": ":p", "object": "{b}"},
    {"subject": ":{a}", "predicate": ":p", "object": '"{b}"@en', "time": "{t}"},
    {
        "time": ["{t}", "{u}"],
        "triple": [
            {"subject": ":{a}/{b}", "predicate": ":p", "object": "{b}"},
            {"predicate": ":{a}", "object": "{a}"},
        ],
    },
    {"subject": ":{a.x}", "predicate": ":p", "object": "{b}"},
    {"subject": ":{b}", "predicate": ":p", "object": "{a.x.y}", "time": "{t}"},
    {"subject": ":{a.x}", "predicate": ":p", "object": "{a}", "time": "{t}"},
    {"subject": ":{a}", "predicate": ":p", "object": "{b}", "time": "{t}", "rest": True},
    {"subject": ":{a.x}", "predicate": ":p", "object": "{b}", "rest": True},
    {"subject": ":s", "predicate": ":p", "object": "{u}", "time": "{t}", "rest": True},
    {"subject": "_:row", "predicate": ":p", "object": "{a}", "time": "{t}", "rest": True},
    {
        "time": ["{t}", "{u}"],
        "triple": [
            {"subject": "_:{a}", "predicate": ":q", "object": "{a.x}"},
            {"predicate": ":p", "object": "<urn:{b}>"},
        ],
    },
]  # fmt: skip


def check(lines: list[str], **options: Any) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogateescape")

    def open_lines() -> Any:
        return read_stream(io.BytesIO(data), format="jsonl", now=lambda: 1000, time_unit="us", **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "BLOCK", 400)
        assert outcome(open_lines, bulk=True) == outcome(open_lines, bulk=False)


def lines_of(records: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[str]]:
    usual = records.map(json.dumps)
    return st.lists(st.integers(0, 19).flatmap(lambda n: usual if n else st.sampled_from(ODD)), max_size=12)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=examples(4 / 15))
@given(data=st.data())
def test_triples_in_columns_are_those_in_rows(on_error: str, data: st.DataObject) -> None:
    times = data.draw(st.sampled_from([TIMES[:2], TIMES[2:3], TIMES]))
    record = st.builds(
        lambda time, triples, more: ({"time": time} if time is not None else {}) | {"triples": triples} | more,
        st.sampled_from(times),
        st.sampled_from(TRIPLES[:3]) | st.sampled_from(TRIPLES),
        st.sampled_from(MORE),
    )
    check(data.draw(lines_of(record)), on_error=on_error)


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@settings(max_examples=examples(1 / 6))
@given(data=st.data())
def test_objects_in_columns_are_those_in_rows(on_error: str, mapping: dict[str, Any], data: st.DataObject) -> None:
    values = data.draw(st.sampled_from([VALUES[:2], VALUES[4:6], VALUES[4:5], VALUES]))
    times = data.draw(st.sampled_from([TIMES[:2], TIMES[2:3], TIMES]))
    record = st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(["a", "b", "a.x", "a.x.y"], st.sampled_from(values))
        | dict.fromkeys(["time", "t", "u"], st.sampled_from(times)),
    )
    check(data.draw(lines_of(record)), mapping=mapping, on_error=on_error)


TOKENS = [
    ":a", ":b-c", ":1", ":", ":-a", ":c.d", "x:y", "xsd:integer", "<urn:a>", "<urn:ä>", "<a>", "a",
    "5", "-5", "+5.", "5.5", ".5", "5e3", "1.e5", "5.5E-3", "true", "false", "falsex", '"x"', '"x"@en', '"x"@en-GB',
    '"x"^^xsd:integer', "_:b", "'x'", '"x"^^xsd:string', '"x"^^<urn:t>', '"x"^^rdf:langString', r'"\u0061"', r'"\n\""',
    '"', "[]", "(1)", '"""x"""', "# c\n", "",
]  # fmt: skip
NAMES = {"": "http://example.org/", "xsd": XSD, "rdf": RDF, "x": "urn:x:"}
TEXTS = st.lists(
    st.tuples(
        st.sampled_from(TOKENS[:4] + TOKENS[8:9]) | st.sampled_from(TOKENS),
        st.sampled_from([":p", "a", "<urn:p>", "x:y"]) | st.sampled_from(TOKENS),
        st.lists(st.sampled_from(TOKENS[12:26]) | st.sampled_from(TOKENS), min_size=1, max_size=3),
        st.sampled_from([" ", "\t", "\n", "\r\n", "  "]),
        st.sampled_from([" ,", ",", " ; :q ", ";a ", ", "]),
        st.sampled_from([" .", ".", " . ", ".\n", " ;.", "", " . # c"]),
    ),
    max_size=3,
)


@settings(max_examples=examples(1))
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_a_usual_text_is_what_the_parser_of_turtle_reads(texts: list[Any]) -> None:
    written = [
        "".join(f"{s}{gap}{p}{gap}{(comma + gap).join(objects)}{end}" for s, p, objects, gap, comma, end in parts)
        for parts in texts
    ]
    reading = JsonOptions(names=NAMES)
    triples = turtle.triples_of(written, np.zeros(len(written), bool), turtle.forms_of(NAMES, known=True))
    columns = [column.to_pylist() for column in triples.terms]
    for number in np.flatnonzero(triples.usual).tolist():
        here = np.flatnonzero(triples.record == number).tolist()
        rows = [row[:3] for row in read_rows(written[number], "", reading.prefixes)]
        assert [tuple(column[n] for column in columns) for n in here] == list(dict.fromkeys(rows))
        assert len(rows) - len(here) == triples.repeated[number]


def test_short_turtle_is_usual() -> None:
    written = [":a a :B ; :p 5, -2.5, 1e3, true .", '<urn:a> <urn:p> "x"@en-GB, "1"^^xsd:decimal .\n:b :q x:c .']
    triples = turtle.triples_of(written, np.zeros(2, bool), turtle.forms_of(NAMES, known=True))
    assert triples.usual.all()
    assert np.bincount(triples.record).tolist() == [5, 3]


def test_prefixes_that_cannot_be_read_leave_n_triples_alone() -> None:
    texts = ['<urn:a> <urn:p> "1" .', "<urn:a> <urn:p> 1 ."]
    check([json.dumps({"time": 1, "triples": text}) for text in texts], prefixes={"1x": "urn:x:"}, on_error="skip")


def test_corrections_among_many_lines_do_not_cut_the_batch_into_lines() -> None:
    lines = [{"time": n, "triples": ":a :p 1 ."} | ({} if n % 7 else {"retract": True}) for n in range(1, 700)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    chunks = list(read_stream(io.BytesIO(data), format="jsonl").chunks(large=True))
    assert len(chunks) <= 2
    check([json.dumps(line) for line in lines])


@pytest.mark.parametrize("last", ["", "{\n"])
def test_lines_are_decoded_without_the_collector_of_garbage(last: str) -> None:
    """It would visit every list and number of a block again and again, which took half of the time."""
    lines = "".join(f'{{"time": {n}.5, "triples": ["<urn:a> <urn:p> {n}"]}}\n' for n in range(20_000)) + last
    collected: list[str] = []

    def count(phase: str, info: dict[str, int]) -> None:
        collected.append(phase)

    gc.callbacks.append(count)
    try:
        stream = read_stream(io.BytesIO(lines.encode()), on_error="skip")
        events = sum(len(chunk) for chunk in stream.chunks(large=True))
    finally:
        gc.callbacks.remove(count)
    assert events == 20_000
    assert len(collected) < 70  # 40,000 objects are 57 times what makes it begin and end
    assert gc.isenabled()


@pytest.mark.parametrize("mapping", [None, MAPPINGS[0]])
def test_large_files_go_through_columns(mapping: Any) -> None:
    one = {"a": "acme", "b": 1.5} if mapping else {"triples": '<urn:a> <urn:p> "1" .'}
    data = "\n".join(json.dumps({"time": i} | one) for i in range(5000)).encode() + b"\n"
    chunks = list(read_stream(io.BytesIO(data), format="jsonl", mapping=mapping).chunks(large=True))
    assert [len(chunk) for chunk in chunks] == [1, 4999]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(
    "line",
    [
        '{"time": 7, "a": "", "b": ""}',
        '{"time": 7, "a": null, "b": ""}',
        '{"time": 7, "a": "x", "b": "y", "punctuate": null}',
        '{"time": 7, "a": "x", "b": "y", "triples": null}',
        '{"time": 7, "a": "x", "b": "y"}{"time": 8, "a": "x", "b": "y"}\n ',
        '{"time": 7, "a": "x",\n"b": "y"}{"time": 8, "a": "x", "b": "y"}',
    ],
)
def test_a_line_that_is_refused_in_a_small_file_is_refused_in_a_large_one(line: str, on_error: str) -> None:
    usual = '{"time": 5, "a": "x", "b": "y"}'
    check([usual, usual, line, usual, ""], mapping=MAPPINGS[0], on_error=on_error)
    data = "\n".join([usual, usual, line]).encode()
    with pytest.raises(StreamError, match="<input>:3: "):
        list(read_stream(io.BytesIO(data), format="jsonl", mapping=MAPPINGS[0]).chunks(large=True))


@pytest.mark.parametrize("empty", ["", None])
def test_a_time_of_two_keys_needs_both(empty: Any) -> None:
    usual = {"t": "1", "u": "5", "a": "x", "b": "y"}
    lines = [json.dumps(line) for line in (usual, usual, usual | {"u": empty})]
    mapping = MAPPINGS[0] | {"time": "{t}{u}"}
    check(lines, mapping=mapping)
    with pytest.raises(StreamError, match="<input>:3: the mapping takes the time from u, which has no value here"):
        list(read_stream(io.BytesIO("\n".join(lines).encode()), format="jsonl", mapping=mapping).chunks(large=True))


def test_a_mapping_names_the_stream_also_if_it_names_no_time() -> None:
    line = json.dumps({"time": 5, "a": "x", "b": "y"})
    mapping = MAPPINGS[0] | {"stream": "<urn:s:{a}>"}
    check([line, line], mapping=mapping)
    items = list(read_stream(io.BytesIO(line.encode()), format="jsonl", mapping=mapping))
    assert [item.stream for item in items] == ["<urn:s:x>"]


def test_null_where_a_key_marks_a_line_is_no_line_of_triples() -> None:
    line = json.dumps({"time": 5, "triples": TRIPLES[0]})
    check([line, json.dumps({"time": 6, "triples": TRIPLES[0], "punctuate": None}), line], on_error="skip")


@pytest.mark.parametrize("clock", [None, Clock("integer")])
def test_why_no_event_was_made_is_told_of_large_files_as_well(clock: Clock | None) -> None:
    data = "\n".join(json.dumps({"time": n, "prise": 5, "a": "x"}) for n in range(100)).encode()
    for large in (False, True):
        stream = read_stream(io.BytesIO(data), format="jsonl", mapping=MAPPINGS[0], clock=clock)
        assert not [*stream.chunks(large=large)]
        assert (
            stream.warnings[0].partition("; ")[2].startswith("the mapping uses b, which the first line does not have")
        )


@pytest.mark.parametrize("large", [False, True], ids=["rows", "columns"])
def test_an_empty_stream_is_the_unnamed_one(large: bool) -> None:
    names: list[dict[str, Any]] = [{}, {"stream": None}, {"stream": ""}, {"stream": "urn:t"}]
    lines = [{"time": 1, "triples": ":a :p 1 ."} | name for name in names]
    data = "".join(json.dumps(line) + "\n" for line in lines * 2).encode()
    events = outcome(lambda: read_stream(io.BytesIO(data), format="jsonl", name="urn:s"), bulk=large)[0]
    assert [event.stream for event in events] == ["<urn:s>", "<urn:s>", "", "<urn:t>"] * 2
