"""``etalis run --trace`` shows what the nodes of a query do, ``--executor`` chooses or compares what runs them."""

from __future__ import annotations

from typing import Literal

import pytest

from etalis_py import Engine, event
from etalis_py.cli.both import Both
from etalis_py.cli.errors import Failure
from tests.cli.conftest import RISES, Folder, rows, tick

PAIRS = "SELECT ?c ?x ?y { { ?c :price ?x } SEQ { ?c :price ?y } FILTER (?y > ?x) } WITHIN 10 s"
TICKS = [tick(1, 1), tick(2, 3), tick(2, 4, "bolt"), tick(20, 5), tick(21, 1, "bolt"), tick(22, 6)]


def traced(folder: Folder, query: str, *options: str) -> list[str]:
    """The rows of a trace, each without what is 0."""
    folder.write("t.jsonl", "".join(TICKS))
    done = folder.etalis("run", "-q", query, "-s", "t.jsonl", "-f", "csv", "--trace", "q1", *options)
    counts = [line.split() for line in done.stderr.splitlines() if line[0].isdigit()]
    return [
        " ".join([*words[:2], *(f"{a} {b}" for a, b in zip(words[2::2], words[3::2], strict=True) if b != "0")])
        for words in counts
    ]


def test_a_trace_has_the_nodes_and_what_they_do_at_each_instant(folder: Folder) -> None:
    assert traced(folder, PAIRS) == [
        "1 e1 in 1 out 1",
        "1 g1 in 2 inserted 1",
        "2 e1 in 2 out 2",
        "2 g1 in 4 out 1 inserted 2",
        "20 e1 in 1 out 1",
        "20 g1 in 2 inserted 1 expired 3",
        "21 e1 in 1 out 1",
        "21 g1 in 2 inserted 1",
        "22 e1 in 1 out 1",
        "22 g1 in 2 out 1 inserted 1",
    ]


def test_a_consuming_policy_takes_the_goals_that_matches_use_up(folder: Folder) -> None:
    taken = [row for row in traced(folder, PAIRS + " USING POLICY recent") if "taken" in row]
    assert taken == ["2 g1 in 4 out 1 inserted 2 taken 1", "22 g1 in 2 out 1 inserted 1 taken 1"]


def test_an_absence_reports_at_its_deadline(folder: Folder) -> None:
    found = traced(folder, "SELECT ?c { { ?c :price 6 } SEQ NOT { ?c :price ?y } WITHIN 5 s }")
    assert [row for row in found if row.startswith(("22", "27"))] == [
        "22 e1 in 1 out 1",
        "22 e2 in 1 out 1",
        "22 g1 in 2 inserted 1",
        "27 g1 out 1 taken 1",
    ]


def test_what_falls_due_between_events_has_an_instant_of_its_own(folder: Folder) -> None:
    found = traced(folder, "SELECT ?c { { ?c :price ?x } SEQ NOT { ?c :price ?y } WITHIN 5 s }")
    assert [row for row in found if " g1 " in row][:4] == [
        "1 g1 in 2 inserted 1",
        "2 g1 in 4 inserted 2 taken 1",
        "7 g1 out 2 taken 2",
        "20 g1 in 2 inserted 1",
    ]


def test_events_that_are_late_within_the_lateness_are_traced_in_order(folder: Folder) -> None:
    in_order = traced(folder, PAIRS)
    TICKS.insert(0, TICKS.pop(2))
    try:
        assert traced(folder, PAIRS, "--lateness", "2s") == in_order
    finally:
        TICKS.insert(2, TICKS.pop(0))


def test_a_trace_changes_no_answer(folder: Folder) -> None:
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--trace", "rising")
    assert rows(done.stdout) == RISES
    assert done.stderr.startswith("trace of rising\n  g1 SEQ")


@pytest.mark.parametrize("executor", ["rows", "columns", "both"])
def test_every_executor_gives_the_same(folder: Folder, executor: str) -> None:
    done = folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", "--executor", executor)
    assert rows(done.stdout) == RISES
    assert done.stderr == ("etalis: rows and columns gave the same 2 matches\n" if executor == "both" else "")


def test_both_executors_may_get_updates_of_the_background(folder: Folder) -> None:
    folder.write("u.jsonl", '{"time": 2, "add": ":acme :kind :big ."}\n')
    query = "SELECT ?c ?x { ?c :price ?x . ?c :kind :big }"
    arguments = ("run", "-q", query, "-s", "ticks.jsonl", "--background-stream", "u.jsonl")
    plain, both = folder.etalis(*arguments), folder.etalis(*arguments, "--executor", "both")
    assert plain.stdout == both.stdout != ""


def test_the_first_difference_is_named_with_its_node() -> None:
    """Here the two run different programs."""
    named = f"REGISTER QUERY q1 AS {PAIRS}"
    texts = {"rows": named, "columns": named.replace("?y > ?x", "?y >= ?x")}

    def make(executor: Literal["rows", "columns"], nodes: bool) -> Engine:
        return Engine(texts[executor], executor=executor, nodes=nodes)

    both = Both(make, {"": "http://example.org/"})
    both.push_all([event(":a :price 1", 1), event(":a :price 2", 2), event(":a :price 2", 3)])
    with pytest.raises(Failure) as caught:
        both.push_all([event(":a :price 9", 4)])
    said = str(caught.value)
    assert said.startswith("rows and columns differ: only columns give <q1 [2, 3] ?c=<http://example.org/a>, ?x=")
    assert "; the first node that differs is g1 SEQ, on ?c" in said
    assert said.endswith(", at 2")  # the node has another name there, so its first solution is the first difference


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--trace", "fall"), "--trace fall: there is no such query; there are: rising"),
        (("--trace", "rising", "--executor", "both"), "--trace looks into rows: leave --executor both out"),
        (("--trace", "rising", "--revise", "1s"), "leave one of the two out"),
        (("--trace", "rising", "--engine", "spark"), "--trace is for the local engine"),
        (("--executor", "rows", "--engine", "spark"), "--executor is for the local engine"),
    ],
)
def test_what_cannot_be_looked_into_is_refused(folder: Folder, options: tuple[str, ...], problem: str) -> None:
    assert problem in folder.etalis("run", "rising.rq", "-s", "ticks.jsonl", *options, code=2).stderr


def test_windows_have_no_nodes(folder: Folder) -> None:
    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }"
    done = folder.etalis("run", "-q", query, "-s", "s=ticks.jsonl", "--trace", "q1", code=2)
    assert "it is evaluated over windows" in done.stderr
