"""``etalis run``, as a user runs it: files and pipes in, matches and messages out, exit codes."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pyoxigraph
import pytest

from tests.cli.conftest import RISES, RISING, Folder, rows, tick

XSD = "http://www.w3.org/2001/XMLSchema#"


# --- what comes out ------------------------------------------------------------


def test_a_match_is_one_line_of_json(folder: Folder) -> None:
    first = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl").stdout.splitlines()[0]
    match = json.loads(first)
    assert list(match) == ["query", "id", "bindings", "start", "end"]
    assert match["query"] == "rising"
    assert match["bindings"]["company"] == {"type": "uri", "value": "http://example.org/acme"}
    assert match["bindings"]["low"] == {"type": "literal", "value": "10", "datatype": XSD + "integer"}
    assert (match["start"], match["end"]) == (1, 3)


def test_without_a_terminal_nothing_is_said_beside_the_matches(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl")
    assert (rows(done.stdout), done.stderr) == (RISES, "")


def test_csv_has_the_columns_in_the_order_of_the_query(folder: Folder) -> None:
    text = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--format", "csv").stdout
    assert list(csv.reader(io.StringIO(text)))[:2] == [
        ["company", "low", "high", "start", "end"],
        ["http://example.org/acme", "10", "12", "1", "3"],
    ]


def test_json_is_sparql_results(folder: Folder) -> None:
    text = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--format", "json").stdout
    solutions = pyoxigraph.parse_query_results(text, format=pyoxigraph.QueryResultsFormat.JSON)
    assert [str(s["high"].value) for s in solutions] == ["12", "11"]


def test_a_table_shortens_iris_by_the_prefixes_of_the_query(folder: Folder) -> None:
    lines = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--format", "table").stdout.splitlines()
    assert lines[0] == "# rising"
    assert lines[1].split() == ["?company", "|", "?low", "|", "?high", "|", "start", "|", "end"]
    assert lines[3].split() == [":acme", "|", "10", "|", "12", "|", "1", "|", "3"]


def test_what_a_rule_constructs_is_the_stream_of_another_run(folder: Folder) -> None:
    folder.write("up.rq", "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y > ?x)")
    folder.write("ups.rq", "SELECT ?c ?y WHERE { ?c :up ?y }")
    trig = folder.etalis("run", "up.rq", "--stream", "ticks.jsonl", "--format", "trig").stdout
    lines = folder.etalis("run", "up.rq", "--stream", "ticks.jsonl").stdout
    for text, name in ((trig, "up.trig"), (lines, "up.jsonl")):
        folder.write(name, text)
        again = folder.etalis("run", "ups.rq", "--stream", name).stdout
        assert [json.loads(line)["bindings"]["y"]["value"] for line in again.splitlines()] == ["12", "11"]


def test_an_explained_match_names_its_events(folder: Folder) -> None:
    text = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--explain-matches").stdout
    why = json.loads(text.splitlines()[0])["why"]
    events = [(e["triple"][2], e["start"]) for e in why["because"][0]["because"]]
    assert events == [(f'"10"^^<{XSD}integer>', 1), (f'"12"^^<{XSD}integer>', 3)]


def test_matches_go_to_a_file_that_appears_when_it_is_complete(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "out.jsonl")
    assert (done.stdout, rows(folder.read("out.jsonl"))) == ("", RISES)


def test_matches_go_to_a_folder_of_files(folder: Folder) -> None:
    folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "out/")
    assert rows(folder.read("out/part-00000.jsonl")) == RISES


def test_the_timeline_is_a_picture(folder: Folder) -> None:
    folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--timeline", "t.svg", "--sink", "out.jsonl")
    assert "<svg" in folder.read("t.svg")


# --- what goes in ------------------------------------------------------------


def test_queries_and_streams_may_come_from_standard_input(folder: Folder) -> None:
    stream = folder.read("ticks.jsonl")
    assert rows(folder.etalis("run", "rising.rq", "--stream", "-", input=stream).stdout) == RISES
    query = folder.read("rising.rq")
    assert rows(folder.etalis("run", "-", "--stream", "ticks.jsonl", input=query).stdout) == RISES


def test_streams_are_merged_by_time_and_have_names(folder: Folder) -> None:
    folder.write("a.jsonl", tick(1, 10) + tick(5, 12))
    with gzip.open(folder.path / "b.jsonl.gz", "wt") as file:
        file.write(tick(3, 11) + tick(7, 13))
    folder.write(
        "two.rq", "SELECT ?x ?y WHERE { STREAM :left { ?c :price ?x } } SEQ { STREAM :right { ?c :price ?y } }"
    )
    text = folder.etalis("run", "two.rq", "--stream", "left=a.jsonl", "--stream", "http://example.org/right=b.jsonl.gz")
    found = [json.loads(line)["bindings"] for line in text.stdout.splitlines()]
    assert [(b["x"]["value"], b["y"]["value"]) for b in found] == [("10", "11"), ("10", "13"), ("12", "13")]


def test_a_pattern_means_all_its_files(folder: Folder) -> None:
    folder.write("t-2.jsonl", tick(3, 12))
    folder.write("t-1.jsonl", tick(1, 10))
    assert rows(folder.etalis("run", "rising.rq", "--stream", "t-*.jsonl").stdout) == RISES[:1]


def test_times_come_back_as_the_stream_spells_them(folder: Folder) -> None:
    folder.write("dated.jsonl", tick("2026-01-01T00:00:00Z", 10) + tick("2026-01-01T00:00:01.5Z", 12))
    text = folder.etalis("run", "rising.rq", "--stream", "dated.jsonl").stdout
    assert rows(text) == [("10", "12", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z")]


def test_a_csv_stream_by_a_mapping(folder: Folder) -> None:
    folder.write("prices.csv", "Name,Close,When\nacme,10,1\nacme,12,3\n")
    folder.write(
        "map.toml",
        'subject = "<http://example.org/{Name}>"\npredicate = "<http://example.org/price>"\nobject = "{Close}"\n'
        'time = "{When}"\n',
    )
    text = folder.etalis("run", "rising.rq", "--stream", "prices.csv", "--mapping", "map.toml").stdout
    assert rows(text) == RISES[:1]


def test_the_predicate_that_gives_the_time_can_be_named(folder: Folder) -> None:
    folder.write(
        "t.trig",
        "@prefix : <http://example.org/> . @prefix s: <http://www.w3.org/ns/sosa/> .\n"
        ":g1 s:resultTime 1 . :g1 { :acme :price 10 } :g2 s:resultTime 3 . :g2 { :acme :price 12 }",
    )
    run = ("run", "rising.rq", "--stream", "t.trig", "--time-predicate")
    assert rows(folder.etalis(*run, "sosa:resultTime").stdout) == RISES[:1]
    # By arrival the second graph comes within ten seconds as well, whatever the document says.
    assert [row[:2] for row in rows(folder.etalis(*run, "arrival").stdout)] == [("10", "12")]
    both = folder.etalis(*run, "arrival", "--time-predicate", "sosa:resultTime", code=1)
    assert "'arrival' stands alone" in both.stderr


def test_times_far_from_their_graphs_need_the_whole_document(folder: Folder) -> None:
    folder.write(
        "far.trig",
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
        ":g2 { :acme :price 12 } :g1 { :acme :price 10 }\n"
        ":g1 prov:generatedAtTime 1 . :g2 prov:generatedAtTime 3 .",
    )
    done = folder.etalis("run", "rising.rq", "--stream", "far.trig", code=1)
    assert "far.trig:3: the time of <http://example.org/g2> comes after" in done.stderr
    assert "--whole-document" in done.stderr
    assert rows(folder.etalis("run", "rising.rq", "--stream", "far.trig", "--whole-document").stdout) == RISES[:1]


def test_the_end_of_a_message_closes_its_instant_where_that_is_asked_for(folder: Folder) -> None:
    """The second message at time 3 comes too late for the first one's instant."""
    folder.write("log.jsonl", tick(1, 10) + tick(3, 12) + tick(3, 13))
    assert len(rows(folder.etalis("run", "rising.rq", "--stream", "log.jsonl").stdout)) == 2
    done = folder.etalis("run", "rising.rq", "--stream", "log.jsonl", "--close-on-message")
    assert rows(done.stdout) == RISES[:1]
    assert "1 event came too late" in done.stderr


def test_background_knowledge_is_reasoned_over(folder: Folder) -> None:
    folder.write("b.ttl", "@prefix : <http://example.org/> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> .\n"
                 ":Bank r:subClassOf :Firm . :acme a :Bank .")  # fmt: skip
    folder.write("firm.rq", "SELECT ?x WHERE { ?c :price ?x . ?c a :Firm }")
    with_rdfs = folder.etalis("run", "firm.rq", "--stream", "ticks.jsonl", "--background", "b.ttl")
    without = folder.etalis("run", "firm.rq", "--stream", "ticks.jsonl", "--background", "b.ttl", "--entailment", "rdf")
    assert (len(with_rdfs.stdout.splitlines()), without.stdout) == (3, "")


def test_the_background_may_change_while_the_stream_runs(folder: Folder) -> None:
    """An update at t holds from the first instant after t."""
    folder.write("u.jsonl", '{"time": 1, "add": ":acme a :Firm ."}\n{"time": 3, "remove": ":acme a :Firm ."}\n')
    folder.write("firm.rq", "SELECT ?x WHERE { ?c :price ?x . ?c a :Firm }")
    text = folder.etalis("run", "firm.rq", "--stream", "ticks.jsonl", "--background-stream", "u.jsonl").stdout
    assert [json.loads(line)["end"] for line in text.splitlines()] == [3]


def test_a_policy_holds_for_queries_that_name_none(folder: Folder) -> None:
    text = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--policy", "recent").stdout
    assert rows(text) == RISES[:1]


# --- what goes wrong ------------------------------------------------------------


def test_late_events_are_counted_kept_and_allowed_for(folder: Folder) -> None:
    folder.write("late.jsonl", tick(1, 10) + tick(5, 11) + tick(3, 12))
    done = folder.etalis("run", "rising.rq", "--stream", "late.jsonl", "--keep-order", "--dead-letters", "dead.jsonl")
    assert rows(done.stdout) == [("10", "11", 1, 5)]
    assert "1 event came too late" in done.stderr
    letter = json.loads(folder.read("dead.jsonl"))
    assert letter["time"] == ["1970-01-01T00:00:03Z"] * 2
    assert letter["reason"] == "came after its instant was over"
    done = folder.etalis("run", "rising.rq", "--stream", "late.jsonl", "--lateness", "2s")
    assert (rows(done.stdout), done.stderr) == (RISES, "")


def test_a_file_that_is_out_of_order_is_sorted(folder: Folder) -> None:
    folder.write("late.jsonl", tick(5, 11) + tick(3, 12) + tick(1, 10))
    done = folder.etalis("run", "rising.rq", "--stream", "late.jsonl")
    assert rows(done.stdout) == RISES
    assert done.stderr == "etalis: late.jsonl: not in order of time, so sorted first\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "none.json",
            "[]",
            "no rows found\n  write one JSON object per line, or one array of objects, each with a value",
        ),
        ("rising.rq", RISING, "a mapping is for CSV, JSON, Parquet and Arrow"),
        ("ticks.jsonl", tick(1, 10), "these lines have their triples: they need no mapping"),
        (
            "header.csv",
            "at,sensor,celsius\n",
            "no rows found below the header\n"
            "  a mapping is drafted from rows: begin when there is one, or give a mapping",
        ),
        ("empty.csv", "", "the file is empty"),
    ],
)
def test_no_mapping_is_drafted_where_there_is_nothing_to_map(folder: Folder, name: str, text: str, said: str) -> None:
    folder.write(name, text)
    done = folder.etalis("map", name, code=1)
    assert (done.stdout, done.stderr) == ("", f"etalis: {name}: {said}\n")


PLAIN = '{"time": 1, "company": "acme", "price": 10}\n{"time": 3, "company": "acme", "price": 12}\n'


def test_plain_json_is_read_by_a_drafted_mapping_and_by_a_context(folder: Folder) -> None:
    folder.write("plain.jsonl", PLAIN)
    folder.write("m.toml", folder.etalis("map", "plain.jsonl").stdout)
    folder.write("c.json", '{"@vocab": "http://example.org/", "company": "@id"}')
    for option in (("--mapping", "m.toml"), ("--context", "c.json")):
        done = folder.etalis("run", "rising.rq", "--stream", "plain.jsonl", *option)
        assert (rows(done.stdout), done.stderr) == (RISES[:1], "")
    # A mapping or a context of other keys makes nothing, and that is said.
    folder.write("slip.toml", folder.etalis("map", "plain.jsonl").stdout.replace("{price}", "{prize}"))
    folder.write("slip.json", '{"compani": "@id", "prize": "http://example.org/price"}')
    done = folder.etalis("run", "rising.rq", "--stream", "plain.jsonl", "--mapping", "slip.toml")
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr == (
        "etalis: warning: plain.jsonl: no event was made of it; the mapping uses prize, which the first line does not "
        "have; did you mean price?\n"
    )
    done = folder.etalis("run", "rising.rq", "--stream", "plain.jsonl", "--context", "slip.json")
    assert "plain.jsonl: no event was made of it; the context gives no meaning to any of company, price" in done.stderr
    # A record without a subject, or with nothing beside it, is counted.
    for name, text in (
        ("some.jsonl", PLAIN + '{"time": 4, "price": 13}\n'),
        ("some.csv", "time,company,price\n1,acme,10\n2,,11\n3,acme,\n"),
    ):
        folder.write(name, text)
        done = folder.etalis("run", "rising.rq", "--stream", name, "--mapping", "m.toml")
        count = "1 record" if name == "some.jsonl" else "2 records"
        assert done.stderr == f"etalis: {count} made no event: no subject, or nothing beside it\n"
    # Without its time there is no event.
    folder.write("slip.toml", folder.etalis("map", "plain.jsonl").stdout.replace("{time}", "{tme}"))
    done = folder.etalis("run", "rising.rq", "--stream", "plain.jsonl", "--mapping", "slip.toml", code=1)
    assert done.stderr.startswith(
        "etalis: plain.jsonl:1: the mapping takes the time from tme, which has no value here\n"
    )
    assert done.stderr.endswith("\n  did you mean time?\n")
    # A mapping that names its stream is for it, also where nothing else says what its lines are.
    streams = ("--stream", "a=-", "--stream", "b=ticks.jsonl", "--mapping", "a=m.toml")
    assert rows(folder.etalis("run", "rising.rq", *streams, input=PLAIN.replace("acme", "bolt")).stdout)[0] == RISES[0]


def test_the_ending_of_the_sink_says_the_format(folder: Folder) -> None:
    for name in ("m.csv", "m.trig", "m.parquet", "m.arrow", "m.sqlite", "m.jsonl"):
        folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", name)
    heads = {path.name: path.read_bytes()[:6] for path in folder.path.glob("m.*")}
    assert heads == {
        "m.csv": b"compan", "m.trig": b"PREFIX", "m.parquet": b"PAR1\x15\x04", "m.arrow": b"ARROW1",
        "m.sqlite": b"SQLite", "m.jsonl": b'{"quer',
    }  # fmt: skip
    told = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--sink", "m.xlsx").stderr
    assert told == ("etalis: warning: no format has the ending .xlsx, so m.xlsx will be jsonl; --format says another\n")


@pytest.mark.parametrize(("name", "format"), [("m.parquet", "csv"), ("m.csv", "parquet"), ("m.db", "jsonl")])
def test_a_format_that_the_name_of_a_table_denies_is_refused(folder: Folder, name: str, format: str) -> None:
    asked = ("run", "rising.rq", "--stream", "ticks.jsonl", "-f", format, "-o", name)
    told = folder.etalis(*asked, code=2).stderr
    assert told.startswith(f"etalis: --sink {name} is named as ")
    assert not (folder.path / name).exists()


def test_a_bad_line_stops_the_run_with_its_place(folder: Folder) -> None:
    folder.write("bad.jsonl", tick(1, 10) + "{nonsense\n" + tick(3, 12))
    done = folder.etalis("run", "rising.rq", "--stream", "bad.jsonl", code=1)
    assert "bad.jsonl:2: this is not JSON" in done.stderr


def test_the_matches_of_the_events_before_a_bad_line_are_out_before_the_run_stops(folder: Folder) -> None:
    folder.write("bad.jsonl", tick(1, 10) + tick(3, 12) + tick(5, 11) + "{nonsense\n" + tick(7, 13))
    done = folder.etalis("run", "rising.rq", "--stream", "bad.jsonl", code=1)
    assert rows(done.stdout) == RISES
    assert "bad.jsonl:4: this is not JSON" in done.stderr


def test_what_holds_at_the_end_of_the_stream_is_not_said_where_it_cannot_be_read(folder: Folder) -> None:
    folder.write("any.rq", "ASK { ?c :volume ?x }")
    folder.write("bad.jsonl", tick(1, 10) + "{nonsense\n")
    assert folder.etalis("run", "any.rq", "--stream", "bad.jsonl", code=1).stdout == ""
    assert '"boolean"' in folder.etalis("run", "any.rq", "--stream", "ticks.jsonl").stdout


def test_a_bad_line_can_be_skipped_and_is_kept(folder: Folder) -> None:
    folder.write("bad.jsonl", tick(1, 10) + "{nonsense\n" + tick(3, 12))
    done = folder.etalis(
        "run", "rising.rq", "--stream", "bad.jsonl", "--on-error", "skip", "--dead-letters", "dead.jsonl"
    )
    assert rows(done.stdout) == RISES[:1]
    assert "1 part of the input could not be read" in done.stderr
    assert json.loads(folder.read("dead.jsonl"))["line"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["rising.rq"], 2, "--stream"),
        (["nowhere.rq", "--stream", "ticks.jsonl"], 2, "there is no query file nowhere.rq"),
        (["risng.rq", "--stream", "ticks.jsonl"], 2, "there is no query file risng.rq; did you mean rising.rq?"),
        ([".", "--stream", "ticks.jsonl"], 2, ". is a folder, not a query file: --queries . takes all .rq files in it"),
        (["SELECT ?x {}", "--stream", "ticks.jsonl"], 2, "write it after -q"),
        (["rising.rq", "--stream", "nowhere.nq"], 1, "nowhere.nq: there is no such file"),
        (["rising.rq", "--stream", "./tcks.jsonl"], 1, "no such file\n  did you mean ./ticks.jsonl?"),
        (["rising.rq", "--stream", "ticks.jsonl", "-m", "nowhere.toml"], 1, "check the path of the mapping"),
        (["rising.rq", "--stream", "nowhere.csv"], 1, "nowhere.csv: there is no such file"),
        (["rising.rq", "--stream", "*.nowhere"], 1, "no file matches"),
        (
            ["rising.rq", "--stream", "ftp://host/file"],
            2,
            "known are files, patterns, -, http(s)://, tcp://, kafka://, s3://, gs://, hdfs://, delta:, iceberg:, mqtt://",
        ),
        (["rising.rq", "--stream", "http://127.0.0.1:9/s/"], 1, "cannot be reached"),
        (["rising.rq", "--stream", "ticks.jsonl", "--sink", "http://127.0.0.1:9/s/"], 1, "cannot be reached"),
        (["rising.rq", "--stream", ""], 2, "--stream is empty"),
        (["rising.rq", "--stream", "."], 1, "this is a folder"),
        (["rising.rq", "--stream", "ticks.ttl", "--mapping", "m.toml"], 2, "is for CSV, JSON lines, Parquet"),
        (["-", "--stream", "-"], 2, "standard input can be read once only"),
        (["rising.rq", "--stream", "ticks.jsonl", "--lateness", "soon"], 2, "expected a duration such as 10s"),
        (["rising.rq", "--stream", "ticks.jsonl", "--speed", "fast"], 2, "a speed is 10x"),
        (["rising.rq", "--stream", "ticks.jsonl", "--background", "no.ttl"], 1, "no.ttl"),
        (["rising.rq", "--stream", "ticks.jsonl", "--background-stream", "no.jsonl"], 1, "there is no such file"),
        (["rising.rq", "--stream", "ticks.jsonl", "--timeline", "t.bmp"], 2, ".png, .svg, .pdf"),
        (["rising.rq", "--stream", "ticks.jsonl", "--sink", "no/where.jsonl"], 1, "the folder does not exist"),
        (
            ["rising.rq", "--stream", "ticks.jsonl", "--sink", "influx://me@h/x"],
            1,
            "etalis: influx://me@h/x: no connector writes to this kind of address\n  known are files, folders, ",
        ),
        (
            ["rising.rq", "--stream", "kafka://me@h/t"],
            1,
            "etalis: kafka://me@h/t: the address of a topic has no place for a user\n  put sasl.username=",
        ),
        (["rising.rq", "--stream", "ticks.jsonl", "--format", "csv", "--explain-matches"], 2, "no place in csv"),
        (["rising.rq", "rising.rq", "--stream", "ticks.jsonl"], 2, "two queries are named rising"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_message(folder: Folder, arguments: list[str], code: int, said: str) -> None:
    done = folder.etalis("run", *arguments, code=code)
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("option", "address", "place"),
    [
        ("--stream", "redis://me:pw@h/0?stream=t", "set REDIS_PASSWORD"),
        ("--stream", "prices=redis://:pw@h/0?stream=t", "set REDIS_PASSWORD"),
        ("--stream", "kafka://me:pw@h/t", "add ?config=FILE"),
        ("--stream", "nats://me:pw@h/t", "it belongs in the environment or in a file"),
        ("--sink", "postgresql://me:pw@h/shop", "set PGPASSWORD or write it to ~/.pgpass"),
        ("--sink", "postgresql://h/shop?password=pw&table=t", "set PGPASSWORD or write it to ~/.pgpass"),
        ("--sink", "https://me:pw@h/alerts/", "set ETALIS_TOKEN"),
        ("--background", "postgresql://me:pw@h/shop?table=t", "set PGPASSWORD or write it to ~/.pgpass"),
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_shown(
    folder: Folder, option: str, address: str, place: str
) -> None:
    given = [] if option == "--stream" else ["--stream", "ticks.jsonl"]
    done = folder.etalis("run", "rising.rq", *given, option, address, code=2)
    assert f"{option}: a password does not belong in an address, where others see it\n" in done.stderr
    assert place in done.stderr
    assert "pw" not in done.stdout + done.stderr


def test_a_fault_in_a_query_is_pointed_at(folder: Folder) -> None:
    folder.write("bad.rq", "SELECT ?x WHERE { ?x :p")
    done = folder.etalis("run", "bad.rq", "--stream", "ticks.jsonl", code=2)
    assert "bad.rq:1:24: error" in done.stderr
    assert "^" in done.stderr


def test_an_answer_has_no_place_beside_rows(folder: Folder) -> None:
    folder.write("ask.rq", "ASK { ?c :price ?x }")
    done = folder.etalis("run", "ask.rq", "rising.rq", "--stream", "ticks.jsonl", "--format", "csv", code=2)
    assert "the answer of ask has no place beside rows in csv" in done.stderr
    text = folder.etalis("run", "ask.rq", "--stream", "ticks.jsonl", "--format", "json").stdout
    assert json.loads(text) == {"head": {}, "boolean": True}


def test_a_limit_that_is_reached_is_a_failure_with_advice(folder: Folder) -> None:
    folder.write("count.rq", "CONSTRUCT { ?c :price ?y } WHERE { ?c :price ?x BIND (?x + 1 AS ?y) }")
    done = folder.etalis("run", "count.rq", "--stream", "ticks.jsonl", code=1)
    assert "did not end within 100000 rounds" in done.stderr
    done = folder.etalis("run", "count.rq", "--stream", "ticks.jsonl", "--limit", "rounds=50", code=1)
    assert "did not end within 50 rounds" in done.stderr
    assert "raise the limit: --limit rounds=N" in done.stderr


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("goal=3", "there is no such limit; there are goals, derivations, "),
        ("goals=2.5", "it is a whole number, found 2.5"),
        ("goals=0", "the limit goals must be above 0, found 0"),
        ("goals", "a limit is NAME=NUMBER"),
    ],
)
def test_a_limit_that_cannot_be_is_wrong_use(folder: Folder, limit: str, told: str) -> None:
    assert told in folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--limit", limit, code=2).stderr


def test_constructed_triples_have_no_place_in_csv_and_that_is_said(folder: Folder) -> None:
    folder.write("up.rq", "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y > ?x)")
    folder.write("ups.rq", "SELECT ?y WHERE { ?c :up ?y }")
    done = folder.etalis("run", "up.rq", "ups.rq", "--stream", "ticks.jsonl", "--format", "csv")
    assert done.stdout.split() == ["y,start,end", "12,1,3", "11,1,5"]
    assert "up: constructed triples have no place in csv" in done.stderr
    assert (
        "no place for triples"
        in folder.etalis("run", "up.rq", "--stream", "ticks.jsonl", "--format", "csv", code=2).stderr
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "this is not JSON"),
        ('{"add": ":a :b :c ."}', "this is not an update"),
        ('{"time": 1, "add": ":a :b"}', "this is not Turtle"),
        ('{"time": 1, "add": "[] :b :c ."}', "use an IRI"),
        ('{"time": true, "add": ":a :b :c ."}', "time is a number or a dateTime"),
        ('{"time": 2, "add": ":a :b :c ."}\n{"time": 1, "add": ":a :b :c ."}', "earlier than the one before"),
    ],
)
def test_a_bad_update_of_the_background_stops_the_run_with_its_place(folder: Folder, line: str, said: str) -> None:
    folder.write("u.jsonl", line)
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--background-stream", "u.jsonl", code=1)
    assert "u.jsonl:" in done.stderr
    assert said in done.stderr
