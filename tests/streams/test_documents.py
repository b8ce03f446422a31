"""N-Quads and TriG documents: one named graph is one element, timed by the default graph ([REQ], RDF Stream)."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest

from etalis_py.events import Event
from etalis_py.events.clock import parse_datetime
from etalis_py.streams import Clock, DeadLetters, StreamError, read_stream

from .conftest import PREFIXES, brief

TWO = ["g1[1,1] a p 1", "g2[2,2] a p 2"]


@pytest.mark.parametrize(
    "text",
    [
        ":g1 prov:generatedAtTime 1 . :g1 { :a :p 1 } :g2 prov:generatedAtTime 2 . :g2 { :a :p 2 }",
        ":g1 { :a :p 1 } :g1 prov:generatedAtTime 1 . :g2 { :a :p 2 } :g2 prov:generatedAtTime 2 .",
        ":g1 prov:generatedAtTime 1 . :g2 prov:generatedAtTime 2 . :g1 { :a :p 1 } :g2 { :a :p 2 }",
        ":g1 { :a :p 1 } { :g1 prov:generatedAtTime 1 . :g2 prov:generatedAtTime 2 . } :g2 { :a :p 2 }",
        ":g1 { :a :p 1 . :g1 prov:generatedAtTime 1 } :g2 { :a :p 2 . :g2 prov:generatedAtTime 2 }",
    ],
    ids=["before", "after", "all in front", "one after, one before", "inside"],
)
def test_the_time_of_a_graph(events, text: str) -> None:
    found = [event.replace("; g1 http", " http").split(" <http")[0] for event in events(PREFIXES + text, format="trig")]
    assert [event.split(";")[0] for event in found] == TWO


def test_times_after_all_graphs_need_the_whole_document(events, stream) -> None:
    text = PREFIXES + ":g2 { :a :p 2 } :g1 { :a :p 1 } :g1 prov:generatedAtTime 1 . :g2 prov:generatedAtTime 2 ."
    assert events(text, format="trig", times="anywhere") == TWO
    with pytest.raises(StreamError, match="comes after the element") as caught:
        list(stream(text, format="trig"))
    assert "times='anywhere'" in str(caught.value)


def test_the_requirements_documents_intervals(stream) -> None:
    text = """
    :g1 {:axel :isIn :RedRoom. :darko :isIn :RedRoom} {:g1 :atInterval "2016-03-01T13:00:00Z/2016-03-01T13:00:10Z"}
    :g2 {:axel :isIn :BlueRoom. }                     {:g2 :atInterval "2016-03-01T13:00:20Z/2016-03-01T13:00:40Z"}
    :g3 {:minh :isIn :RedRoom. }                      {:g3 :atInterval "2016-03-01T13:00:50Z/2016-03-01T13:00:60Z"}
    """
    found = list(stream(PREFIXES + text, format="trig", time_predicate="urn:atInterval"))
    start = parse_datetime("2016-03-01T13:00:00Z")
    assert [((e.start - start) // 10**6, (e.end - start) // 10**6, len(e.triples)) for e in found] == [
        (0, 10, 2),
        (20, 40, 1),
        (50, 60, 1),
    ]


def test_intervals_by_two_predicates(events) -> None:
    text = ":g1 :from 1 ; :to 5 . :g1 { :a :p 1 }"
    assert events(PREFIXES + text, format="trig", start_predicate="urn:from", end_predicate="urn:to") == [
        "g1[1,5] a p 1"
    ]


def test_half_an_interval_is_an_error(stream) -> None:
    text = ":g1 :from 1 . :g1 { :a :p 1 }"
    with pytest.raises(StreamError, match=r"has <urn:from> but no <urn:to>"):
        list(stream(PREFIXES + text, format="trig", start_predicate="urn:from", end_predicate="urn:to"))
    with pytest.raises(StreamError, match="needs an end predicate"):
        stream(text, format="trig", start_predicate="urn:from")


def test_production_receiving_and_validity_times_side_by_side_one_chosen(events) -> None:
    text = PREFIXES + ":g1 :produced 1 ; :received 3 ; :from 0 ; :to 9 . :g1 { :a :p 1 }"
    rest = {"produced": 1, "received": 3, "from": 0, "to": 9}

    def kept(*gone: str) -> str:
        return "".join(f"; g1 {name} {value}" for name, value in rest.items() if name not in gone)

    assert events(text, format="trig", time_predicate="urn:produced") == ["g1[1,1] a p 1" + kept("produced")]
    assert events(text, format="trig", time_predicate="urn:received") == ["g1[3,3] a p 1" + kept("received")]
    assert events(text, format="trig", start_predicate="urn:from", end_predicate="urn:to") == [
        "g1[0,9] a p 1" + kept("from", "to")
    ]
    assert events(text, format="trig", time_predicate="arrival") == ["g1[1000,1000] a p 1" + kept()]


def test_the_predicate_may_differ_per_element(events) -> None:
    text = ":g1 :t 1 . :g1 { :a :p 1 } :g2 prov:generatedAtTime 2 ; :t 7 . :g2 { :a :p 2 }"
    found = events(PREFIXES + text, format="trig", time_predicate=["prov:generatedAtTime", "urn:t"])
    assert found == ["g1[1,1] a p 1", "g2[2,2] a p 2; g2 t 7"]


def test_elements_without_a_time_get_the_arrival_in_order(events, stream) -> None:
    text = PREFIXES + ":g1 { :a :p 1 } :g2 { :a :p 2 } :x :said :y . :x :said :z . :w :said :y ."
    assert events(text, format="trig") == [
        "g1[1000,1000] a p 1",
        "g2[1001,1001] a p 2",
        "[1002,1002] x said y; x said z",
        "[1003,1003] w said y",
    ]
    opened = stream(text, format="trig")
    assert len(list(opened)) == opened.counters.arrivals == 4


def test_a_graph_taken_up_again_keeps_its_time(events) -> None:
    text = ":g1 prov:generatedAtTime 1 . :g1 { :a :p 1 } :g2 prov:generatedAtTime 2 . :g2 { :a :p 2 } :g1 { :b :p 1 }"
    assert events(PREFIXES + text, format="trig") == [*TWO, "g1[1,1] b p 1"]


def test_two_different_times_are_an_error(stream) -> None:
    text = ":g1 prov:generatedAtTime 1, 2 . :g1 { :a :p 1 }"
    with pytest.raises(StreamError, match="two different times"):
        list(stream(PREFIXES + text, format="trig"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"soon"', "expected an xsd:dateTime"),
        (":t1", "expected a time literal"),
        ('"2016-02-30T00:00:00Z"^^xsd:dateTime', "no such day"),
        ('"9"^^xsd:integer', "this stream's times are xsd:dateTime, this one is not"),
    ],
)
def test_bad_times_stop_with_the_reason(stream, value: str, reason: str) -> None:
    good = ':g0 prov:generatedAtTime "2016-01-01T00:00:00Z"^^xsd:dateTime . :g0 { :a :p 0 }'
    with pytest.raises(StreamError, match=reason):
        list(stream(PREFIXES + good + f" :g1 prov:generatedAtTime {value} . :g1 {{ :a :p 1 }}", format="trig"))


def test_the_clock_is_the_streams_own(stream) -> None:
    numbers = stream(PREFIXES + ":g1 prov:generatedAtTime 3 . :g1 { :a :p 1 }", format="trig", time_unit="ms")
    assert [event.end for event in numbers] == [3000]
    assert numbers.clock == Clock("integer", "ms")
    assert numbers.clock.render(3000) == 3


def test_punctuation_completes_and_closes(events) -> None:
    text = ":g1 prov:generatedAtTime 1 . :g1 { :a :p 1 } :g1 rsp:punctuate rsp:now . :x rsp:punctuate 5 ."
    assert events(PREFIXES + text, format="trig") == ["g1[1,1] a p 1", "Punctuation(time=1)", "Punctuation(time=5)"]


def test_a_triple_twice_in_an_element_is_one(stream) -> None:
    opened = stream("<urn:a> <urn:p> <urn:b> <urn:g> .\n" * 3, format="nq")
    assert [len(event.triples) for event in opened] == [1]
    assert opened.counters.duplicates == 2


def test_empty_graphs_are_counted(stream) -> None:
    opened = stream(PREFIXES + ":g1 prov:generatedAtTime 1 . :g1 {}", format="trig")
    assert list(opened) == []
    assert opened.counters.empty == 1


def test_blank_nodes_have_document_scope(tmp_path: Path) -> None:
    text = "_:x <urn:p> <urn:a> <urn:g1> .\n_:x <urn:p> <urn:b> <urn:g2> .\n"
    for name in ("a.nq", "b.nq"):
        (tmp_path / name).write_text(text)
    one = [event.triples[0][0] for event in read_stream(tmp_path / "a.nq", name="urn:s")]
    other = [event.triples[0][0] for event in read_stream(tmp_path / "b.nq", name="urn:s")]
    assert one[0] == one[1] != other[0] == other[1]
    assert one == [event.triples[0][0] for event in read_stream(tmp_path / "a.nq", name="urn:s")]


def test_unlabelled_blank_nodes_are_the_same_on_every_run(stream) -> None:
    text = PREFIXES + ":g1 { :a :p [ :q [ :r 1 ] ] } :g2 { :a :p ( 1 2 ) }"
    runs = [[event.triples for event in stream(text, format="trig")] for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("format", ["nq", "trig"])
def test_a_bad_part_stops_with_file_line_and_reason(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"bad.{format}"
    path.write_text("<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> oops .\n<urn:a> <urn:p> <urn:c> .\n")
    with pytest.raises(StreamError) as caught:
        list(read_stream(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert "oops" in str(caught.value)


@pytest.mark.parametrize("format", ["nq", "trig"])
def test_a_bad_part_can_be_skipped_counted_and_kept(tmp_path: Path, format: str) -> None:
    path, dead = tmp_path / f"bad.{format}", tmp_path / "dead.jsonl"
    path.write_text("<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> oops .\n<urn:a> <urn:p> <urn:c> .\n")
    with DeadLetters(dead) as letters, read_stream(path, on_error="skip", dead_letters=letters) as opened:
        triples = [triple for event in opened for triple in event.triples]
    assert [triple[2] for triple in triples] == ["<urn:b>", "<urn:c>"]
    assert opened.counters.errors == letters.count == 1
    assert '"line": 2' in dead.read_text()
    assert "oops" in dead.read_text()


def test_an_element_with_a_bad_time_is_kept_whole_in_the_dead_letters(tmp_path: Path) -> None:
    path, dead = tmp_path / "bad.nq", tmp_path / "dead.jsonl"
    path.write_text(
        '<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "soon" .\n<urn:a> <urn:p> <urn:b> <urn:g> .\n'
        "<urn:a> <urn:p> <urn:c> <urn:h> .\n"
    )
    with (
        DeadLetters(dead) as letters,
        read_stream(path, on_error="skip", dead_letters=letters, now=lambda: 9) as opened,
    ):
        assert brief(opened) == ["h[9,9] a p c"]
    assert "<urn:a> <urn:p> <urn:b> <urn:g> ." in dead.read_text()
    assert '"line": 1' in dead.read_text()


def test_a_line_that_is_no_utf8_is_named(stream) -> None:
    data = b'<urn:a> <urn:p> "ok" .\n<urn:a> <urn:p> "\xff" .\n<urn:a> <urn:p> "ok" .\n'
    with pytest.raises(StreamError, match="byte 18 of the line is not UTF-8") as caught:
        list(stream(data, format="nq"))
    assert caught.value.line == 2
    skipped = stream(data, format="nq", on_error="skip")
    assert sum(len(event.triples) for event in skipped) == skipped.counters.duplicates == 1
    assert skipped.counters.errors == 1


def test_gzip_by_name_and_by_content(tmp_path: Path) -> None:
    data = gzip.compress(b"<urn:a> <urn:p> <urn:b> <urn:g> .\n")
    for name in ("a.nq.gz", "a.nq"):
        (tmp_path / name).write_bytes(data)
        assert [event.graph for event in read_stream(tmp_path / name)] == ["<urn:g>"]


@pytest.mark.parametrize("format", ["nq", "trig"])
def test_damaged_gzip_says_so(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}.gz"
    path.write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> .\n" * 5000)[:-20])
    with pytest.raises(StreamError, match="gzip data is damaged or cut off"):
        list(read_stream(path))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="no such file"):
        read_stream(tmp_path / "missing.nq")
    with pytest.raises(StreamError, match="no file matches"):
        read_stream(str(tmp_path / "*.nq"))
    with pytest.raises(StreamError, match="this is a folder"):
        read_stream(tmp_path)
    with pytest.raises(StreamError, match="not a file"):
        read_stream("kafka://host/topic")


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("<urn:a> <urn:p> <urn:b> <urn:g> .\n", 1),
        ("@prefix : <urn:> .\n:g { :a :p :b }\n", 1),
        ("PREFIX : <urn:>\n:g { :a :p :b }\n", 1),
        ('{"time": 1, "triples": "<urn:a> <urn:p> <urn:b> ."}\n', 1),
        ("# nothing but a comment\n", 0),
        ("", 0),
    ],
)
def test_the_format_is_seen_from_the_first_bytes(stream, head: str, count: int) -> None:
    assert len(list(stream(head))) == count


def test_a_format_that_cannot_be_told_is_asked_for(stream) -> None:
    with pytest.raises(StreamError, match="cannot tell the format"):
        stream("Date,Open,Close\n")
    with pytest.raises(StreamError, match="unknown stream format 'xml'"):
        stream("", format="xml")


@pytest.mark.parametrize("format", ["nt", "ttl"])
def test_triples_at_one_instant_or_on_arrival(events, format: str) -> None:
    text = "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> <urn:c> .\n"
    assert events(text, format=format, at=7) == ["[7,7] a p b", "[7,7] a p c"]
    assert events(text, format=format) == ["[1000,1000] a p b", "[1001,1001] a p c"]


def test_runs_of_triples_by_a_named_time_predicate(events) -> None:
    text = PREFIXES + ":o1 :value 5 ; :time 1 . :o2 :time 2 ; :value 6 . :o3 :value 7 ."
    assert events(text, format="ttl", time_predicate="urn:time") == [
        "[1,1] o1 value 5; o1 time 1",
        "[2,2] o2 time 2; o2 value 6",
        "[1000,1000] o3 value 7",
    ]


def test_one_time_for_all_is_for_triples_only(stream) -> None:
    with pytest.raises(StreamError, match=r"is for \.ttl and \.nt"):
        stream("", format="nq", at=7)


def test_memory_of_times_in_advance_is_bounded(stream) -> None:
    text = PREFIXES + "".join(f":g{n} prov:generatedAtTime {n} . " for n in range(20))
    with pytest.raises(StreamError, match="more than 10 elements have a time but no triples"):
        list(stream(text, format="trig", max_pending=10))


def test_the_stream_iri_is_on_every_event(stream) -> None:
    opened = stream("<urn:a> <urn:p> <urn:b> <urn:g> .\n", format="nq", name="urn:s")
    assert list(opened) == [Event(1000, 1000, (("<urn:a>", "<urn:p>", "<urn:b>"),), "<urn:s>", "<urn:g>")]


def test_a_late_event_can_be_read_back_from_the_dead_letters(tmp_path: Path) -> None:
    late = Event(5, 7, (("<urn:a>", "<urn:p>", "<urn:b>"),), "<urn:s>", "<urn:g>")
    with DeadLetters(tmp_path / "dead.jsonl") as letters:
        letters.late(late, "ends at or before the last closed instant")
    assert list(read_stream(tmp_path / "dead.jsonl")) == [late]


def test_mistakes_in_the_options(stream) -> None:
    for options, reason in (
        ({"on_error": "ignore"}, "unknown on_error='ignore'"),
        ({"times": "later"}, "unknown times='later'"),
        ({"time_unit": "week"}, "unknown time unit"),
        ({"time_predicate": "soon"}, "'soon' is not a predicate"),
        ({"mapping": {}}, "a mapping is for CSV, JSON lines, Parquet, Arrow; this is N-Quads"),
    ):
        with pytest.raises(StreamError, match=reason):
            stream("", format="nq", **options)
    with pytest.raises(StreamError, match="open it in binary mode"):
        read_stream(io.StringIO(""))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (':g1 { :a :p 1 }\n:g1 prov:generatedAtTime\n  "soon" .\n:g2 { :a :p 2 }', 3, "is not a time"),
        (":g1 prov:generatedAtTime 1 .\n:g1 {\n :a :p 1 }\n:g1 prov:generatedAtTime 2 .", 4, "two different times"),
        (":g1 { :a :p 1 }\n:g2 { :a :p 2 }\n\n:g1 prov:generatedAtTime 1 .", 4, "comes after the element"),
        (':g1 prov:generatedAtTime 1 .\n:g1 { :a :p 1 }\n:g1\n rsp:punctuate "never" .', 4, "punctuation"),
        (':g1 { :a :p """x\ny""" }\n:g1 prov:generatedAtTime <urn:t> .\n', 3, "is not a time"),
    ],
    ids=["no time", "two times", "too late", "punctuation", "after a long string"],
)
def test_what_is_wrong_with_a_time_in_trig_has_its_line(stream, text: str, line: int, reason: str) -> None:
    for data in ((PREFIXES + text).encode(), gzip.compress((PREFIXES + text).encode())):
        with pytest.raises(StreamError, match=reason) as caught:
            list(stream(data, format="trig"))
        assert caught.value.line == PREFIXES.count("\n") + line


def test_half_an_interval_in_trig_has_its_line(stream) -> None:
    with pytest.raises(StreamError, match="no <urn:to>") as caught:
        list(
            stream(
                PREFIXES + ":g1\n:from 1 .\n:g1 { :a :p 1 }",
                format="trig",
                start_predicate="urn:from",
                end_predicate="urn:to",
            )
        )
    assert caught.value.line == PREFIXES.count("\n") + 2


def test_lines_are_counted_across_blocks_and_long_lines(stream) -> None:
    """The parser asks for about a thousand bytes at a time."""
    long = " . ".join(f":a :p {i}" for i in range(2000))
    text = "".join(f":g{i} prov:generatedAtTime {i} . :g{i} {{ {long} }}\n# a comment\n" for i in range(6))
    with pytest.raises(StreamError, match="is not a time") as caught:
        list(stream(PREFIXES + text + ":g9 { :a :p 1 } :g9 prov:generatedAtTime 'x' .", format="trig"))
    assert caught.value.line == PREFIXES.count("\n") + 13


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("ttl", '<urn:a> <urn:p> "%s" .'),
        ("trig", '<urn:g> { <urn:a> <urn:p> "%s" }'),
        ("jsonl", r'{"time": 1, "triples": "<urn:a> <urn:p> \"%s\" ; <urn:q> 1 ."}'),
    ],
)
def test_a_term_that_the_parser_does_not_take_is_told(format: str, text: str) -> None:
    with pytest.raises(StreamError, match=r"<input>:1: .*a term or a comment has more than 16,777,216 bytes"):
        list(read_stream(io.BytesIO((text % ("x" * 17_000_000)).encode()), format=format))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (":a :p 1 .", "declare it above: @prefix : <http://example.org/> ."),
        ("x:a x:p 1 .", "declare it above: @prefix x: <http://…> ."),
    ],
)
def test_a_prefix_that_is_not_declared_is_told_how(text: str, hint: str) -> None:
    with pytest.raises(StreamError, match=re.escape(hint)):
        list(read_stream(io.BytesIO(text.encode()), format="ttl"))


@pytest.mark.parametrize("suffix", ["nt", "nq", "ttl", "trig"])
def test_a_mark_at_the_beginning_of_a_text_says_nothing(tmp_path: Path, suffix: str) -> None:
    """As programs of Windows write it; the second line is in its place in a message."""
    path = tmp_path / f"s.{suffix}"
    path.write_text("<urn:a> <urn:b> <urn:c> .\nbroken .\n", encoding="utf-8-sig")
    refused: list[StreamError] = []
    with read_stream(path, on_error="skip", dead_letters=Kept(refused)) as opened:
        (one,) = (item for item in opened if isinstance(item, Event))
    assert one.triples == (("<urn:a>", "<urn:b>", "<urn:c>"),)
    assert [error.line for error in refused] == [2]


class Kept:
    """Dead letters in a list."""

    def __init__(self, refused: list[StreamError]) -> None:
        self.refused = refused.append
