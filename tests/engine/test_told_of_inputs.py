"""What is told of a run: units of times that are in doubt, rows that make no event, and what is odd about its query."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from etalis_py import Engine, Event, compile, event, read_stream, run
from etalis_py.streams import StreamError, merge

MILLISECONDS = [{"at": 1_767_225_600_000 + 1000 * n, "card": "c1", "amount": n} for n in (1, 2)]
IN_SECONDS = {"time": "{at}", "subject": ":{card}", "predicate": ":amount", "object": "{amount}"}
SPELLED_MS = {
    "a frame": lambda: pd.DataFrame(MILLISECONDS),
    "floats, as pandas has integers beside a missing one": lambda: pd.DataFrame(MILLISECONDS).astype({"at": float}),
    "an Arrow table": lambda: pa.Table.from_pylist(MILLISECONDS).cast(
        pa.schema({"at": pa.float64(), "card": pa.string(), "amount": pa.int64()})
    ),
    "dicts": lambda: MILLISECONDS,
    "dicts of floats": lambda: [{**row, "at": float(row["at"])} for row in MILLISECONDS],
    "nanoseconds in floats": lambda: pd.DataFrame([{**row, "at": row["at"] * 1e6} for row in MILLISECONDS]),
    "dicts of nanoseconds in floats": lambda: [{**row, "at": row["at"] * 1e6} for row in MILLISECONDS],
}
A_SECOND_APART = "SELECT ?x ?y { { { ?c :amount ?x } SEQ { ?c :amount ?y } } WITHIN 1 s }"


@pytest.mark.parametrize("given", SPELLED_MS.values(), ids=SPELLED_MS)
@pytest.mark.parametrize("named", [{}, {"time": "at"}, {"time": "at", "subject": "card"}])
@pytest.mark.filterwarnings("ignore:.*there is no mapping")
def test_the_unit_of_times_goes_by_their_magnitude_however_they_are_spelled(
    given: Callable[[], Any], named: dict[str, str]
) -> None:
    assert [(m["x"], m["y"]) for m in run(A_SECOND_APART, given(), **named)] == [(1, 2)]


SOME_EMPTY = "at,card,amount\n1,c1,10\n2,,11\n3,c1,\n4,c1,12\n"


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("form", [list, iter, pd.DataFrame, "file"])
def test_records_that_make_no_event_are_counted(form: Any, executor: Any, tmp_path: Path) -> None:
    """Without a subject, or with nothing beside it."""
    file = tmp_path / "some.csv"
    file.write_text(SOME_EMPTY + "soon,c1,13\n")
    rows = [{"at": 1, "card": "c1", "amount": 10}, {"at": 2, "card": None, "amount": 11}, {"at": 3, "card": "c1"}]
    given = read_stream(file, mapping=IN_SECONDS, on_error="skip") if form == "file" else form(rows)
    named: Any = {} if form == "file" else {"time": "at", "subject": "card"}
    found = run("SELECT ?x { ?c :amount ?x }", given, executor=executor, **named)
    assert [m["x"] for m in found] == [10, 12][: 1 + (form == "file")]
    skipped = ("1 part of the input was skipped, which could not be read: dead_letters=… of read_stream keeps them",)
    expected = ("2 records made no event, for want of a subject or of anything beside it",)
    assert found.warnings == expected + skipped * (form == "file")


@pytest.mark.parametrize("first", ["numbers", "dates"])
@pytest.mark.parametrize("time", [3, 1_769_853_601])
def test_numbers_near_1970_beside_dates_are_told(first: str, time: int, tmp_path: Path) -> None:
    """Numbers that are dates of the same day are not."""
    for name, at in {"numbers": time, "dates": "2026-01-31T10:00:00Z"}.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"time": at, "triples": ":a :p 1 ."}) + "\n")
    files = sorted(tmp_path.iterdir(), reverse=first == "numbers")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert len(list(run("SELECT ?x { ?c :p ?x }", merge([read_stream(file) for file in files])))) == 2
    apart = (
        "the time 3 s is 1970-01-01T00:00:03Z, years before the others begin, at 2026-01-31T10:00:00Z in "
        f"{tmp_path}/dates.jsonl; name its unit with time_unit= (--time-unit), or write dates in both"
    )
    assert [str(one.message) for one in told] == [f"{tmp_path}/numbers.jsonl: {apart}"] * (time == 3)


def test_a_list_of_paths_is_refused_with_what_to_give_instead(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"for several files give a pattern, such as 'data/\*\.csv', or merge\("):
        list(read_stream([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]))


MIXED = [{"at": at, "card": "c1", "amount": n} for n, at in enumerate((1_767_225_600, 1_767_225_601_000), start=1)]
SPELLED_MIXED = {
    "a frame": pd.DataFrame(MIXED),
    "floats": pd.DataFrame(MIXED).astype({"at": float}),
    "an Arrow table": pa.Table.from_pylist(MIXED),
    "dicts": MIXED,
}


@pytest.mark.parametrize("given", SPELLED_MIXED.values(), ids=SPELLED_MIXED)
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_times_in_two_units_are_told_without_being_asked_for(given: Any, executor: Any) -> None:
    told = (
        r"the time .* is 1970-01-.*; in s it would be 2026-01-01T00:00:00Z, near the others; all times of a source are "
    )
    found = run(A_SECOND_APART, given, time="at", subject="card", executor=executor)
    with pytest.warns(UserWarning, match=told) as caught:
        assert list(found) == []
    assert len([one for one in caught if "near the others" in str(one.message)]) == 1
    assert "near the others" in found.warnings[0]


@pytest.mark.parametrize("name", ["mixed.csv", "mixed.jsonl"])
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_times_of_a_file_in_two_units_are_told(name: str, executor: Any, tmp_path: Path) -> None:
    """Also where a few rows in seconds come after many in milliseconds."""
    rows = [{"at": 1_767_225_600_000 + n, "card": f"c{n}", "amount": n} for n in range(3000)]
    rows.append({"at": 1_767_225_603, "card": "c0", "amount": 3000})
    file = tmp_path / name
    if name.endswith(".csv"):
        file.write_text("at,card,amount\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows))
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = "the time 1767225603 ms is 1970-01-21T10:53:45.603Z; in s it would be 2026-01-01T00:00:03Z, near the others"
    with pytest.warns(UserWarning, match=told):
        list(run(A_SECOND_APART, str(file), time="at", subject="card", executor=executor))


def test_times_near_1970_by_themselves_are_left_alone() -> None:
    rows = [{"at": 1_767_225_600 + n, "card": "c1", "amount": n} for n in (1, 2)]
    found = run(A_SECOND_APART, rows, mapping={**IN_SECONDS, "time_unit": "ms"})
    list(found)
    assert found.warnings == ()


@pytest.mark.parametrize("given", [SPELLED_MS["a frame"], SPELLED_MS["dicts"], lambda: iter(MILLISECONDS)])
def test_milliseconds_taken_for_seconds_are_told_without_being_asked_for(given: Callable[[], Any]) -> None:
    told = r"s is in the year 57971; in ms it would be 2026-01-01T00:00:02Z; name the unit of its times with time_unit="
    with pytest.warns(UserWarning, match=told) as caught:
        assert list(run(A_SECOND_APART, given(), mapping=IN_SECONDS)) == []
    assert len([one for one in caught if "in the year" in str(one.message)]) == 1


def test_what_is_odd_about_the_text_of_a_query_is_told_with_its_run() -> None:
    """Nothing may be found because of it, and nobody prints the warnings of a program that was never seen."""
    query = "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } GROUP BY ?c HAVING (?n > 1)"
    matches = run(query, [event(":c :p 1", 1), event(":c :p 2", 2)])
    assert not list(matches)
    (warning,) = matches.warnings
    assert "?n has no value in HAVING, which comes before SELECT: no group passes it" in warning
    assert warning.endswith("hint: write what it stands for: COUNT(*)")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "the table: column 3 has no name and is left out: give it one"),
        (" ", "the table: column 3 has no name and is left out: give it one"),
        ("x{y", "the table: the column 'x{y' is left out: rename it, because { and } stand around columns in mappings"),
    ],
)
def test_a_column_of_a_table_that_no_property_can_be_named_after_is_told(name: str, told: str) -> None:
    table = pa.table({"at": [1, 2], "c": ["a", "b"], name: [1, 2]})
    with pytest.warns(UserWarning, match="is left out") as caught:
        assert len(list(run("SELECT ?c { ?c :c ?x }", table, time="at", subject="c"))) == 2
    assert [str(one.message) for one in caught] == [told]


def test_a_key_inside_an_object_is_named_as_it_is_called() -> None:
    """A draft calls the key ``price`` in ``trade`` :trade_price; of what may be missing nothing is said."""
    given = [{"time": 1, "id": "a", "trade": {"price": 5}, "bid": {"price": 4}}]
    matches = run("SELECT ?x { ?c :price ?x OPTIONAL { ?c :trade ?y } }", given, time="time", subject="id")
    assert list(matches) == []
    assert matches.warnings == (
        "the predicate :price never occurred; did you mean :bid_price or :trade_price? (the same name at its end)",
    )


@pytest.mark.parametrize("call", ["run", "push_all"])
def test_a_generator_that_is_used_up_is_told(call: str) -> None:
    """It gives no event, and so there was no match and no word."""

    def prices() -> Iterator[Event]:
        yield event(":acme :price 3", 1)

    query, given = "SELECT ?x { ?c :price ?x }", prices()
    take = Engine(compile(query)).push_all if call == "push_all" else lambda events: list(run(query, events))
    with warnings.catch_warnings(action="error"):
        take(given)
        take(iter([]))
    with pytest.warns(
        UserWarning, match=r"the generator prices is used up already, .*: call prices\(…\) again, or make"
    ):
        take(given)
