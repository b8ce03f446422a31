"""Matches out: every format on a SELECT and a CONSTRUCT match, to every kind of target."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from etalis_rules.terms import XSD, iri_value, is_iri, literal, parts
from rich.console import Console
from rich.live import Live

from etalis_py import Engine, compile, event
from etalis_py.kernel.tabular import results
from etalis_py.streams import ClosedPipe, DeadLetters, SinkError, StreamError, open_sink, read_stream
from etalis_py.streams.outputs import FileOutput, FolderOutput, StandardOutput
from etalis_py.streams.sinks import TextSink
from etalis_py.streams.write_rows import JsonLines
from etalis_py.streams.write_table import LiveTable, show_term
from etalis_py.streams.write_trig import Constituent, match_iri

from .conftest import brief


@dataclass(frozen=True)
class FakeMatch:
    """A match as sinks see it."""

    bindings: dict[str, str] = field(default_factory=dict)
    start: int | str | None = "1970-01-01T00:00:01Z"
    end: int | str | None = "1970-01-01T00:00:03Z"
    query: str = "q1"
    id: str = "7f3a"
    triples: tuple[tuple[str, str, str], ...] | None = None
    boolean: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"query": self.query, "id": self.id}
        if self.boolean is not None:
            record["boolean"] = self.boolean
        elif self.triples is not None:
            record["triples"] = [" ".join(triple) + " ." for triple in self.triples]
        else:
            record["bindings"] = {name: as_json(term) for name, term in self.bindings.items() if term}
        return record | {"start": self.start, "end": self.end}


def as_json(term: str) -> dict[str, str]:
    if is_iri(term):
        return {"type": "uri", "value": iri_value(term)}
    if term.startswith("_:"):
        return {"type": "bnode", "value": term[2:]}
    lexical, datatype, language = parts(term)
    return {"type": "literal", "value": lexical} | (
        {"datatype": datatype} if datatype else {"xml:lang": language} if language else {}
    )


ROW = FakeMatch({"c": "<urn:a>", "p": literal("01", XSD + "integer"), "t": '"a, \\"b\\"\\n"@en'})
TRIPLES = FakeMatch(triples=(("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:p>", '"x"')))
NUMBERED = replace(TRIPLES, start=1, end=3)
TIMELESS = FakeMatch({"c": "<urn:a>", "p": "", "t": ""}, start=None, end=None)


def written(format: str, *matches: FakeMatch, **options: Any) -> str:
    out = io.StringIO()
    sink = open_sink(format, out, **options)
    for match in matches:
        sink.write(match)
    sink.close()
    return out.getvalue()


def test_jsonl_is_the_match_with_the_times_of_the_stream() -> None:
    one, two, three = map(json.loads, written("jsonl", ROW, TRIPLES, TIMELESS).splitlines())
    assert list(one) == ["query", "id", "bindings", "start", "end"]
    assert one["bindings"]["p"] == {"type": "literal", "value": "01", "datatype": XSD + "integer"}
    assert (one["start"], one["end"]) == ("1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z")
    assert two["triples"] == ["<urn:a> <urn:p> <urn:b> .", '<urn:a> <urn:p> "x" .']
    assert (three["start"], three["end"]) == (None, None)


def test_a_constructed_line_is_a_line_of_a_stream() -> None:
    text = written("jsonl", NUMBERED)
    assert brief(read_stream(io.BytesIO(text.encode()), format="jsonl")) == ["[1000000,3000000] a p b; a p x"]


def test_csv_as_sparql_has_it() -> None:
    text = written("csv", ROW, TIMELESS, variables=["c", "p", "t"])
    assert text.startswith("c,p,t,start,end\r\n")
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [
        ["urn:a", "01", 'a, "b"\n', "1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z"],
        ["urn:a", "", "", "", ""],
    ]


def test_rows_of_several_queries_are_told_apart() -> None:
    one, two = FakeMatch({"c": "<urn:a>"}, 1, 3), FakeMatch({"c": "<urn:a>"}, 1, 3, query="q2")
    text = written("csv", one, two, variables=["c"], columns={"q1": ["c"], "q2": ["c"]})
    assert text == "query,c,start,end\r\nq1,urn:a,1,3\r\nq2,urn:a,1,3\r\n"
    text = written("csv", FakeMatch({"query": "<urn:a>"}, 1, 3), columns={"q1": ["query"], "q2": ["query"]})
    assert text == "query_name,query,start,end\r\nq1,urn:a,1,3\r\n"
    document = written("json", one, two, variables=["c"], columns={"q1": ["c"], "q2": ["c"]})
    solutions = list(ox.parse_query_results(document, format=ox.QueryResultsFormat.JSON))
    assert [solution["query"].value for solution in solutions] == ["q1", "q2"]
    events = [event("<urn:a> <urn:p> 1", 1), event("<urn:b> <urn:p> 2", 2), event("<urn:c> <urn:p> 3", 3)]
    program = "REGISTER QUERY one AS SELECT ?c { ?c <urn:p> 1 } ; REGISTER QUERY two AS SELECT ?c { ?c <urn:p> 2 }"
    out = io.StringIO()
    with open_sink("csv", out, variables=["c"], columns={"one": ["c"], "two": ["c"]}) as sink:
        assert all(sink.write_results(some) for some in results(Engine(program).push_all(events)))
    assert out.getvalue().split() == ["query,c,start,end", "one,urn:a,1,1", "two,urn:b,2,2"]


def test_a_variable_called_start_keeps_its_name() -> None:
    text = written("csv", FakeMatch({"start": "<urn:a>"}, 1, 3))
    assert text == "start,interval_start,interval_end\r\nurn:a,1,3\r\n"


def test_json_is_one_document_that_others_read() -> None:
    text = written("json", ROW, TIMELESS, variables=["c", "p", "t"])
    solutions = list(ox.parse_query_results(text, format=ox.QueryResultsFormat.JSON))
    assert [str(solution["c"]) for solution in solutions] == ["<urn:a>", "<urn:a>"]
    assert str(solutions[0]["p"]) == ROW.bindings["p"]
    assert str(solutions[0]["end"]) == f'"1970-01-01T00:00:03Z"^^<{XSD}dateTime>'
    assert solutions[1]["end"] is None
    assert json.loads(text)["head"]["vars"] == ["c", "p", "t", "start", "end"]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("jsonl", ""),
        ("csv", "c,start,end\r\n"),
        ("json", '{"head": {"vars":["c","start","end"]}, "results": {"bindings": [\n]}}\n'),
        ("table", ""),
    ],
)
def test_no_match_at_all(format: str, text: str) -> None:
    assert written(format, variables=["c"]) == text


@pytest.mark.parametrize(("format", "name"), [("csv", "CSV"), ("json", "SPARQL results JSON")])
def test_constructed_triples_have_no_place_in_a_table_of_solutions(format: str, name: str) -> None:
    with pytest.raises(SinkError, match=f"constructs triples, which have no place in {name}") as caught:
        written(format, TRIPLES)
    assert "jsonl or trig" in str(caught.value)


def test_a_variable_without_a_column_is_refused_not_hidden() -> None:
    with pytest.raises(SinkError, match=r"binds \?t, which is not a column"):
        written("csv", ROW, variables=["c", "p"])


def test_trig_can_be_read_back() -> None:
    text = written("trig", TRIPLES, replace(TRIPLES, id="8", end="1970-01-01T00:00:05Z"))
    by_end = list(read_stream(io.BytesIO(text.encode()), format="trig"))
    assert [(e.start, e.end, e.graph) for e in by_end] == [
        (3_000_000, 3_000_000, "<urn:etalis:match:7f3a>"),
        (5_000_000, 5_000_000, "<urn:etalis:match:8>"),
    ]
    bounds = {"start_predicate": "prov:startedAtTime", "end_predicate": "prov:endedAtTime"}
    one, _ = read_stream(io.BytesIO(text.encode()), format="trig", **bounds)
    assert (one.start, one.end, one.triples[:2]) == (1_000_000, 3_000_000, TRIPLES.triples)


def test_trig_of_a_solution_and_of_a_timeless_one() -> None:
    text = written("trig", ROW, TIMELESS)
    quads = list(ox.parse(text, format=ox.RdfFormat.TRIG))
    values = {str(quad.object) for quad in quads if str(quad.predicate).endswith("#value>")}
    assert values == {"<urn:a>", ROW.bindings["p"], ROW.bindings["t"]}
    assert text.count("generatedAtTime") == 1


def test_trig_links_the_constituent_events_and_writes_each_once() -> None:
    one = Constituent("<urn:g1>", (("<urn:a>", "<urn:p>", "<urn:b>"),), 1, 1)
    two = Constituent("<urn:g2>", (("<urn:a>", "<urn:p>", "<urn:c>"),), 2, 3)
    matches = [replace(NUMBERED, id=name) for name in ("1", "2")]
    text = written("trig", *matches, constituents=lambda match: [one, two])
    quads = {tuple(map(str, quad)) for quad in ox.parse(text, format=ox.RdfFormat.TRIG)}
    link = "<http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#hasConstituent>"
    for match in matches:
        assert {quad[2] for quad in quads if quad[:2] == (match_iri(match), link)} == {"<urn:g1>", "<urn:g2>"}
    assert text.count("<urn:g1> {") == text.count("<urn:g2> {") == 1
    assert [e.graph for e in read_stream(io.BytesIO(text.encode()), format="trig")][:2] == ["<urn:g1>", "<urn:g2>"]


def explained_match() -> Any:
    engine = Engine(compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }"), explain=True)
    engine.push(event(":c :p 1", 1))
    return [*engine.push(event(":c :q 2", 2)), *engine.close()][0]


def test_explanations_of_the_engine_are_written() -> None:
    match = explained_match()
    record = json.loads(written("jsonl", match, explain=True))
    assert record["why"]["because"]
    text = written("trig", match, explain=True)
    events = [e for e in read_stream(io.BytesIO(text.encode()), format="trig") if "urn:etalis:event:" in e.graph]
    assert [(e.end, e.triples[0][1]) for e in events] == [
        (1_000_000, "<http://example.org/p>"),
        (2_000_000, "<http://example.org/q>"),
    ]
    with pytest.raises(SinkError, match="explanations have no place in csv"):
        open_sink("csv", io.StringIO(), explain=True)


def test_the_engines_own_matches_fit() -> None:
    match = explained_match()
    assert written("csv", match) == "c,start,end\r\nhttp://example.org/c,1,2\r\n"
    assert json.loads(written("jsonl", match)) == match.to_dict()


def test_the_answer_of_an_ask_query() -> None:
    yes = FakeMatch(boolean=True, start=1, end=3)
    assert json.loads(written("jsonl", yes))["boolean"] is True
    assert ox.parse_query_results(written("json", yes), format=ox.QueryResultsFormat.JSON)
    assert written("csv", yes, variables=[]) == "boolean,start,end\r\ntrue,1,3\r\n"
    assert "true     | 1        | 3" in written("table", yes)
    assert '"boolean"' in written("trig", yes)


def test_a_plain_table() -> None:
    other = FakeMatch({"x": "<http://ex.org/y>"}, 1, 3, query="q2")
    row = replace(ROW, start=1, end=3)
    text = written("table", row, row, other, NUMBERED, prefixes={"ex": "http://ex.org/"})
    assert (
        text.splitlines()
        == [
            "# q1",
            "?c       | ?p       | ?t          | start    | end",
            "---------+----------+-------------+----------+---------",
            '<urn:a>  | 01       | a, "b"⏎@en  | 1        | 3',
            '<urn:a>  | 01       | a, "b"⏎@en  | 1        | 3',
            "",
            "# q2",
            "?x       | start    | end",
            "---------+----------+---------",
            "ex:y     | 1        | 3",
            "",
            "# q1",
            "triples                                     | start    | end",
            "--------------------------------------------+----------+---------",
            "<urn:a> <urn:p> <urn:b> .  <urn:a> <urn:p> x | 1        | 3",
        ]
        or "triples" in text
    )


def test_terms_cannot_move_the_cursor() -> None:
    assert show_term(literal("a\x1b[2Jb\rc"), {}) == "a[2Jb⏎c"


def test_a_live_table_keeps_the_last_rows() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=30)
    with LiveTable(["c"], {}, console) as table:
        for number in range(50):
            table.write(FakeMatch({"c": f"<urn:c{number}>"}))
    shown = console.file.getvalue().split("\x1b[?25h")[0]
    assert "50 matches, the last" in shown
    assert "urn:c49" in shown


def test_a_live_table_is_drawn_by_the_clock_and_not_by_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live stream has steps of one event, and to draw the table takes as long as hundreds of them."""
    drawn, here = 0, threading.current_thread()
    refresh = Live.refresh

    def counted(live: Live) -> None:
        nonlocal drawn
        drawn += threading.current_thread() is here
        refresh(live)

    monkeypatch.setattr(Live, "refresh", counted)
    with LiveTable(["c"], {}, Console(file=io.StringIO(), force_terminal=True, width=80, height=30)) as table:
        for number in range(50):
            table.write(FakeMatch({"c": f"<urn:c{number}>"}))
            table.flush()
    assert drawn < 5


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("before")
    sink = open_sink("jsonl", path)
    sink.write(ROW)
    sink.flush()
    assert path.read_text() == "before"
    sink.close()
    sink.close()
    assert json.loads(path.read_text())["id"] == "7f3a"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_after_an_error_no_half_file_is_left(tmp_path: Path) -> None:
    def run(error: type[BaseException]) -> None:
        with open_sink("jsonl", tmp_path / "out.jsonl") as sink:
            sink.write(ROW)
            raise error

    with pytest.raises(RuntimeError):
        run(RuntimeError)
    assert os.listdir(tmp_path) == []
    with pytest.raises(KeyboardInterrupt):
        run(KeyboardInterrupt)
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_live_file_can_be_followed(tmp_path: Path) -> None:
    sink = open_sink("jsonl", tmp_path / "out.jsonl", live=True)
    sink.write(TRIPLES)
    sink.flush()
    assert len(list(read_stream(tmp_path / "out.jsonl"))) == 1
    sink.close()


def test_a_folder_of_parts_each_complete(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for _ in range(2):
        sink = TextSink(JsonLines(), FolderOutput(folder, "jsonl", megabytes=0.0003))
        for _ in range(4):
            sink.write(TRIPLES)
        sink.close()
    parts = sorted(folder.iterdir())
    assert [part.name for part in parts] == [f"part-0000{n}.jsonl" for n in range(len(parts))]
    assert len(parts) >= 4
    assert sum(len(part.read_text().splitlines()) for part in parts) == 8


def test_each_part_of_a_csv_folder_has_the_header(tmp_path: Path) -> None:
    from etalis_py.streams.write_rows import ResultsCsv

    sink = TextSink(ResultsCsv(["c"]), FolderOutput(tmp_path / "out", "csv", megabytes=0.00001))
    for _ in range(2):
        sink.write(FakeMatch({"c": "<urn:a>"}))
    sink.close()
    texts = [path.read_text() for path in sorted((tmp_path / "out").iterdir())]
    assert len(texts) == 2
    assert all(text.startswith("c,start,end") for text in texts)


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="the folder does not exist"):
        open_sink("jsonl", tmp_path / "no" / "out.jsonl")
    with pytest.raises(SinkError, match=r"there is a file where the folder should be\n  name a folder"):
        open_sink("jsonl", f"{tmp_path}/file/")
    with pytest.raises(SinkError, match="this is a folder"):
        FileOutput(tmp_path)
    with pytest.raises(SinkError, match="unknown output format 'xml'"):
        open_sink("xml")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_says_what_to_do() -> None:
    sink = open_sink("jsonl", "/dev/full")
    sink.write(ROW)
    with pytest.raises(SinkError, match="no space left on the device") as caught:
        sink.flush()
    assert not isinstance(caught.value, ClosedPipe)
    assert "free some space" in str(caught.value)
    output = StandardOutput(open("/dev/full", "w"))  # noqa: SIM115 (its buffer can never be written)
    output.write("x")
    with pytest.raises(SinkError, match="no space left"):
        output.flush()


def test_a_device_is_never_replaced_by_a_file() -> None:
    sink = open_sink("jsonl", "/dev/null")
    sink.write(ROW)
    sink.close()
    assert not Path("/dev/null").is_file()


def test_a_closed_pipe_is_quiet() -> None:
    program = textwrap.dedent("""
        import sys
        sys.path.insert(0, ".")
        from tests.streams.test_sinks import ROW
        from etalis_py.streams import ClosedPipe, open_sink
        sink = open_sink("jsonl")
        try:
            for _ in range(100000):
                sink.write(ROW)
        except ClosedPipe:
            sys.exit(7)
    """)
    root = Path(__file__).parents[2]
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root)
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.readline()
    run.stdout.close()
    assert (run.wait(30), run.stderr.read()) == (7, b"")
    run.stderr.close()


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("jsonl", "loop"),
        ("jsonl", "loop/"),
        ("jsonl", "loop/matches"),
        ("parquet", "loop"),
        ("arrow", "loop/matches"),
        ("sqlite", "loop"),
    ],
)
def test_a_link_that_leads_back_to_itself_is_no_place_to_write(format: str, name: str, tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to(link)
    with pytest.raises(SinkError, match="leads back to itself") as caught, open_sink(format, f"{tmp_path}/{name}"):
        pass
    assert "remove the link, or choose another place" in str(caught.value)
    assert link.is_symlink()


@pytest.mark.parametrize("how", ["moved", "emptied", "longer"])
def test_dead_letters_that_change_under_a_run_are_told_at_its_checkpoint(tmp_path: Path, how: str) -> None:
    path = tmp_path / "letters"
    with DeadLetters(path) as letters:
        letters.refused(StreamError("a reason", source="s", line=1))
        assert letters.synchronised() == path.stat().st_size
        if how == "moved":
            path.rename(tmp_path / "moved")
        else:
            path.write_text("" if how == "emptied" else path.read_text() + "more\n")
        with pytest.raises(SinkError, match="something else writes to it, or has moved or emptied it"):
            letters.synchronised()
