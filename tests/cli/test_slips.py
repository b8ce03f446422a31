"""What is probably a slip of the pen is told on standard error, and changes no exit code."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import RISING, Folder, tick


def test_names_that_never_occur_are_told_once_and_the_exit_code_stays(folder: Folder) -> None:
    folder.write("slip.rq", "SELECT ?x WHERE { ?c :pirce ?x }")
    lines = [{"time": i, "triples": f":acme :price {i} ."} for i in range(1, 4)]
    folder.write("ticks.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    done = folder.etalis("run", "slip.rq", "--stream", "ticks.jsonl")
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr == (
        "etalis: warning: the predicate :pirce never occurred; did you mean :price? (spelt a little differently)\n"
    )


def test_what_can_never_match_is_told_where_nothing_matched(folder: Folder) -> None:
    folder.write("turned.rq", "SELECT ?c WHERE { 10 :price ?c }")
    done = folder.etalis("run", "turned.rq", "rising.rq", "--stream", "ticks.jsonl")
    assert done.stderr == ""  # the other query has matches
    done = folder.etalis("run", "turned.rq", "--stream", "ticks.jsonl")
    assert (done.stdout, done.returncode) == ("", 0)
    assert done.stderr.splitlines()[0] == "turned.rq:1:19: warning: a literal is the subject of no triple"
    assert done.stderr.count("warning") == 1


def test_a_stream_that_no_query_reads_is_told(folder: Folder) -> None:
    folder.write("named.rq", "SELECT ?x WHERE { STREAM :ticks { ?c :price ?x } }")
    folder.write("ticks.jsonl", json.dumps({"time": 1, "triples": ":acme :price 1 ."}) + "\n")
    done = folder.etalis("run", "named.rq", "--stream", "tick=ticks.jsonl")
    assert (done.stdout, done.returncode) == ("", 0)
    assert "no query reads the stream :tick; the queries read :ticks; did you mean :ticks?" in done.stderr
    assert "no event came of the stream :ticks; did you mean :tick?" in done.stderr


@pytest.mark.parametrize(
    ("option", "file"),
    [
        ("--sink", "ticks.jsonl"),
        ("--sink", "./rising.rq"),
        ("--sink", "firms.ttl"),
        ("--dead-letters", "ticks.jsonl"),
        ("--timeline", "picture.svg"),
    ],
)
def test_no_output_is_written_over_an_input(folder: Folder, option: str, file: str) -> None:
    folder.write("firms.ttl", ":acme a :Firm .")
    folder.write("picture.svg", RISING)
    before = folder.read(file)
    queries = ["rising.rq", "picture.svg"] if option == "--timeline" else ["rising.rq"]
    done = folder.etalis("run", *queries, "-s", "ticks.jsonl", "-b", "firms.ttl", "-f", "jsonl", option, file, code=2)
    assert done.stderr == f"etalis: {option} {file}: the run reads this file: name another one\n"
    assert folder.read(file) == before


@pytest.mark.parametrize("other", ["out.jsonl", "./out.jsonl", "linked.jsonl"])
@pytest.mark.parametrize("option", ["--dead-letters", "--timeline"])
def test_no_output_is_written_over_another_one(folder: Folder, option: str, other: str) -> None:
    out = folder.write("out.jsonl", "kept\n")
    out.with_name("linked.jsonl").symlink_to(out)
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--sink", "out.jsonl", option, other, code=2)
    assert done.stderr == f"etalis: {option} {other}: --sink out.jsonl writes this file: name another one\n"
    assert folder.read("out.jsonl") == "kept\n"


def test_an_output_that_is_a_link_to_itself_is_told(folder: Folder) -> None:
    loop = folder.path / "loop.jsonl"
    loop.symlink_to(loop)
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--sink", "loop.jsonl", code=1)
    assert done.stderr == (
        "etalis: loop.jsonl: this is a link that leads back to itself\n  remove the link, or choose another place\n"
    )


def test_several_outputs_may_go_nowhere(folder: Folder) -> None:
    folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--sink", "/dev/null", "--dead-letters", "/dev/null")


def test_a_folder_for_dead_letters_that_is_not_there_is_told_before_the_run(folder: Folder) -> None:
    line = ("run", "rising.rq", "-s", "ticks.jsonl", "--dead-letters", "nowhere/dead.jsonl")
    done = folder.etalis(*line, code=1)
    said = "etalis: nowhere/dead.jsonl: the folder does not exist\n  create it or choose another place\n"
    assert (done.stdout, done.stderr) == ("", said)


def test_a_folder_in_the_place_of_dead_letters_is_told_before_the_run(folder: Folder) -> None:
    (folder.path / "dead").mkdir()
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--dead-letters", "dead", code=1)
    assert (done.stdout, done.stderr) == ("", "etalis: dead: this is a folder\n  name a file, such as one in it\n")


@pytest.mark.parametrize("option", ["--sink", "--dead-letters", "--timeline", "--checkpoint"])
def test_an_output_whose_name_is_empty_is_told(folder: Folder, option: str) -> None:
    """As where a variable of the shell has no value; without dead letters, what they were for would be lost."""
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", option, "", code=2)
    kind = "folder" if option == "--checkpoint" else "file"
    assert done.stderr == f"etalis: {option} is empty: name a {kind}, or leave the option out\n"


@pytest.mark.parametrize(
    ("options", "text", "left_out"),
    [
        (("--on-error", "skip"), "{nonsense\n", ""),
        (
            ("--keep-order",),
            tick(5, 11) + tick(3, 12),
            "etalis: 1 event came too late and was left out; --lateness D allows for more\n",
        ),
    ],
)
def test_no_one_is_sent_to_dead_letters_that_could_not_be_written(
    folder: Folder, options: tuple[str, ...], text: str, left_out: str
) -> None:
    folder.write("bad.jsonl", text)
    done = folder.etalis("run", "rising.rq", "-s", "bad.jsonl", *options, "--dead-letters", "/dev/full", code=1)
    assert done.stderr == (
        f"{left_out}etalis: /dev/full: no space left on the device; what was written so far is not complete\n"
        "  free some space or choose another place for the output, then run again\n"
    )


def test_a_table_that_is_nearly_flat_is_told_which_column_it_lacks(folder: Folder) -> None:
    parquet.write_table(pa.table({"end": [1], "s": [":a"], "p": [":p"]}), folder.path / "doors.parquet")
    done = folder.etalis("run", "rising.rq", "-s", "doors.parquet", code=1)
    assert done.stderr == (
        "etalis: doors.parquet: this table has the columns end, s, p; it has no o, so its rows are not triples, and no "
        "mapping says what they mean\n"
        "  add it; the columns of triples are end, s, p, o, and start, stream and graph where there are any\n"
    )


def test_a_background_of_no_known_ending_tells_those_that_there_are(folder: Folder) -> None:
    folder.write("readings.txt", "sensor,value\n")
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "-b", "readings.txt", code=1)
    assert done.stderr == (
        "etalis: readings.txt: the ending .txt is not that of an RDF syntax\n"
        "  background knowledge is in files that end in .ttl, .turtle, .nt, .nq, .trig, .rdf, .owl, .xml, .jsonld, "
        ".json, .n3, .trix, .hext (.gz may follow), or in .lp for an answer-set program; a table is given as it "
        "is, as background=…, or by reference_table(…)\n"
    )


# --- check, with a stream -------------------------------------------------------------


def test_check_tells_of_what_no_event_of_a_stream_has(folder: Folder) -> None:
    folder.write("logins.csv", "at,user,does\n1,ann,login\n2,bob,logout\n")
    line = ("check", "-q", 'SELECT ?u { EVENT { ?u :does "Login" } }', "-s", "logins.csv")
    told = 'no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)'
    done = folder.etalis(*line)
    assert done.stdout == f"warning: {told}\n"
    assert done.stderr.endswith("\n1 warning\n")
    assert json.loads(folder.etalis(*line, "--json").stdout)["unmet"] == [told]
    right = folder.etalis("check", "-q", 'SELECT ?u { EVENT { ?u :does "login" } }', "-s", "logins.csv")
    assert right.stdout == ""
    assert right.stderr.endswith("no errors, no warnings in q1\n")


def test_check_knows_the_background_of_a_stream(folder: Folder) -> None:
    folder.write("logins.csv", "at,user,does\n1,ann,login\n")
    folder.write("staff.ttl", "@prefix : <http://example.org/> . :ann :of :sales .")
    line = ("check", "-q", "SELECT ?u { EVENT { ?u :does ?x } ?u :of ?y }", "-s", "logins.csv")
    assert "the predicate :of never occurred" in folder.etalis(*line).stdout
    assert "never occurred" not in folder.etalis(*line, "-b", "staff.ttl").stdout


def test_check_refuses_a_stream_without_an_end(folder: Folder) -> None:
    line = ("check", "-q", "SELECT ?u { ?u :does ?x }", "-s", "tcp://localhost:1")
    assert "--stream tcp://localhost:1 has no end" in folder.etalis(*line, code=2).stderr


STATES = "time,door,status,open\n1,d1,ok,True\n2,d1,warn,False\n3,d2,Ok,True\n"


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("?d :open true", 'no event had :open true; did you mean "True"?'),
        ("?d :open ?x FILTER (?x = false)", 'no event had :open false; did you mean "False"?'),
        (
            "?d :open ?x FILTER (?x)",
            'values of :open are texts, as "True": ?x is true for any text but ""; compare it, as in ?x = "True"',
        ),
        ("?d :open ?x FILTER (!?x)", 'values of :open are texts, as "True": ?x is true for any text but ""'),
        ('?d :status ?x FILTER (?x IN ("OK", "Error"))', 'no event had :status "OK"; did you mean "Ok"?'),
        ("?d :status :ok", 'no event had :status :ok; did you mean "ok"? (one is an IRI, the other a text)'),
        ('?d :open ?x FILTER (?x = "True")', ""),
        ('?d :status ?x FILTER (?x IN ("OK", "warn"))', ""),
    ],
)
def test_truth_values_and_lists_that_are_spelt_otherwise(folder: Folder, where: str, told: str) -> None:
    folder.write("doors.csv", STATES)
    query = f"SELECT ?d {{ {where} }}"
    errors = folder.etalis("run", "-q", query, "-s", "doors.csv", "--time", "time", "--subject", "door").stderr
    assert ("etalis: warning: " + told in errors) if told else errors == ""


def test_a_truth_value_is_compared_as_it_is_spelt(folder: Folder) -> None:
    folder.write("doors.csv", STATES.replace("True", "true").replace("False", "false"))
    query = "SELECT ?d { ?d :open ?x FILTER (?x) }"
    line = ("run", "-q", query, "-s", "doors.csv", "--time", "time", "--subject", "door")
    assert 'is true for any text but ""; compare it, as in ?x = "true"\n' in folder.etalis(*line).stderr


def test_zeros_and_ones_are_no_truth_values(folder: Folder) -> None:
    folder.write("doors.csv", "time,door,open\n1,d1,0\n2,d1,1\n")
    query = "SELECT ?d { ?d :open true }"
    errors = folder.etalis("run", "-q", query, "-s", "doors.csv", "--time", "time", "--subject", "door").stderr
    assert "no event had :open true; did you mean 1? (one is an xsd:boolean and the other an xsd:integer)" in errors


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04" + bytes(range(64)), "this is a workbook, or another archive"),
        ("time,c\n1,a\n".encode("utf-16"), "this is a text in UTF-16"),
        (b"time,c,x\n1,a,2\n,b,3\n", "t.csv:3: the time is empty"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--time", "time", "--subject", "c")])
def test_a_csv_that_is_none(folder: Folder, data: bytes, said: str, options: tuple[str, ...]) -> None:
    folder.write("t.csv", "").write_bytes(data)
    done = folder.etalis("run", "-q", "SELECT * { ?s ?p ?o }", "-s", "t.csv", *options, code=1)
    assert said in done.stderr


def test_a_json_file_of_which_no_row_can_be_read_is_told_why(folder: Folder) -> None:
    for name, text in (("a.json", '[{"t": 1, "a": NaN}]'), ("b.jsonl", '{"t": 1, "a": NaN}\n')):
        folder.write(name, text)
        told = folder.etalis("run", "-q", "SELECT * { ?s ?p ?o }", "-s", name, "--time", "t", code=1).stderr
        assert ("no rows found" in told, "JSON has no NaN and no Infinity: write null" in told) == (False, True)


def test_a_table_of_which_no_column_has_a_name_is_told(folder: Folder) -> None:
    for name in ("t.csv", "b.csv"):
        folder.write(name, ",,\n1,2,3\n")
    folder.write("s.jsonl", '{"time": 1, "triples": ":c :p 1 ."}\n')
    query = ("run", "-q", "SELECT * { ?s ?p ?o }", "-s")
    for name, asked in (("t.csv", ("t.csv",)), ("b.csv", ("s.jsonl", "-b", "b.csv"))):
        assert f"{name}: no column has a name" in folder.etalis(*query, *asked, code=1).stderr
    for more in ((), ("--background",)):
        assert "etalis: t.csv: no column has a name" in folder.etalis("map", "t.csv", *more, code=1).stderr


@pytest.mark.parametrize("more", [(), ("-m", "m.toml"), ("--time", "t"), ("--executor", "columns")])
@pytest.mark.parametrize("depth", [400, 5000])
def test_json_that_is_nested_deeply_is_read_or_refused_with_its_line(
    folder: Folder, depth: int, more: tuple[str, ...]
) -> None:
    lists, objects = "[" * depth + "]" * depth, '{"c":' * depth + "1" + "}" * depth
    folder.write("m.toml", 'time = "{t}"\n[[triple]]\nsubject = ":c"\npredicate = ":p"\nobject = "{a}"\n')
    rows = ['{"t": 1, "a": 1}', f'{{"t": 2, "b": {lists}}}', f'{{"t": 3, "b": {objects}}}', '{"t": 4, "a": 4}']
    folder.write("s.jsonl", "".join(f"{row}\n" for row in rows))
    run = ("run", "-q", "SELECT ?a { { ?s :p ?a } UNION { ?s :a ?a } }", "-s", "s.jsonl", *more)
    done = folder.etalis(*run, "--on-error", "skip")
    assert [json.loads(line)["bindings"]["a"]["value"] for line in done.stdout.splitlines()] == ["1", "4"]
    told = folder.etalis(*run, code=1).stderr
    assert ("s.jsonl:2: this is nested too deeply" if depth > 1000 else "s.jsonl:2: ") in told


def test_a_context_that_is_nested_deeply_is_refused(folder: Folder) -> None:
    folder.write("c.json", '{"a": ' + "[" * 5000 + "]" * 5000 + "}")
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--context", "c.json", code=1)
    assert done.stderr == "etalis: c.json: the context is nested too deeply\n"


@pytest.mark.parametrize(
    ("name", "option", "told"),
    [
        ("m.toml", "--mapping", "the mapping is no text in UTF-8"),
        ("a.lp", "--background", "the program is no text in UTF-8"),
        ("b.ttl", "--background", "this is a text in UTF-16"),
    ],
)
def test_a_text_of_another_encoding_is_told_with_what_to_do(folder: Folder, name: str, option: str, told: str) -> None:
    folder.write(name, "").write_bytes(":a :b :c .".encode("utf-16"))
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", option, name, code=1)
    assert done.stderr == f"etalis: {name}: {told}\n  save it in UTF-8, or convert it: iconv -f UTF-16 -t UTF-8 FILE\n"


@pytest.mark.parametrize(("encoding", "known"), [("utf-16", "UTF-16"), ("latin-1", "WINDOWS-1252")])
def test_a_query_of_another_encoding_is_told_with_what_to_do(folder: Folder, encoding: str, known: str) -> None:
    folder.write("q.rq", "").write_bytes('\nSELECT ?x { ?x :name "Zoë" }'.encode(encoding))
    done = folder.etalis("check", "q.rq", code=2)
    assert re.fullmatch(
        r"etalis: q.rq, line \d: a query is UTF-8 text, this is not; save it in UTF-8, or convert it: "
        f"iconv -f {known} -t UTF-8 FILE\n",
        done.stderr,
    )


@pytest.mark.parametrize(
    "options", [("-o", "a.csv", "--sink", "b.csv"), ("--until", "3", "--until", "4"), ("-f", "csv", "--format=json")]
)
def test_an_option_with_one_value_that_has_two_is_refused(folder: Folder, options: tuple[str, ...]) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", *options, code=2)
    assert f"{options[2].partition('=')[0]} is given twice, and takes one value: leave one of them out" in done.stderr
    assert not [*folder.path.glob("*.csv")]


def test_an_option_may_be_given_twice_with_one_value(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "-f", "csv", "--format", "csv")
    assert done.stdout.startswith("company,low,high")


def test_a_file_with_an_empty_list_has_no_events(folder: Folder) -> None:
    folder.write("none.json", "[ ]\n")
    done = folder.etalis("run", "rising.rq", "--stream", "none.json")
    assert (done.stdout, done.returncode) == ("", 0)


def test_a_run_that_ends_before_it_starts_is_told(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "--stream", "ticks.jsonl", "--start", "5", "--until", "3")
    assert "the run ends at 3, before it starts, at 5: nothing is between them" in done.stderr


def test_only_the_folder_of_a_checkpoint_is_required(folder: Folder) -> None:
    done = folder.etalis("checkpoint", code=2)
    assert done.stderr.endswith("the following arguments are required: DIR\n")
