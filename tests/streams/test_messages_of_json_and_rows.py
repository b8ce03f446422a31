"""JSON lines, CSV by a mapping, Jelly frames: one line, row or frame is one message."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from etalis_rules.terms import XSD, literal

from etalis_py.streams import Clock, StreamError, TimeError, parse_datetime, read_stream

from .conftest import brief

A = '"triples": "<urn:a> <urn:p> 1 ."'


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{TRIPLES, "time": 5}', "[5,5] a p 1"),
        ('{TRIPLES, "time": "5"}', "[5,5] a p 1"),
        ('{TRIPLES, "time": [5, 7]}', "[5,7] a p 1"),
        ('{TRIPLES, "time": "5/7"}', "[5,7] a p 1"),
        ('{TRIPLES, "start": 5, "end": 7}', "[5,7] a p 1"),
        ("{TRIPLES}", "[1000,1000] a p 1"),
        ('{TRIPLES, "time": 5, "graph": "urn:g"}', "g[5,5] a p 1"),
        ('{"time": 5, "triples": "@prefix : <urn:> . :a :p :b, :c ."}', "[5,5] a p b; a p c"),
        ('{"time": 5, "triples": ["<urn:a> <urn:p> <urn:b>", "<urn:a> <urn:p> <urn:c> ."]}', "[5,5] a p b; a p c"),
        ('{"punctuate": 9}', "Punctuation(time=9)"),
    ],
)
def test_a_line_of_json(events, line: str, found: str) -> None:
    assert events(line.replace("TRIPLES", A) + "\n\n", format="jsonl") == [found]


def test_times_of_json_are_exact(stream) -> None:
    opened = stream('{"time": 0.1, "triples": "<urn:a> <urn:p> 1 ."}', format="jsonl", time_unit="s")
    assert next(opened).end == 100_000
    assert opened.clock == Clock("integer", "s")


def test_the_stream_may_be_named_on_the_line(stream) -> None:
    text = '{"time": 1, "triples": "<urn:a> <urn:p> 1 .", "stream": "urn:t"}\n'
    text += '{"time": 2, "triples": "<urn:a> <urn:p> 1 ."}'
    assert [event.stream for event in stream(text, format="jsonl", name="urn:s")] == ["<urn:t>", "<urn:s>"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "this is not JSON"),
        (r'{"time": 1, "\ud800": ""}', "half of a surrogate pair, which is no character\n(.|\n)*write the other half"),
        (r'{"time": 1, "a": "\ud800"}', "half of a surrogate pair, which is no character\n(.|\n)*write the other half"),
        ("[1]", "expected a JSON object"),
        ('{"time": 1}', "no 'triples' here, only 'time'"),
        ('{"time": 1, "triples": 7}', "neither a text nor a list"),
        ('{"time": 1, "triples": "<urn:a> <urn:p> ."}', "the triples cannot be read"),
        ('{"time": "soon", "triples": ""}', "the time cannot be read: this stream's times are plain numbers"),
        ('{"time": [7, 5], "triples": ""}', "ends before it starts"),
        ('{"time": true, "triples": ""}', "expected a number"),
        ('{"start": 1, "triples": ""}', "come together"),
        ('{"time": null, "triples": "<urn:a> <urn:p> 1 ."}', "'time' is null\n(.|\n)*write a number"),
        ('{"tiem": 2, "triples": "<urn:a> <urn:p> 1 ."}', "the key 'tiem' is not known\n(.|\n)*did you mean 'time'"),
        ('{"Time": 2, "triples": "<urn:a> <urn:p> 1 ."}', "the key 'Time' is not known"),
        ('{"time": 1, "triples": "", "graph": 5}', "'graph' is not a text"),
        ('{"time": 1, "triples": "<urn:a> <urn:p> <<( 1 <urn:p> 1 )>> ."}', "the triples cannot be read"),
    ],
)
def test_bad_lines_of_json_name_the_line(stream, line: str, reason: str) -> None:
    text = '{"time": 1, "triples": "<urn:a> <urn:p> 1 ."}\n' + line + "\n"
    with pytest.raises(StreamError, match=reason) as caught:
        list(stream(text, format="jsonl"))
    assert caught.value.line == 2
    skipped = stream(text, format="jsonl", on_error="skip")
    assert len(list(skipped)) == skipped.counters.errors == 1


def test_other_keys_do_not_matter_and_a_line_without_a_time_has_that_of_its_arrival(stream) -> None:
    text = '{"id": 7, "item": 1, "state": "new", "triples": "<urn:a> <urn:p> 1 ."}'
    assert len(list(stream(text, format="jsonl"))) == 1


def test_nothing_of_a_bad_message_is_emitted(stream) -> None:
    text = '{"time": 1, "triples": "<urn:a> <urn:p> 1 .\\n<urn:a> <urn:p> oops ."}'
    assert list(stream(text, format="jsonl", on_error="skip")) == []


PRICES = """Date,Symbol,Close,Note
2004-08-19,GOOG,49.845802,"two
lines"
2004-08-20,A B,53,
2004-08-23,GOOG,5e1,x
"""
FIVE_LINES = """subject = "<http://ex.org/{Symbol}>"
predicate = "<http://ex.org/price>"
object = "{Close}"
time = "{Date}"
time_format = "%Y-%m-%d"
"""


def test_five_lines_map_a_table(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES)
    (tmp_path / "map.toml").write_text(FIVE_LINES)
    opened = read_stream(tmp_path / "prices.csv", mapping=tmp_path / "map.toml")
    found = list(opened)
    assert [event.triples[0] for event in found] == [
        ("<http://ex.org/GOOG>", "<http://ex.org/price>", literal("49.845802", XSD + "decimal")),
        ("<http://ex.org/A%20B>", "<http://ex.org/price>", literal("53", XSD + "integer")),
        ("<http://ex.org/GOOG>", "<http://ex.org/price>", literal("5e1", XSD + "double")),
    ]
    assert [event.end for event in found] == [parse_datetime(f"2004-08-{day}") for day in (19, 20, 23)]
    assert opened.clock == Clock("datetime")


@pytest.mark.parametrize(
    ("cell", "term"),
    [
        ("http://ex.org/a?b=c#d", "<http://ex.org/a?b=c#d>"),
        (" urn:isbn:1 ", "<urn:isbn:1>"),
        ("http://ex.org/a b", "<http://ex.org/a%20b>"),
        ("http://ex.org/a%20b", "<http://ex.org/a%20b>"),
        ("http://ex.org/ä", "<http://ex.org/ä>"),
        ("acme", "<http://shop.example/acme>"),
        ("a/b", "<http://shop.example/a%2Fb>"),
    ],
)
def test_a_column_alone_in_angle_brackets_holds_iris(cell: str, term: str) -> None:
    mapping = {
        "prefixes": {"": "http://shop.example/"},
        "time": "{at}",
        "subject": "<{url}>",
        "predicate": ":p",
        "object": "<{url}>",
    }
    text = f"at,url\n1,{cell}\n".encode()
    (row,) = read_stream(io.BytesIO(text), format="csv", mapping=mapping)
    assert row.triples == ((term, "<http://shop.example/p>", term),)
    (record,) = read_stream([{"at": 1, "url": cell}], mapping=mapping)
    assert record.triples == row.triples


def test_several_triples_a_row_missing_cells_and_all_kinds_of_terms(stream) -> None:
    mapping = {
        "prefixes": {"ex": "http://ex.org/"},
        "time": ["{from}", "{to}"],
        "graph": "ex:row/{id}",
        "missing": ["9999"],
        "triple": [
            {"subject": "ex:{id}", "predicate": "rdf:type", "object": "ex:Reading"},
            {"predicate": "ex:level", "object": '"{level}"^^xsd:decimal'},
            {"predicate": "ex:note", "object": '"{note}"@en'},
            {"predicate": "ex:at", "object": "_:place{id}"},
        ],
    }
    text = "id,from,to,level,note\n1,5,7,3.5,a\n2,8,8,9999,b\n"
    opened = stream(text, format="csv", mapping=mapping)
    one, two = list(opened)
    assert (one.start, one.end, one.graph) == (5, 7, "<http://ex.org/row/1>")
    assert [triple[2] for triple in one.triples[:3]] == ["<http://ex.org/Reading>", f'"3.5"^^<{XSD}decimal>', '"a"@en']
    assert one.triples[3][2].startswith("_:m")
    assert len(two.triples) == 3
    assert opened.counters.missing == 1


def test_time_zones_and_files_without_a_header(stream) -> None:
    mapping = {
        "subject": "<urn:{0}>", "predicate": "<urn:p>", "object": "{1}", "columns": ["0", "1", "when"],
        "time": "{when}", "time_format": "%m/%d/%Y %H:%M", "time_zone": "America/New_York", "delimiter": ";",
    }  # fmt: skip
    (event,) = stream("a;1;11/5/2019 9:30\n", format="csv", mapping=mapping)
    assert event.end == parse_datetime("2019-11-05T14:30:00Z")


def test_a_subject_above_the_triples_is_that_of_each_without_its_own(stream) -> None:
    triples = [
        {"predicate": "<urn:p>", "object": "{x}"},
        {"subject": "<urn:b>", "predicate": "<urn:q>", "object": "{x}"},
    ]
    mapping = {"time": "5", "subject": "<urn:{id}>", "triple": triples}
    opened = stream("id,x\na,1\n", format="csv", mapping=mapping)
    assert brief(opened) == ["[5,5] a p 1; b q 1"]


def test_triples_without_any_subject_are_refused(stream) -> None:
    with pytest.raises(StreamError, match="the first triple has no subject\n  say what the rows are about, such as"):
        stream("id,x\na,1\n", format="csv", mapping={"triple": [{"predicate": ":p", "object": "{x}"}]})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subject": "{Symbol}"}, "is not an IRI; write <…> around it, or :{Symbol} for a name as in a query"),
        ({"subject": ":{Symbol"}, "'subject': a brace of ':{Symbol' has no partner; a column is written {price}"),
        ({"object": "Close}"}, "'object': a brace of 'Close}' has no partner; a column is written {price}"),
        ({"object": '"{Close} }"'}, None),
        ({"subject": "ey:{Symbol}"}, "unknown prefix 'ey'"),
        ({"predicate": ""}, "'predicate' must be a text"),
        ({"predicate": "price"}, "'price' is not an IRI; write :price for a name as in a query"),
        ({"predicate": "<price>"}, "<price> has no scheme, such as http:; write :price for a name as in a query"),
        ({"predicate": "_:p"}, "cannot be a predicate"),
        ({"object": '"{Close}"^^xsx:decimal'}, "unknown datatype 'xsx:decimal'"),
        ({"objects": "x"}, "unknown key 'objects'"),
        ({"time": "{when"}, "'time': a brace of '{when' has no partner"),
        ({"time": "when"}, "'time': 'when' is neither a time nor a column\n  a column is written \"{when}\""),
        ({"time": ["{from}", "till}"]}, "'time': a brace of 'till}' has no partner"),
        ({"object": "{Clse}"}, "uses the column 'Clse', which the file does not have"),
        ({"time_zone": "Mars/Base"}, "unknown time zone"),
        ({"time_format": "%d"}, "the time cannot be read"),
        ({"time_format": ""}, None),
        ({"delimiter": ";;"}, "one character"),
    ],
)
def test_mistakes_in_a_mapping(stream, change: dict, reason: str | None) -> None:
    import tomllib

    mapping = tomllib.loads(FIVE_LINES) | change
    if reason is None:
        assert len(list(stream(PRICES, format="csv", mapping=mapping))) == 3
        return
    with pytest.raises(StreamError, match=reason):
        list(stream(PRICES, format="csv", mapping=mapping))


def test_rows_that_are_short_or_badly_quoted(stream) -> None:
    mapping = {"subject": "<urn:{a}>", "predicate": "<urn:p>", "object": "{b}"}
    text = "a,b\nx,1\ny\nz,3\n"
    with pytest.raises(StreamError, match="a row of 1 cells where the header has 2") as caught:
        list(stream(text, format="csv", mapping=mapping))
    assert caught.value.line == 3
    skipped = stream(text, format="csv", mapping=mapping, on_error="skip")
    assert [brief([event])[0].split("] ")[1] for event in skipped] == ["x p 1", "z p 3"]
    with pytest.raises(StreamError, match="not CSV"):
        list(stream('a,b\n"x"y,1\n', format="csv", mapping=mapping))


def test_a_table_without_a_mapping_says_what_one_looks_like(stream) -> None:
    with pytest.raises(StreamError, match="needs a mapping") as caught:
        stream(PRICES, format="csv")
    assert "subject = " in str(caught.value)


def jelly(grouped: bool) -> bytes:
    serialize = pytest.importorskip("pyjelly.integrations.generic.serialize", reason="pyjelly is not installed")
    from pyjelly import jelly as jelly_types
    from pyjelly.integrations.generic.generic_sink import IRI, BlankNode, GenericStatementSink, Literal, Triple

    out = io.BytesIO()
    messages = [
        [
            Triple(BlankNode("b"), IRI("urn:at"), Literal(str(n), None, XSD + "integer")),
            Triple(BlankNode("b"), IRI("urn:p"), Literal("chat", "FR")),
        ]
        for n in (1, 2)
    ]
    if grouped:
        sinks = []
        for message in messages:
            sink = GenericStatementSink()
            for triple in message:
                sink.add(triple)
            sinks.append(sink)
        types = jelly_types.LOGICAL_STREAM_TYPE_GRAPHS
        serialize.grouped_stream_to_file(
            (s for s in sinks), out, options=serialize.SerializerOptions(logical_type=types)
        )
    else:
        serialize.flat_stream_to_file((triple for message in messages for triple in message), out)
    return out.getvalue()


def test_a_grouped_jelly_stream_is_a_message_log(stream) -> None:
    found = list(stream(jelly(grouped=True), time_predicate="urn:at"))
    assert [(event.end, event.triples[1][1:]) for event in found] == [(n, ("<urn:p>", '"chat"@fr')) for n in (1, 2)]
    assert found[0].triples[0][0] != found[1].triples[0][0]
    assert len(list(stream(jelly(grouped=True), messages=False, time_predicate="arrival"))) == 1


def test_a_flat_jelly_stream_is_a_document(stream) -> None:
    subjects = {t[0] for event in stream(jelly(grouped=False), format="jelly") for t in event.triples}
    assert len(subjects) == 1


def test_damaged_jelly_says_so(stream) -> None:
    with pytest.raises(StreamError, match="damaged Jelly data in frame 2"):
        list(stream(jelly(grouped=True)[:-7], format="jelly"))
    with pytest.raises(StreamError, match="no Jelly stream"):
        list(stream(b"\x00\x01\x02nonsense", format="jelly"))


def test_jelly_without_pyjelly_names_the_extra(stream, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyjelly", None)
    with pytest.raises(StreamError, match="pyjelly, which is not installed") as caught:
        list(stream(b"\x0a\x0a\x0a", format="jelly"))
    assert "etalis-py[jelly]" in str(caught.value)


def test_what_a_construct_query_printed_can_be_read_back(events) -> None:
    match = {"query": "q", "id": "1", "triples": ["<urn:a> <urn:p> <urn:b> ."], "start": 5, "end": 7}
    assert events(json.dumps(match), format="jsonl") == ["[5,7] a p b"]


def test_time_errors_are_value_errors() -> None:
    assert issubclass(TimeError, ValueError)
    assert issubclass(StreamError, ValueError)
