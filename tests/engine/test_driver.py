"""Moving a stream through an engine: late events, order, errors of the input, the end, updates of the background."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from etalis_py import Engine, Event, event, read_stream, run
from etalis_py.cli.paced_steps import drive, paced
from etalis_py.engine.driver import Driver, Step
from etalis_py.events import UnexpectedRetraction
from etalis_py.streams import Burst, Idle, PassingTime, Patience, Punctuation, Stream, StreamError
from etalis_py.streams.pass_through import EndingError
from etalis_py.streams.updates import updates_of

SECOND = 1_000_000
VALUES = "SELECT ?x { ?c :p ?x }"
RISES = "SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } } WITHIN 10 s"


def price(x: int, at: int | str) -> Event:
    return event(f":c :p {x}", at)


def line(x: int, time: int | str) -> str:
    return json.dumps({"time": time, "triples": f":c :p {x} ."}) + "\n"


def written(folder: Path, *times: int | str, name: str = "s.jsonl") -> Path:
    """A file with an event at each time; its value is its place, from 1."""
    (folder / name).write_text("".join(line(x, time) for x, time in enumerate(times, 1)))
    return folder / name


def values(matches: Iterable[Any]) -> list[int]:
    return [match["x"] for match in matches]


# --- late events ---


def test_late_events_are_counted_told_and_kept_up_to_a_bound() -> None:
    """One event far ahead makes all that follow late: none is dropped silently, and none of many is kept for ever."""

    def events() -> Iterator[Event]:
        yield price(1, 10**12 // SECOND)
        for x in range(20_000):
            yield Event(5 + x, 5 + x, price(2, 5).triples)

    found = run(VALUES, events())
    assert next(found)["x"] == 1
    tracemalloc.start()
    assert values(found) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.late, [late.end for late in found.dead_letters]) == (20_000, list(range(5, 1005)))
    assert found.warnings == (
        "20,000 events came too late and were left out: see dead_letters, or on_late=…; lateness=…, in microseconds, "
        "allows for more",
    )
    assert peak < 1_000_000


def test_what_ends_before_the_start_is_told_with_what_allows_more() -> None:
    found = run(VALUES, [price(1, 5)], start=6_000_000)
    assert values(found) == []
    assert found.warnings[0].endswith("; start=…, if earlier, or lateness=…, in microseconds, allows for more")


def test_each_late_event_is_given_to_whoever_asked_for_them() -> None:
    given: list[Event] = []
    late = [price(2, 3), price(3, 4)]
    found = run(VALUES, [price(1, 5), *late, price(4, 6)], on_late=given.append)
    assert values(found) == [1, 4]
    assert given == late
    assert (found.late, found.dead_letters) == (2, tuple(late))


def test_a_run_without_late_events_warns_of_none() -> None:
    found = run(VALUES, [price(2, 6), price(1, 5)], lateness=2 * SECOND)
    assert (values(found), found.late, found.dead_letters, found.warnings) == ([1, 2], 0, (), ())


def test_a_withdrawal_of_nothing_is_a_late_event() -> None:
    nothing = event(":c :p 9", 4, retract=True)
    found = run(VALUES, [price(1, 5), nothing], revise=10 * SECOND)
    assert (values(found), found.dead_letters) == ([1], (nothing,))
    (warning,) = found.warnings
    assert warning.startswith("1 event came too late, or withdrew what never was, and was left out")


# --- order ---


def test_a_stream_that_was_opened_is_put_in_order_as_a_path_is(tmp_path: Path) -> None:
    file = written(tmp_path, 1, 5, 3)
    expected = [(m["x"], m["y"]) for m in run(RISES, [price(1, 1), price(3, 3), price(2, 5)])]
    for options in ({}, {"in_order": True}):
        with pytest.warns(UserWarning, match=r"s\.jsonl: not in order of time, so sorted first"):
            found = list(run(RISES, read_stream(file, **options)))
        assert [(m["x"], m["y"]) for m in found] == expected


def test_files_and_frames_are_put_in_order_whatever_they_are(tmp_path: Path) -> None:
    written(tmp_path, 4, 2, name="a.jsonl")
    written(tmp_path, 3, 1, name="b.jsonl")
    frame = pd.DataFrame({"t": [4, 2, 3, 1], "x": [1, 1, 2, 2]})
    mapping = {"subject": ":c", "predicate": ":p", "object": "{x}", "time": "{t}"}
    for stream in (read_stream(str(tmp_path / "*.jsonl")), read_stream(frame, mapping=mapping)):
        with pytest.warns(UserWarning, match="not in order of time"):
            assert [m.end for m in run(VALUES, stream)] == [1, 2, 3, 4]


def test_the_order_of_the_source_is_kept_if_asked_or_if_late_events_are_allowed(tmp_path: Path) -> None:
    file = written(tmp_path, 1, 5, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(VALUES, read_stream(file, in_order=False))
        assert (values(found), found.late) == ([1, 2], 1)
        assert values(run(VALUES, read_stream(file), lateness=2 * SECOND)) == [1, 3, 2]
        assert sorted(values(run(VALUES, read_stream(file), revise=2 * SECOND))) == [1, 2, 3]


def test_a_stream_read_by_itself_is_as_it_is(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [item.end // SECOND for item in read_stream(written(tmp_path, 1, 5, 3))] == [1, 5, 3]


# --- errors ---


def test_what_came_before_an_error_of_the_iterator_is_matched() -> None:
    def events() -> Iterator[Event]:
        yield from (price(x, x) for x in range(1, 350))
        raise RuntimeError("the sensor is gone")

    found = run(VALUES, events())
    taken = []
    with pytest.raises(RuntimeError, match="the sensor is gone"):
        taken.extend(m["x"] for m in found)
    assert taken == list(range(1, 350))


def test_a_step_that_is_no_event_is_refused_after_the_matches_before_it() -> None:
    found = run(VALUES, iter([price(1, 1), ":c :p 2"]))
    assert next(found)["x"] == 1
    with pytest.raises(TypeError, match=r"a stream has events, as event\(.*but this one has ':c :p 2'"):
        next(found)


def test_a_withdrawal_without_a_horizon_is_refused_after_the_matches_before_it() -> None:
    found = run(VALUES, [price(1, 1), price(2, 2), event(":c :p 1", 1, retract=True), price(3, 3)])
    assert [next(found)["x"], next(found)["x"]] == [1, 2]
    with pytest.raises(UnexpectedRetraction, match=r"Engine\(…, revise=…\)"):
        next(found)


def test_an_event_that_ends_before_it_starts_is_refused_alone() -> None:
    wrong = Event(5 * SECOND, 3 * SECOND, price(9, 0).triples)
    for updates in (None, [{"time": 0, "add": ":c a :Firm ."}]):
        found = run(VALUES, [price(1, 1), wrong, price(2, 2)], updates=updates)
        assert [next(found)["x"], next(found)["x"]] == [1, 2]
        with pytest.raises(ValueError, match="an event starts at 5000000 and ends before, at 3000000"):
            next(found)


# --- the end ---


DATES = tuple(f"2026-01-31T10:00:0{s}Z" for s in (1, 5, 9))


@pytest.mark.parametrize(
    "until",
    [
        "2026-01-31T10:00:05Z",
        "2026-01-31T11:00:05+01:00",
        datetime(2026, 1, 31, 10, 0, 5, tzinfo=UTC),
        datetime(2026, 1, 31, 10, 0, 5),
        datetime(2026, 1, 31, 11, 0, 5, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp("2026-01-31T10:00:05Z"),
        1_769_853_605 * SECOND,
    ],
    ids=str,
)
def test_a_run_over_dates_ends_at_a_time_in_any_spelling(tmp_path: Path, until: Any) -> None:
    assert values(run(VALUES, read_stream(written(tmp_path, *DATES)), until=until)) == [1, 2]
    assert values(run(VALUES, [price(x, at) for x, at in enumerate(DATES, 1)], until=until)) == [1, 2]


@pytest.mark.parametrize(("unit", "until"), [("s", "5"), ("s", "5.5"), ("ms", "5"), ("s", 5 * SECOND), ("ms", 5_000)])
def test_a_number_in_quotes_counts_as_the_stream_counts(tmp_path: Path, unit: str, until: int | str) -> None:
    file = written(tmp_path, 1, 5, 9)
    assert values(run(VALUES, read_stream(file, time_unit=unit), until=until)) == [1, 2]


@pytest.mark.parametrize(
    ("times", "until", "reason"),
    [
        (DATES, "5", "the times of the stream are dateTimes, such as 2026-01-31T10:00:01Z"),
        ((1, 5), "2026-01-31T10:00:05Z", "the times of the stream are numbers, such as 1"),
        ((1, 5), datetime(2026, 1, 31), "the times of the stream are numbers, such as 1"),
        (DATES, 100, "an integer is in microseconds since 1970, and this one is before the first time of the stream"),
    ],
)
def test_an_end_that_does_not_fit_the_stream_is_refused(tmp_path: Path, times: Any, until: Any, reason: str) -> None:
    with pytest.raises(EndingError) as refused:
        list(run(VALUES, read_stream(written(tmp_path, *times)), until=until))
    assert str(refused.value).startswith(f"until={until!r}: {reason}")


def test_an_end_that_is_no_time_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"expected an xsd:dateTime.*'tomorrow'"):
        run(VALUES, [], until="tomorrow")
    with pytest.raises(TypeError, match="a run ends at a number of microseconds, at a datetime, or at a time as"):
        run(VALUES, [], until=5.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="more than 146,000 years from 1970"):
        run(VALUES, [], until=10**30)


def test_an_end_before_the_first_event_is_told(tmp_path: Path) -> None:
    found = run(VALUES, read_stream(written(tmp_path, 3, 5)), until=2)
    assert values(found) == []
    assert found.warnings == ("the run ends at 0.000002, before the first event, which is at 3: no event was read",)
    assert run(VALUES, read_stream(written(tmp_path, 3, 5)), until="3").warnings == ()


# --- updates of the background ---

FIRMS = "SELECT ?x { ?c :p ?x . ?c a :Firm }"
ADDED = ":c a :Firm ."
CHANGES = [{"time": 2, "add": ADDED}, {"time": 4.5, "remove": ADDED}, {"time": 7, "add": ADDED}]


def test_the_background_changes_between_instants() -> None:
    """An update at t holds from the first instant after t."""
    events = [price(x, x) for x in range(1, 9)]
    assert values(run(FIRMS, events, updates=CHANGES)) == [3, 4, 8]
    assert values(run(FIRMS, events, updates=CHANGES, background=None, until=7 * SECOND)) == [3, 4]


def test_updates_come_from_a_file_and_count_as_the_stream_counts(tmp_path: Path) -> None:
    file = tmp_path / "firms.jsonl"
    file.write_text("".join(json.dumps(change) + "\n" for change in CHANGES))
    stream = written(tmp_path, *range(1, 9))
    for unit in ("s", "ms"):
        assert values(run(FIRMS, read_stream(stream, time_unit=unit), updates=file)) == [3, 4, 8]


def test_updates_wait_for_late_events() -> None:
    events = [price(1, 1), price(4, 4), price(3, 3), price(8, 8)]
    assert values(run(FIRMS, events, updates=CHANGES, lateness=2 * SECOND)) == [3, 4, 8]


@pytest.mark.parametrize("lateness", [0, 3])
def test_updates_hold_at_any_cut_into_batches(lateness: int) -> None:
    draw = Random(34)
    for _ in range(40):
        events = [price(x, draw.randrange(12) + x // 4) for x in range(30)]
        times = sorted(draw.choices(range(20), k=6))
        changes = [{"time": t, draw.choice(("add", "remove")): ADDED} for t in times]
        steps = {}
        for batch in (1, 3, 1024):
            engine = Engine(FIRMS, background=[], changes=True, lateness=lateness * SECOND)
            driver = Driver(engine, events, updates=updates_of(changes), batch=batch)
            all_steps = list(driver.steps())
            steps[batch] = (
                [match.id for step in all_steps for match in step.matches],
                [event for step in all_steps for event in step.late],
            )
        assert steps[1] == steps[3] == steps[1024]


@pytest.mark.parametrize(
    ("updates", "reason"),
    [
        (
            [{"time": 3, "add": ":c a :Firm ."}, {"time": 2, "add": ":d a :Firm ."}],
            "this update is earlier than the one",
        ),
        ([{"time": 1}], "this is not an update"),
        (["add"], "this is not an update"),
        ([{"time": 1, "add": "this is"}], "this is not Turtle"),
    ],
)
def test_an_update_that_cannot_be_read_is_named(updates: Any, reason: str) -> None:
    found = run(VALUES, [price(1, 1), price(5, 5)], updates=updates)
    with pytest.raises(StreamError, match=f"the updates:[12]: {reason}"):
        list(found)


def test_updates_are_a_file_or_dicts() -> None:
    with pytest.raises(TypeError, match=r'updates are a file of JSON lines, or dicts such as \{"time": t'):
        run(VALUES, [], updates=5)


# --- live streams and steps ---


class Scripted(Stream):
    """A live stream of given items that is silent where an ``Idle`` is."""

    def __init__(self, *items: Any) -> None:
        super().__init__(iter(items), name="", source="", contexts=[], close=lambda: None, patience=(Patience(0.0),))


def test_what_holds_without_events_is_reported_before_the_first() -> None:
    def nothing_yet() -> Iterator[Any]:
        raise AssertionError("nothing has been read yet")
        yield

    engine = Engine("SELECT ?x { VALUES ?x { 1 } }")
    assert values(next(Driver(engine, nothing_yet()).steps()).matches) == [1]


def test_each_event_of_a_live_stream_is_a_step() -> None:
    steps = list(Driver(Engine(VALUES), Scripted(price(1, 1), price(2, 2), Idle(0), price(3, 3))).steps())
    assert [step.newest for step in steps if len(step.matches)] == [2 * SECOND, 2 * SECOND, 3 * SECOND]
    assert [step.ended for step in steps] == [False] * (len(steps) - 1) + [True]


def test_what_was_available_at_once_is_pushed_together() -> None:
    items = [Burst(True), price(1, 1), price(2, 2), price(3, 3), Burst(False), price(4, 4)]
    engine = Engine(VALUES, revise=10 * SECOND)
    taken = [step.newest for step in Driver(engine, Scripted(*items)).steps()]
    assert taken == [None, 3 * SECOND, 4 * SECOND, 4 * SECOND]


def test_a_punctuation_closes_what_is_over() -> None:
    steps = Driver(Engine(VALUES), [price(1, 1), Punctuation(SECOND), price(2, 2)]).steps()
    assert [values(step.matches) for step in steps] == [[], [], [1], [], [2]]


def test_items_may_be_handed_over_one_by_one() -> None:
    driver = Driver(Engine("SELECT ?o { { ?o :p ?x } SEQ NOT { ?o :q ?y } WITHIN 1 s }"), live=True)
    now = [0.0]
    driver.passing = PassingTime(idle=0.0, clock=lambda: now[0])
    assert [list(step.matches) for step in driver.take(price(1, 1))] == [[]]
    assert [list(step.matches) for step in driver.settle()] == [[]]
    at = driver.wakes_at()
    assert at is not None
    now[0] = at
    assert [match.end for step in driver.take(Idle(0)) for match in step.matches] == [2]
    (last,) = driver.end()
    assert (last.ended, last.newest) == (True, SECOND)


def test_a_live_stream_starts_when_it_is_waited_for() -> None:
    """Five seconds pass before the first event, at 20: so the stream starts at 15, in whatever units it counts."""
    driver = Driver(Engine("ASK { { START } SEQ NOT { ?o :q ?y } WITHIN 3 s }"), live=True)
    now = [100.0]
    driver.passing = PassingTime(idle=0.0, clock=lambda: now[0])
    driver.passing.waits()
    now[0] += 5
    steps = [*driver.take(price(1, 20)), *driver.end()]
    assert [(match.start, match.end) for step in steps for match in step.matches] == [(15, 18)]


def test_columns_and_rows_are_driven_alike() -> None:
    terms = {"s": "<urn:c>", "p": "<http://example.org/p>"}
    flat = {name: [term] * 4 for name, term in terms.items()} | {"end": [1, 2, 2, 9], "o": ['"1"', '"2"', '"3"', '"4"']}
    ids = [match.id for match in run(VALUES, read_stream(pa.table(flat)))]
    assert len(ids) == 4
    events = list(read_stream(pa.table(flat)))
    assert ids == [match.id for match in run(VALUES, events)]
    assert ids[:3] == [match.id for match in run(VALUES, read_stream(pa.table(flat)), until=2)]


def test_control_c_while_reading_ends_the_run_with_what_was_read() -> None:
    def events() -> Iterator[Event]:
        yield from (price(x, x) for x in (1, 2, 3))
        raise KeyboardInterrupt

    steps: list[Step] = []
    drive(Driver(Engine(VALUES), events()), steps.append)
    assert [x for step in steps for x in values(step.matches)] == [1, 2, 3]
    assert steps[-1].ended


def test_at_a_pace_nothing_comes_at_once() -> None:
    items = [Burst(True), price(1, 1), Burst(False)]
    assert list(paced(iter(items), 1000.0)) == [price(1, 1)]
