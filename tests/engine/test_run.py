"""The shortest way from a file to matches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine, Event, compile, event, read_stream, run
from etalis_py.streams import StreamError

QUERY = "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } }"


def test_a_program_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    lines = (f'{{"time": "2020-01-01T00:00:0{i}Z", "triples": "<urn:c> <http://example.org/p> {i} ."}}' for i in (1, 2))
    file.write_text("\n".join(lines) + "\n")
    (match,) = run(compile(QUERY), read_stream(str(file)))
    assert (match["x"], match["y"]) == (1, 2)
    assert (match.start, match.end) == ("2020-01-01T00:00:01Z", "2020-01-01T00:00:02Z")


def test_input_that_cannot_be_read_is_raised_after_the_matches_of_the_events_before_it() -> None:
    def events() -> Iterator[Event]:
        yield from (event(f":c :p {i}", i) for i in (1, 2))
        raise StreamError("a bad line")

    found = run(compile(QUERY), events())
    assert next(found)["y"] == 2
    with pytest.raises(StreamError, match="a bad line"):
        next(found)


def test_the_policy_of_the_program_holds_unless_the_engine_is_given_one() -> None:
    events = [event(f":c :p {i}", i) for i in (1, 2, 3)]
    program = compile(QUERY, policy="recent")
    assert [(m["x"], m["y"]) for m in run(program, events)] == [(1, 2), (2, 3)]
    assert len(list(run(program, events, policy="unrestricted"))) == 3
    assert Engine(program).rules.nodes != Engine(program, policy="unrestricted").rules.nodes


@pytest.mark.parametrize("length", ["5 seconds", "PT5S", timedelta(seconds=5), 5_000_000])
def test_lengths_of_time_are_given_as_people_write_them(length: Any) -> None:
    engine = Engine("SELECT ?x { ?s :p ?x }", lateness=length, revise=length)
    assert (engine.options.lateness, engine.options.revise) == (5_000_000, 5_000_000)
    late = [event(":a :p 2", 2), event(":a :p 1", 1)]
    assert [m["x"] for m in run("SELECT ?x { ?s :p ?x }", late, lateness=length)] == [1, 2]


@pytest.mark.parametrize(
    ("length", "told"),
    [("soon", "lateness='soon': expected a duration"), (-1, "0 or more"), (1.5, "give microseconds"), (True, "give")],
)
def test_what_is_no_length_of_time_is_told(length: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        Engine("SELECT ?x { ?s :p ?x }", lateness=length)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"report": {"": "NC"}}, "report only has an effect on queries with windows, .* has none: leave it out"),
        ({"duplicates": True, "listen": print}, "duplicates and listen only have an effect on .*: leave them out"),
    ],
)
def test_options_of_windows_are_told_where_no_query_has_one(options: Any, told: str) -> None:
    events = [event(":c :p 1", 1), event(":c :p 2", 2)]
    with pytest.warns(UserWarning, match=told):
        assert len(list(run(QUERY, events, **options))) == 1


def test_a_warning_names_the_line_that_asked_for_the_matches() -> None:
    late_row: dict[str, Any] = {"at": 1, "c": "a", "tags": ["x"]}
    unsorted = [{"at": 2, "c": "a", "x": 1}, {"at": 1, "c": "a", "x": 2}]
    query = "SELECT ?y { ?c :y ?y }"
    runs: list[Any] = [run(query, rows, time="at", subject="c") for rows in (unsorted, [late_row])]
    for one in runs:
        with pytest.warns(UserWarning, match="sorted|no matches") as caught:
            one.to_dicts()
        assert {warning.filename for warning in caught} == {__file__}
