"""``etalis explain`` and ``etalis check``: the rules of a program, and what is wrong with it."""

from __future__ import annotations

import ast
import json

import pytest

from tests.cli.conftest import Folder


def test_explain_prints_the_rules_in_the_notation_of_the_paper(folder: Folder) -> None:
    text = folder.etalis("explain", "rising.rq").stdout
    assert "SEQ, on ?company, T4 − T1 ≤ PT1H, ?high > ?low" in text
    assert "triple(X0, :price, X1)[T1,T2] ← assert(goal(triple(X0, :price, X2)," in text
    assert "windows\n" in text
    assert "rising: by ?company" in text


def test_explain_as_json_dot_and_code(folder: Folder) -> None:
    data = json.loads(folder.etalis("explain", "rising.rq", "--json").stdout)
    assert [query["query"] for query in data["queries"]] == ["rising"]
    dot = folder.etalis("explain", "rising.rq", "--dot").stdout
    assert dot.startswith("digraph")
    assert dot.rstrip().endswith("}")
    code = folder.etalis("explain", "rising.rq", "--code").stdout
    assert ast.parse(code).body


def test_the_policy_changes_the_rules(folder: Folder) -> None:
    assert "policy recent" in folder.etalis("explain", "rising.rq", "--policy", "recent").stdout


def test_a_query_may_come_from_standard_input(folder: Folder) -> None:
    assert "query q1" in folder.etalis("explain", "-", input="ASK { ?a ?b ?c }").stdout


def test_check_is_content_with_a_good_query(folder: Folder) -> None:
    done = folder.etalis("check", "rising.rq")
    assert (done.stdout, done.stderr) == ("", "no errors, no warnings in rising\n")


def test_check_shows_the_errors_of_all_files_at_once(folder: Folder) -> None:
    folder.write("a.rq", "SELECT ?x WHERE { ?x :p")
    folder.write("b.rq", "SELECT ?x WHERE { ?x nope:p ?y }")
    done = folder.etalis("check", "a.rq", "rising.rq", "b.rq", code=2)
    assert "a.rq:1:24: error" in done.stdout
    assert "b.rq:1:22: error" in done.stdout
    assert done.stderr == "2 errors\n"


def test_what_grows_without_bound_is_doubtful(folder: Folder) -> None:
    folder.write("w.rq", "SELECT ?x WHERE { ?c :p ?x } SEQ { ?c :p ?y }")
    done = folder.etalis("check", "w.rq")
    assert "w.rq:1:" in done.stdout
    assert "warning" in done.stdout
    assert "WITHIN" in done.stdout


def test_a_warning_is_no_failure(folder: Folder) -> None:
    folder.write("w.rq", "SELECT ?x WHERE { ?y :p ?z }")
    done = folder.etalis("check", "w.rq")
    assert "w.rq:1:8: warning: ?x is selected but nothing in WHERE gives it a value" in done.stdout
    assert done.stderr == "1 warning\n"


def test_check_as_json_for_editors(folder: Folder) -> None:
    folder.write("a.rq", "SELECT ?x WHERE { ?x :p")
    found = json.loads(folder.etalis("check", "a.rq", "--json", code=2).stdout)["diagnostics"]
    assert [(d["severity"], d["source"], d["line"], d["column"]) for d in found] == [("error", "a.rq", 1, 24)]


@pytest.mark.parametrize("command", ["explain", "check"])
def test_what_is_no_query_file_is_a_usage_error(folder: Folder, command: str) -> None:
    (folder.path / "latin.rq").write_bytes(b"SELECT ?x\nWHERE { ?x :p '\xe9' }")
    assert "there is no query file no.rq" in folder.etalis(command, "no.rq", code=2).stderr
    assert "latin.rq, line 2: a query is UTF-8 text" in folder.etalis(command, "latin.rq", code=2).stderr


def test_without_a_command_the_usage_is_shown(folder: Folder) -> None:
    assert "etalis COMMAND" in folder.etalis(code=2).stdout
    assert "run queries over streams" in folder.etalis("--help").stdout
    assert folder.etalis("--version").stdout.startswith("etalis-py 0.")


def test_explain_says_what_runs_where_on_spark(folder: Folder) -> None:
    folder.write("last.rq", "SELECT ?company (COUNT(*) AS ?n) WHERE { ?company :up ?x } WITHIN PT1H GROUP BY ?company")
    folder.write("up.rq", "CONSTRUCT { ?c :up ?y } WHERE { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x)")
    text = folder.etalis("explain", "rising.rq", "up.rq", "last.rq", "--engine", "spark", "--shards", "3").stdout
    placed = text.partition("\non Spark, with 3 shards\n")[2].splitlines()
    assert placed[0] == "  level 1, 3 shards: rising, up"
    assert placed[2] == "    no slices of time: up: nothing bounds how far two solutions of e1 lie apart"
    assert placed[3].startswith("  level 1, one shard: last; computes up as well")
    assert placed[4].startswith("    because a group that solutions leave with time")


def test_explain_says_what_slices_of_time_cost_on_spark(folder: Folder) -> None:
    folder.write("pairs.rq", "SELECT * { { ?a :fails ?x } SEQ { ?b :fails ?y } } WITHIN PT10S")
    text = folder.etalis("explain", "pairs.rq", "--engine", "spark", "--shards", "4").stdout
    assert text.endswith(
        "    a batch: 4 slices of time, reading the PT10S before each again: 0.83% of an hour is read twice\n"
    )


def test_explain_says_that_updates_leave_no_slices_of_time(folder: Folder) -> None:
    folder.write("pairs.rq", "SELECT * { { ?a :fails ?x } SEQ { ?b :fails ?y } } WITHIN PT10S")
    text = folder.etalis("explain", "pairs.rq", "--engine", "spark", "--updates", "--shards", "4").stdout
    assert text.endswith("    no slices of time: the background changes while the batch runs\n")
    done = folder.etalis("explain", "pairs.rq", "--updates", code=2)
    assert "--updates says how the program runs on Spark" in done.stderr


def test_explain_knows_the_background(folder: Folder) -> None:
    folder.write("schema.ttl", "PREFIX : <http://example.org/> PREFIX r: <http://www.w3.org/2000/01/rdf-schema#> "
                 ":cost r:subPropertyOf :price .")  # fmt: skip
    with_it = folder.etalis("explain", "rising.rq", "--background", "schema.ttl").stdout
    assert ":cost" not in folder.etalis("explain", "rising.rq").stdout
    assert ":cost" in with_it


def test_what_explain_cannot_say_of_spark_is_refused(folder: Folder) -> None:
    done = folder.etalis("explain", "rising.rq", "--engine", "spark", "--json", code=2)
    assert "--engine spark says in words what runs where" in done.stderr
